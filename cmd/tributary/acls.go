package main

import (
	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/internal/planreport"
)

// deadLetters are the topics that an application's handlers write to; the topology doesn't know them.
var deadLetters = map[string][]string{"orders": {orders.DeadLetters()}}

func newACLs() *cobra.Command {
	var principal, brokers, config string
	cmd := &cobra.Command{
		Use:   "acls [orders|flights]",
		Short: "Print the commands that give an application's user the rights it needs",
		Long: "Prints kafka-acls.sh commands for the least rights with which an application runs. In your own program, use\n" +
			"package engine/appcmd, or engine.RequiredACLs(plan, ...). See docs/operations/security.md.",
		Example: "  tributary acls orders --principal User:orders --bootstrap-server localhost:9092 --command-config admin.properties | sh",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "orders"
			if len(args) == 1 {
				name = args[0]
			}
			plan, err := application(name)
			if err != nil {
				return err
			}
			reach := " --bootstrap-server " + brokers
			if config != "" {
				reach += " --command-config " + config
			}
			planreport.ACLs(cmd.OutOrStdout(), engine.RequiredACLs(plan, engine.ACLOptions{Writes: deadLetters[name]}), principal, reach)
			return nil
		},
	}
	cmd.Flags().StringVar(&principal, "principal", "User:tributary", "who gets the rights, as kafka-acls.sh wants it")
	cmd.Flags().StringVar(&brokers, "bootstrap-server", "localhost:9092", "broker for the printed commands")
	cmd.Flags().StringVar(&config, "command-config", "", "file with the administrator's client settings, for the printed commands")
	return cmd
}
