// Command run runs the application against a cluster until it is interrupted.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/tributary-io/tributary/console"
	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/examples/playcount"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	plan, err := playcount.Topology("lake")
	if err != nil {
		log.Fatal(err)
	}
	e, err := engine.New(plan,
		engine.Brokers("localhost:9092"),
		engine.StateDir("state"), // instances on one machine need one each
		engine.HTTP(":8080"),     // /metrics, /healthz, /readyz
		console.Serve(),          // and /console
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil { // drains and commits when ctx ends
		log.Fatal(err)
	}
}
