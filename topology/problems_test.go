package topology_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

type order struct{ Region string }

func strings2(b *topology.Builder, topic string) *topology.Stream[string, string] {
	return b.Stream(topic, serde.String, serde.String)
}

func table2(b *topology.Builder, topic string, opts ...topology.Option) *topology.Table[string, string] {
	return b.Table(topic, serde.String, serde.String, opts...)
}

func region(_ string, o order) string { return o.Region }

func second(_, b string) string { return b }

func passValues() processors.Processor[string, string, string, string] { return nil }

// TestProblems builds topologies with one mistake each.
func TestProblems(t *testing.T) {
	const (
		topo = topology.TopologyProblem
		arg  = topology.InvalidArgument
	)
	orders := func(b *topology.Builder) *topology.Stream[string, order] {
		return b.Stream("orders", serde.String, serde.JSON[order]())
	}
	other := topology.NewBuilder("other")
	tests := map[string]struct {
		build func(b *topology.Builder)
		kind  topology.ProblemKind
		want  string
	}{
		"nil filter":     {func(b *topology.Builder) { strings2(b, "t").Filter(nil) }, arg, "KSTREAM-FILTER-0000000001: the function is nil"},
		"nil map":        {func(b *topology.Builder) { strings2(b, "t").Map[string, string](nil) }, arg, "KSTREAM-MAP-0000000001: the function is nil"},
		"nil values":     {func(b *topology.Builder) { strings2(b, "t").MapValues[int64](nil) }, arg, "the function is nil"},
		"nil flat":       {func(b *topology.Builder) { strings2(b, "t").FlatMapValues[string](nil) }, arg, "the function is nil"},
		"nil branch":     {func(b *topology.Builder) { strings2(b, "t").Split().Branch(nil) }, arg, "KSTREAM-BRANCH-00000000011: the function is nil"},
		"nil extractor":  {func(b *topology.Builder) { strings2(b, "t").ToDynamic(nil) }, arg, "the function is nil"},
		"nil merge":      {func(b *topology.Builder) { strings2(b, "t").Merge(nil) }, arg, "the other stream is nil"},
		"nil processor":  {func(b *topology.Builder) { strings2(b, "t").Process[string, string](nil) }, arg, "the function is nil"},
		"nil table":      {func(b *topology.Builder) { strings2(b, "t").Join(nil, second).To("x") }, arg, "the table is nil"},
		"nil global":     {func(b *topology.Builder) { strings2(b, "t").JoinGlobal(nil, second, second) }, arg, "the global table is nil"},
		"nil right":      {func(b *topology.Builder) { table2(b, "t").Join(nil, second) }, arg, "the table is nil"},
		"nil foreign":    {func(b *topology.Builder) { table2(b, "t").JoinForeign(nil, second, second) }, arg, "the table is nil"},
		"nil table sink": {func(b *topology.Builder) { strings2(b, "t").ToLake(nil) }, arg, "the table is nil"},
		"nil store":      {func(b *topology.Builder) { b.AddStateStore(nil) }, arg, "a store is nil"},
		"nil serde":      {func(b *topology.Builder) { b.Stream[string, string]("t", nil, serde.String) }, arg, "the serde of the key is nil"},
		"other builder":  {func(b *topology.Builder) { strings2(b, "t").Merge(strings2(other, "t")) }, arg, "belongs to another Builder"},
		"no topics":      {func(b *topology.Builder) { b.Streams(nil, serde.String, serde.String) }, topo, "no topic to read"},
		"bad topic":      {func(b *topology.Builder) { strings2(b, "a b") }, arg, "not a topic"},
		"bad name": {func(b *topology.Builder) {
			strings2(b, "t").Filter(func(string, string) bool { return true }, topology.Name("not ok!"))
		},
			topo, `option Name: the name "not ok!" has a character`},
		"bad store name": {func(b *topology.Builder) { table2(b, "t", topology.Store("")) }, topo, "option Store: the name is empty"},
		"name used twice": {func(b *topology.Builder) {
			strings2(b, "t").MapValues(strings.ToUpper, topology.Name("x")).MapValues(strings.ToUpper, topology.Name("x"))
		}, topo, "x: the name is used by another node already (problems_test.go:"},
		"table twice": {func(b *topology.Builder) { table2(b, "t"); table2(b, "t") }, topo, "topic t is read by source"},
		"two types of one topic": {func(b *topology.Builder) {
			strings2(b, "t")
			b.Stream("t", serde.String, serde.Int64)
		}, arg, "as string and string, this one as string and int64"},
		"useless option": {func(b *topology.Builder) { strings2(b, "t").MapValues(strings.ToUpper, topology.Retention(time.Hour)) },
			arg, "no use for the option Retention; it takes Name, KeySerde, ValueSerde"},
		"empty option": {func(b *topology.Builder) { strings2(b, "t").To("x", topology.Option{}) }, arg, "an option is empty"},
		"serde of another type": {func(b *topology.Builder) { strings2(b, "t").To("x", topology.KeySerde(serde.Int64)) },
			arg, "option KeySerde is a serde for int64, but the key's type is string"},
		"serde of a pointer": {func(b *topology.Builder) {
			strings2(b, "t").MapValues(func(v string) order { return order{v} }, topology.ValueSerde(serde.JSON[*order]())).To("x")
		}, arg, "KSTREAM-MAPVALUES-0000000001: option ValueSerde is a serde for *topology_test.order, but the value's type is topology_test.order"},
		"serde of a joined stream's own values": {func(b *topology.Builder) {
			strings2(b, "t").SelectKey(func(_, v string) string { return v }).Join(table2(b, "u"), func(a, _ string) order { return order{a} }, topology.ValueSerde(serde.String))
		}, arg, "option ValueSerde is a serde for string, the stream's values, but that of a join is for its result, topology_test.order"},
		"unknown serde of a sink": {func(b *topology.Builder) {
			strings2(b, "t").MapValues(func(v string) order { return order{v} }).To("x")
		}, arg, "KSTREAM-SINK-0000000002: no serde is known for the value (topology_test.order): give topology.ValueSerde(serde.JSON[topology_test.order]())"},
		"unknown serde of a repartition": {func(b *topology.Builder) {
			strings2(b, "t").Map(func(k, v string) (string, order) { return k, order{v} }).GroupByKey().Count()
		}, arg, "repartition topic KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition: no serde is known for the value"},
		"unknown serde of a store": {func(b *topology.Builder) {
			strings2(b, "t").GroupByKey().Aggregate(func() order { return order{} }, func(_, _ string, o order) order { return o })
		}, arg, "KSTREAM-AGGREGATE-0000000002: rows can't be stored"},
		"window of no size": {func(b *topology.Builder) { strings2(b, "t").GroupByKey().Windowed(topology.Tumbling(0)).Count() },
			arg, "a size of at least a millisecond"},
		"hop over the size": {func(b *topology.Builder) { strings2(b, "t").GroupByKey().Windowed(topology.Hopping(10, 11)).Count() },
			arg, "a size of at least a millisecond"},
		"hop over the size in ms": {func(b *topology.Builder) {
			strings2(b, "t").GroupByKey().Windowed(topology.Hopping(10*time.Millisecond, 11*time.Millisecond)).Count()
		}, arg, "at most their size"},
		"negative grace": {func(b *topology.Builder) {
			strings2(b, "t").GroupByKey().Windowed(topology.Tumbling(time.Second).Grace(-1)).Count()
		}, arg, "grace of windows can't be negative"},
		"negative gap": {func(b *topology.Builder) { strings2(b, "t").GroupByKey().Sessions(topology.Session(-1)).Count() },
			arg, "gap of sessions can't be negative"},
		"gap below a millisecond": {func(b *topology.Builder) {
			strings2(b, "t").GroupByKey().Sessions(topology.Session(time.Microsecond)).Count()
		},
			arg, "the gap of sessions is counted in ms, this is 1µs"},
		"empty place": {func(b *topology.Builder) { strings2(b, "t").ToLake(lake.Delta("")) }, arg, "the place of the table is empty"},
		"two sinks in one table": {func(b *topology.Builder) {
			strings2(b, "t").ToLake(lake.Delta("/data/x"), topology.Name("one"))
			strings2(b, "u").ToLake(lake.Delta("/data/x"), topology.Name("two"))
		}, arg, "two: the table delta:/data/x is the one of sink one already"},
		"no windows": {func(b *topology.Builder) { strings2(b, "t").GroupByKey().Windowed(topology.Windows{}).Count() },
			arg, "the windows are empty"},
		"short retention": {func(b *topology.Builder) {
			strings2(b, "t").GroupByKey().Windowed(topology.Tumbling(time.Minute).Grace(time.Minute)).Count(topology.Retention(time.Minute))
		}, arg, "for 120000 ms, but the retention is 60000 ms"},
		"close of what never closes": {func(b *topology.Builder) {
			strings2(b, "t").GroupByKey().Windowed(topology.Unlimited(time.UnixMilli(0)), topology.EmitOnClose()).Count()
		}, arg, "never close"},
		"final of what never closes": {func(b *topology.Builder) {
			strings2(b, "t").GroupByKey().Windowed(topology.Unlimited(time.UnixMilli(0))).Count().EmitFinal()
		}, topo, "the results would never come out: unlimited windows don't close"},
		"final without windows": {func(b *topology.Builder) { table2(b, "t").Suppress(topology.UntilWindowCloses()) },
			topo, "only results of windowed aggregations can wait"},
		"final that is emitted early": {func(b *topology.Builder) {
			strings2(b, "t").GroupByKey().Windowed(topology.Tumbling(time.Second)).Count().Suppress(topology.UntilWindowCloses().MaxRecords(1))
		}, arg, "can't be emitted early"},
		"versioned suppression": {func(b *topology.Builder) {
			table2(b, "t", topology.Store("v"), topology.Versioned(time.Hour)).Suppress(topology.UntilTimeLimit(time.Second))
		}, topo, "a versioned table can't be suppressed"},
		"versioned without a name": {func(b *topology.Builder) { table2(b, "t", topology.Versioned(time.Hour)) },
			arg, "option Versioned needs option Store"},
		"versioned global table": {func(b *topology.Builder) {
			b.GlobalTable("t", serde.String, serde.String, topology.Store("v"), topology.Versioned(time.Hour))
		}, topo, "a global table can't be versioned"},
		"grace of a plain table": {func(b *topology.Builder) {
			strings2(b, "s").Join(table2(b, "t"), second, topology.JoinGrace(time.Second)).To("x")
		}, arg, "a join with grace needs a versioned table"},
		"history shorter than the grace": {func(b *topology.Builder) {
			strings2(b, "s").Join(table2(b, "t", topology.Store("v"), topology.Versioned(time.Second)), second, topology.JoinGrace(time.Minute)).To("x")
		}, arg, "shorter than the grace"},
		"join windows that end before they begin": {func(b *topology.Builder) {
			strings2(b, "s").JoinStream(strings2(b, "t"), second, topology.JoinWithin(time.Second).After(-time.Minute))
		}, arg, "end before they begin"},
		"ids that are not remembered": {func(b *topology.Builder) { strings2(b, "s").DedupBy(strings.ToUpper, 0) },
			arg, "ids must be remembered"},
		"no partitions": {func(b *topology.Builder) { strings2(b, "s").Repartition(topology.Partitions(0)) },
			arg, "no number of partitions"},
		"unknown store": {func(b *topology.Builder) { strings2(b, "s").Process(passValues, topology.Stores("nope")) },
			topo, "the store nope is unknown"},
		"two stores of one name": {func(b *topology.Builder) {
			b.AddStateStore(topology.KeyValueStore("x", serde.String, serde.String))
			b.AddStateStore(topology.KeyValueStore("x", serde.String, serde.Int64))
		}, topo, "another store has this name"},
		"store of a wrong kind": {func(b *topology.Builder) {
			table2(b, "t", topology.StoreAs(state.Spec{Name: "x", Kind: state.Session}))
		}, arg, "a session store can't hold a table"},
		"a store of no rows": {func(b *topology.Builder) {
			b.AddStateStore(topology.KeyValueStore("x", serde.String, serde.String, topology.LRU(0)))
		}, arg, "store x: option LRU: 0 is no number of rows to keep"},
		"segments of no time": {func(b *topology.Builder) {
			table2(b, "t", topology.Store("x"), topology.VersionedSegments(time.Second, 0))
		}, arg, "segment 0s must be at least 1 ms"},
		"short window store": {func(b *topology.Builder) {
			b.AddStateStore(topology.WindowStore("w", serde.String, serde.String, time.Second, time.Minute))
		}, arg, "store w: windows of 60000 ms"},
		"generated names": {func(b *topology.Builder) { strings2(b, "t").GroupByKey().Count() },
			topo, "names are strict"},
		"types of the Processor API": {func(b *topology.Builder) {
			b.AddSource("in", []string{"t"}, serde.String, serde.Int64)
			b.AddProcessor("p", passValues, []string{"in"})
		}, arg, "takes string and string, but its parent in sends string and int64"},
		"timestamps of other types": {func(b *topology.Builder) {
			strings2(b, "t")
			b.Stream("u", serde.String, serde.JSON[order](), topology.Timestamps(processors.LogAndSkip[string, string]()))
		}, arg, "option Timestamps is nil or for other types"},
		"branch after the default": {func(b *topology.Builder) {
			split := orders(b).Split()
			split.Default()
			split.Branch(func(string, order) bool { return true })
		}, topo, "has its default branch already"},
		"grouped by an unknown serde": {func(b *topology.Builder) {
			b.Stream("o", serde.String, serde.String).GroupBy(func(_, v string) order { return order{v} }).Count()
		}, arg, "no serde is known for the key (topology_test.order)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var opts []topology.BuilderOption
			if name == "generated names" {
				opts = append(opts, topology.StrictNames())
			}
			b := topology.NewBuilder("app", opts...)
			test.build(b)
			_, err := b.Build()
			var built *topology.BuildError
			if !errors.As(err, &built) {
				t.Fatalf("Build: %v, want a *BuildError with %q", err, test.want)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q\nhas not %q", err, test.want)
			}
			if got := built.Problems[0].Kind; got != test.kind {
				t.Errorf("kind %v, want %v: %v", got, test.kind, err)
			}
		})
	}
}

func TestAllProblemsInOneError(t *testing.T) {
	b := topology.NewBuilder("app")
	s := b.Stream("orders", serde.String, serde.JSON[order]())
	s.Filter(nil).GroupBy(region).Windowed(topology.Tumbling(0)).Count().ToStream().To("counts", topology.InMemory())
	s.ToLake(nil)
	_, err := b.Build()
	var built *topology.BuildError
	if !errors.As(err, &built) || len(built.Problems) != 4 {
		t.Fatalf("Build: %v, want 4 problems", err)
	}
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "built already") {
		t.Errorf("a second Build: %v", err)
	}
}
