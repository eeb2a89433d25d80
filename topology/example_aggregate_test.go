package topology_test

import (
	"fmt"
	"time"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

func ExampleGroupedStream_Count() {
	b := topology.NewBuilder("count")
	b.Stream("visits", serde.String, serde.String).
		GroupBy(func(_, page string) string { return page }, topology.Name("by-page")).
		Count(topology.Store("pages")).
		MapValues(number).
		ToStream().
		To("out")
	play(b, "out", in{"visits", "ann", "home", 1}, in{"visits", "bob", "home", 2}, in{"visits", "ann", "help", 3})
	// Output:
	// home: 1 at 1
	// home: 2 at 2
	// help: 1 at 3
}

func ExampleGroupedStream_Aggregate() {
	b := topology.NewBuilder("aggregate")
	b.Stream("words", serde.String, serde.String).
		GroupByKey().
		Aggregate(
			func() string { return "" },
			func(_, word, all string) string { return all + word + " " },
			topology.Store("sentences"),
		).
		ToStream().
		To("out")
	play(b, "out", in{"words", "k", "to", 1}, in{"words", "k", "be", 2})
	// Output:
	// k: to  at 1
	// k: to be  at 2
}

func ExampleGroupedTable_Count() {
	b := topology.NewBuilder("regions")
	b.Table("customers", serde.String, serde.String, topology.Store("customers")).
		GroupBy(func(name, region string) (string, string) { return region, name }, topology.Name("by-region")).
		Count(topology.Store("regions")).
		MapValues(number).
		ToStream().
		To("out")
	play(b, "out",
		in{"customers", "ann", "north", 1},
		in{"customers", "bob", "north", 2},
		in{"customers", "ann", "south", 3}, // moves
	)
	// Output:
	// north: 1 at 1
	// north: 2 at 2
	// north: 1 at 3
	// south: 1 at 3
}

func ExampleGroupedStream_Windowed() {
	b := topology.NewBuilder("windows")
	b.Stream("visits", serde.String, serde.String).
		GroupByKey().
		Windowed(topology.Tumbling(10 * time.Millisecond).Grace(5 * time.Millisecond)).
		Count(topology.Store("per-window")).
		EmitFinal(topology.Name("final")).
		ToStream().
		Map(func(w topology.Window[string], n int64) (string, string) { return window(w), number(n) }).
		To("out")
	play(b, "out",
		in{"visits", "home", "", 1},
		in{"visits", "home", "", 12},
		in{"visits", "home", "", 9},  // late, but within the grace
		in{"visits", "home", "", 15}, // closes 0-10
	)
	// Output:
	// home@0-10: 2 at 9
}

func ExampleGroupedStream_Sessions() {
	b := topology.NewBuilder("sessions")
	sessions := b.Stream("clicks", serde.String, serde.String).
		GroupByKey().
		Sessions(topology.Session(5 * time.Millisecond)).
		Count(topology.Store("sessions"))
	// A session that grows is deleted under its old bounds.
	topology.Changes(topology.FlattenTable(sessions)).
		Map(func(w topology.Window[string], n *int64) (string, string) {
			if n == nil {
				return window(w), "is over"
			}
			return window(w), number(*n)
		}).
		To("out")
	play(b, "out", in{"clicks", "ann", "", 1}, in{"clicks", "ann", "", 4}, in{"clicks", "ann", "", 20})
	// Output:
	// ann@1-1: 1 at 1
	// ann@1-1: is over at 1
	// ann@1-4: 2 at 4
	// ann@20-20: 1 at 20
}

func ExampleCogrouped() {
	b := topology.NewBuilder("cogroup")
	orders := b.Stream("orders", serde.String, serde.String).GroupByKey()
	payments := b.Stream("payments", serde.String, serde.String).GroupByKey()
	orders.
		Cogroup(func(_, order, all string) string { return all + "order " + order + "; " }).
		Cogroup(payments, func(_, payment, all string) string { return all + "payment " + payment + "; " }).
		Aggregate(func() string { return "" }, topology.Store("history")).
		ToStream().
		To("out")
	play(b, "out", in{"orders", "ann", "7", 1}, in{"payments", "ann", "9.90", 2})
	// Output:
	// ann: order 7;  at 1
	// ann: order 7; payment 9.90;  at 2
}

func ExampleTable_Suppress() {
	b := topology.NewBuilder("suppress")
	b.Table("prices", serde.String, serde.String, topology.Store("prices")).
		Suppress(topology.UntilTimeLimit(10*time.Millisecond), topology.Name("calm")).
		ToStream().
		To("out")
	play(b, "out", in{"prices", "x", "1", 1}, in{"prices", "x", "2", 5}, in{"prices", "y", "7", 20})
	// Output:
	// x: 2 at 5
}

func ExampleStrictNames() {
	b := topology.NewBuilder("strict", topology.StrictNames())
	b.Stream("in", serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }).
		Count(topology.Store("counts"))
	_, err := b.Build()
	fmt.Println(err)

	b = topology.NewBuilder("lenient")
	b.Stream("in", serde.String, serde.String).GroupByKey().Count()
	plan, _ := b.Build()
	fmt.Println(plan.GeneratedNames())
	// Output:
	// <nil>
	// [KSTREAM-AGGREGATE-STATE-STORE-0000000001 lenient-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog]
}
