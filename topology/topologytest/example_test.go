package topologytest_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// In a test, New takes the *testing.T, fails it at the first error, and closes the driver. Open is for everything else.
func ExampleOpen() {
	b := topology.NewBuilder("shouting")
	b.Stream("in", serde.String, serde.String).MapValues(strings.ToUpper).To("out")
	plan, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := topologytest.Open(plan)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	in := topologytest.Input(d, "in", serde.String, serde.String)
	if err := in.Pipe("greeting", "hello", 1_000); err != nil {
		log.Fatal(err)
	}
	for _, m := range topologytest.Output(d, "out", serde.String, serde.String).Read() {
		fmt.Println(m.Key, m.Value, m.Timestamp)
	}
	// Output: greeting HELLO 1000
}

// A restart throws the state away: what is there afterwards was restored from the changelog.
func ExampleDriver_Restart() {
	b := topology.NewBuilder("counting")
	b.Stream("in", serde.String, serde.String).GroupByKey().Count(topology.Store("counts")).ToStream().To("out")
	plan, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := topologytest.Open(plan, topologytest.Partitions(3))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	in := topologytest.Input(d, "in", serde.String, serde.String)
	for i := range int64(4) {
		if err := in.Pipe("a", "x", i); err != nil {
			log.Fatal(err)
		}
		if err := d.Restart(); err != nil {
			log.Fatal(err)
		}
	}
	for _, m := range topologytest.Output(d, "out", serde.String, serde.Int64).Read() {
		fmt.Print(m.Key, "=", m.Value, " ")
	}
	// Output: a=1 a=2 a=3 a=4
}
