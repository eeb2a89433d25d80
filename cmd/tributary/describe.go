package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/examples/flights"
	"github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/internal/planreport"
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

func newDescribe() *cobra.Command {
	return &cobra.Command{
		Use:   "describe [orders|flights]",
		Short: "Print an application's topology: sub-topologies, stores, topics",
		Long: "Prints a topology as Kafka Streams' Topology.describe() does, then the topics that it reads and writes and those that the engine\n" +
			"creates for it. In your own program, use package engine/appcmd, or print plan.Describe().",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "orders"
			if len(args) == 1 {
				name = args[0]
			}
			plan, err := application(name)
			if err != nil {
				return err
			}
			planreport.Describe(cmd.OutOrStdout(), plan)
			return nil
		},
	}
}
