package main

import (
	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/internal/plancommands"
)

// deadLetters are the topics that an application's handlers write to; the topology doesn't know them.
var deadLetters = map[string][]string{"orders": {orders.DeadLetters()}}

func newACLs() *cobra.Command {
	s := shipped("In your own program, use package engine/appcmd, or engine.RequiredACLs(plan, ...). See docs/operations/security.md.")
	return plancommands.NewACLs(s, "tributary acls orders", func(args []string) engine.ACLOptions {
		return engine.ACLOptions{Writes: deadLetters[chosen(args)]}
	})
}
