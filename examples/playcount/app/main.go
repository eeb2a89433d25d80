// Command app is the application with a command line: `app run`, `app describe`, `app explain`, `app diff`, `app acls`, `app reset`.
package main

import (
	"github.com/tributary-io/tributary/engine/appcmd"
	"github.com/tributary-io/tributary/examples/playcount"
	"github.com/tributary-io/tributary/topology"
)

func main() {
	appcmd.Main(appcmd.Application{
		Short: "Counts each play once, in the minute in which it happened",
		Build: func() (*topology.Plan, error) { return playcount.Topology("lake") },
	})
}
