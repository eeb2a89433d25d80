package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/examples/flights"
	"github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/internal/plancommands"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// applications are the topologies that ship.
var applications = map[string]func() (*topology.Plan, error){
	"orders": func() (*topology.Plan, error) {
		return orders.Topology(orders.Config{Registry: serde.NewMemoryRegistry(), Lake: "lake"})
	},
	"flights": func() (*topology.Plan, error) { return flights.Topology("lake") },
}

func applicationNames() []string {
	var names []string
	for name := range applications {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// application builds the topology of a name.
func application(name string) (*topology.Plan, error) {
	build, ok := applications[name]
	if !ok {
		return nil, fmt.Errorf("there is no application %q: choose %s", name, strings.Join(applicationNames(), " or "))
	}
	return build()
}

// chosen is the application that the arguments name.
func chosen(args []string) string {
	if len(args) == 0 {
		return "orders"
	}
	return args[0]
}

// shipped is the applications that ship as what commands are about.
func shipped(advice string) plancommands.Subject {
	return plancommands.Subject{Use: " [orders|flights]", Args: cobra.MaximumNArgs(1), Advice: advice,
		Plan: func(args []string) (*topology.Plan, error) { return application(chosen(args)) }}
}

func newDescribe() *cobra.Command {
	return plancommands.NewDescribe(shipped("In your own program, use package engine/appcmd, or print plan.Describe()."))
}
