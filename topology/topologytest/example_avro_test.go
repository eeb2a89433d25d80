package topologytest_test

import (
	"fmt"
	"log"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

type User struct {
	Name string `avro:"name"`
}

const userSchema = `{"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}`

// names is the topology. In production the registry is serde.NewRegistry("https://registry:8081"), in a test serde.NewMemoryRegistry().
func names(registry *serde.Registry) *topology.Builder {
	b := topology.NewBuilder("names")
	b.Table("users", serde.String, serde.Avro[User](registry, userSchema)).
		MapValues(func(u User) string { return u.Name }).
		ToStream().
		To("names")
	return b
}

func Example_avro() {
	registry := serde.NewMemoryRegistry()
	plan, err := names(registry).Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := topologytest.Open(plan)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	users := topologytest.Input(d, "users", serde.String, serde.Avro[User](registry, userSchema)) // registers the schema, as a producer would
	if err := users.Pipe("u-1", User{Name: "Ada"}, 1_000); err != nil {
		log.Fatal(err)
	}
	for _, m := range topologytest.Output(d, "names", serde.String, serde.String).Read() {
		fmt.Println(m.Key, m.Value)
	}
	// Output: u-1 Ada
}
