package topology_test

import (
	"time"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// or is text that may be missing.
func or(s *string, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return *s
}

func ExampleStream_LeftJoin() {
	b := topology.NewBuilder("enrich")
	customers := b.Table("customers", serde.String, serde.String, topology.Store("customers"))
	b.Stream("orders", serde.String, serde.String).
		LeftJoin(customers, func(order string, name *string) string { return order + " for " + or(name, "unknown") }).
		To("out")
	play(b, "out",
		in{"customers", "c1", "Ann", 1},
		in{"orders", "c1", "order 7", 2},
		in{"orders", "c2", "order 8", 3},
	)
	// Output:
	// c1: order 7 for Ann at 2
	// c2: order 8 for unknown at 3
}

func ExampleStream_JoinGlobal() {
	b := topology.NewBuilder("global")
	airports := b.GlobalTable("airports", serde.String, serde.String)
	b.Stream("flights", serde.String, serde.String).
		JoinGlobal(airports, func(_, to string) string { return to }, func(to, name string) string { return name }).
		To("out")
	play(b, "out", in{"airports", "JFK", "New York", 1}, in{"flights", "f1", "JFK", 2})
	// Output:
	// f1: New York at 2
}

func ExampleStream_LeftJoinStream() {
	b := topology.NewBuilder("clicks")
	clicks := b.Stream("clicks", serde.String, serde.String)
	b.Stream("ads", serde.String, serde.String).
		LeftJoinStream(clicks, func(ad string, click *string) string { return ad + ": " + or(click, "ignored") },
			topology.JoinWithin(10*time.Millisecond), topology.Name("match"), topology.Store("match")).
		To("out")
	play(b, "out",
		in{"ads", "u1", "shoes", 0},
		in{"clicks", "u1", "clicked", 5},
		in{"ads", "u2", "hats", 6},
		in{"clicks", "u3", "clicked", 30}, // closes the window of u2's
	)
	// Output:
	// u1: shoes: clicked at 5
	// u2: hats: ignored at 6
}

func ExampleTable_Join() {
	b := topology.NewBuilder("tables")
	prices := b.Table("prices", serde.String, serde.String, topology.Store("prices"))
	stock := b.Table("stock", serde.String, serde.String, topology.Store("stock"))
	prices.
		Join(stock, func(price, pieces string) string { return pieces + " for " + price }, topology.Store("offers")).
		ToStream().
		To("out")
	play(b, "out",
		in{"prices", "tea", "3.50", 1},
		in{"stock", "tea", "12 pieces", 2},
		in{"prices", "tea", "3.90", 3},
		in{"stock", "tea", "-", 4},
	)
	// Output:
	// tea: 12 pieces for 3.50 at 2
	// tea: 12 pieces for 3.90 at 3
	// tea: (deleted) at 4
}

func ExampleTable_JoinForeign() {
	b := topology.NewBuilder("foreign")
	orders := b.Table("orders", serde.String, serde.String, topology.Store("orders"))
	customers := b.Table("customers", serde.String, serde.String, topology.Store("customers"))
	orders.
		JoinForeign(customers, func(_, customer string) string { return customer },
			func(id, name string) string { return id + " is " + name }, topology.Name("customer")).
		ToStream().
		To("out")
	play(b, "out",
		in{"orders", "o1", "c1", 1},
		in{"customers", "c1", "Ann", 2},
		in{"customers", "c1", "Anne", 3},
	)
	// Output:
	// o1: c1 is Ann at 2
	// o1: c1 is Anne at 3
}

func ExampleChanges() {
	b := topology.NewBuilder("changes")
	t := b.Table("rows", serde.String, serde.String)
	topology.Changes(t).
		Map(func(k string, v *string) (string, string) { return k, or(v, "is gone") }).
		To("out")
	play(b, "out", in{"rows", "a", "1", 1}, in{"rows", "a", "-", 2})
	// Output:
	// a: 1 at 1
	// a: is gone at 2
}
