package topology_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

func ExampleBuilder() {
	b := topology.NewBuilder("shout")
	b.Stream("in", serde.String, serde.String).
		Filter(func(_, v string) bool { return v != "" }).
		MapValues(strings.ToUpper).
		To("out")
	plan, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan.Describe())
	// Output:
	// Topologies:
	//    Sub-topology: 0
	//     Source: KSTREAM-SOURCE-0000000000 (topics: [in])
	//       --> KSTREAM-FILTER-0000000001
	//     Processor: KSTREAM-FILTER-0000000001 (stores: [])
	//       --> KSTREAM-MAPVALUES-0000000002
	//       <-- KSTREAM-SOURCE-0000000000
	//     Processor: KSTREAM-MAPVALUES-0000000002 (stores: [])
	//       --> KSTREAM-SINK-0000000003
	//       <-- KSTREAM-FILTER-0000000001
	//     Sink: KSTREAM-SINK-0000000003 (topic: out)
	//       <-- KSTREAM-MAPVALUES-0000000002
}

func ExampleBuilder_Build() {
	b := topology.NewBuilder("broken")
	b.Stream("in", serde.String, serde.String).
		Filter(nil).
		MapValues(func(v string) struct{ Text string } { return struct{ Text string }{v} }, topology.Name("wrap")).
		To("out", topology.Retention(time.Hour))
	_, err := b.Build()
	fmt.Println(err)
	// Output:
	// topology broken has 3 problems:
	//   - example_stream_test.go:43: KSTREAM-FILTER-0000000001: the function is nil
	//   - example_stream_test.go:45: KSTREAM-SINK-0000000003: the operator has no use for the option Retention; it takes Name, KeySerde, ValueSerde, PartitionBy, Multicast
	//   - example_stream_test.go:45: KSTREAM-SINK-0000000003: no serde is known for the value (struct { Text string }): give topology.ValueSerde(serde.JSON[struct { Text string }]()) or another serde to this operator, or to the one that makes it
}

func ExampleStream_FlatMapValues() {
	b := topology.NewBuilder("words")
	b.Stream("lines", serde.String, serde.String).
		FlatMapValues(func(line string, emit func(string)) {
			for _, word := range strings.Fields(line) {
				emit(word)
			}
		}).
		To("words")
	play(b, "words", in{"lines", "a", "to be or", 1})
	// Output:
	// a: to at 1
	// a: be at 1
	// a: or at 1
}

func ExampleStream_Split() {
	b := topology.NewBuilder("split")
	split := b.Stream("in", serde.String, serde.String).Split(topology.Name("by-size-"))
	long := split.Branch(func(_, v string) bool { return len(v) > 3 }, topology.Name("long"))
	rest := split.Default(topology.Name("rest"))
	long.MapValues(func(v string) string { return v + " is long" }).Merge(rest).To("out")
	play(b, "out", in{"in", "k", "short", 1}, in{"in", "k", "abc", 2})
	// Output:
	// k: short is long at 1
	// k: abc at 2
}

func ExampleStream_DedupBy() {
	b := topology.NewBuilder("dedup")
	b.Stream("events", serde.String, serde.String).
		DedupBy(func(v string) string { return v }, time.Second, topology.Name("once"), topology.Store("seen")).
		To("out")
	play(b, "out",
		in{"events", "k", "event 1", 0},
		in{"events", "k", "event 1", 500}, // again: dropped
		in{"events", "k", "event 2", 700},
		in{"events", "k", "event 1", 1500}, // forgotten by now
	)
	// Output:
	// k: event 1 at 0
	// k: event 2 at 700
	// k: event 1 at 1500
}

func ExampleStream_ToDynamic() {
	b := topology.NewBuilder("route")
	b.Stream("in", serde.String, serde.String).ToDynamic(func(k, _ string) string { return "to-" + k })
	play(b, "to-b", in{"in", "a", "1", 1}, in{"in", "b", "2", 2})
	// Output:
	// b: 2 at 2
}

// counter counts the records of each key in a store.
type counter struct {
	store func(processors.BaseContext) (counts, error)
	ctx   processors.ProcessorContext[string, string]
	seen  counts
}

type counts interface {
	Get(key string) (int64, bool, error)
	Put(key string, n int64) error
}

func (c *counter) Init(ctx processors.ProcessorContext[string, string]) (err error) {
	c.ctx = ctx
	c.seen, err = c.store(ctx)
	return err
}

func (c *counter) Process(r *processors.Record[string, string]) error {
	n, _, err := c.seen.Get(r.Key)
	if err != nil {
		return err
	}
	if err := c.seen.Put(r.Key, n+1); err != nil {
		return err
	}
	out := *r
	out.Value = fmt.Sprint(n + 1)
	return c.ctx.Forward(&out)
}

func (*counter) Close() error { return nil }

func ExampleStream_Process() {
	seen := topology.KeyValueStore("seen", serde.String, serde.Int64)
	b := topology.NewBuilder("processor")
	b.Stream("in", serde.String, serde.String).
		Process(func() processors.Processor[string, string, string, string] {
			return &counter{store: func(ctx processors.BaseContext) (counts, error) {
				return processors.KeyValueStore(ctx, seen)
			}}
		}, topology.Provide(seen)).
		To("out")
	play(b, "out", in{"in", "a", "x", 1}, in{"in", "b", "x", 2}, in{"in", "a", "x", 3})
	// Output:
	// a: 1 at 1
	// b: 1 at 2
	// a: 2 at 3
}

func ExampleBuilder_AddProcessor() {
	seen := topology.KeyValueStore("seen", serde.String, serde.Int64)
	b := topology.NewBuilder("nodes")
	b.AddSource("read", []string{"in"}, serde.String, serde.String)
	b.AddProcessor("count", func() processors.Processor[string, string, string, string] {
		return &counter{store: func(ctx processors.BaseContext) (counts, error) {
			return processors.KeyValueStore(ctx, seen)
		}}
	}, []string{"read"})
	b.AddStore(seen, "count")
	b.AddSink("write", "out", serde.String, serde.String, []string{"count"})
	play(b, "out", in{"in", "a", "x", 1}, in{"in", "a", "x", 2})
	// Output:
	// a: 1 at 1
	// a: 2 at 2
}
