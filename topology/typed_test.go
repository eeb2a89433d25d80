package topology_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// message is a record of text.
type message struct {
	key   string
	value string // "-" is a null
	at    int64
}

// feed runs a topology on records of the topic "in" and returns what is in "out", and the error that stopped it.
func feed(t *testing.T, b *topology.Builder, records ...message) (out []message, failed error) {
	t.Helper()
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d, err := topologytest.Open(plan)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	input := topologytest.Input(d, "in", serde.String, serde.String)
	for _, r := range records {
		err := input.Send(topologytest.Message[string, string]{Key: r.key, Value: r.value, ValueNull: r.value == "-", Timestamp: r.at})
		if err != nil {
			return nil, err
		}
	}
	for _, m := range topologytest.Output(d, "out", serde.String, serde.String).Read() {
		value := m.Value
		if m.ValueNull {
			value = "-"
		}
		out = append(out, message{m.Key, value, m.Timestamp})
	}
	return out, nil
}

func TestNullInAStreamOfValuesThatCannotHoldIt(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).To("out")
	_, err := feed(t, b, message{"k", "-", 1})
	var bad *processors.DeserializationError
	if !errors.As(err, &bad) || bad.What != "value" || !strings.Contains(err.Error(), "*string") {
		t.Errorf("error %v, want a deserialization error that advises *string", err)
	}
}

func TestNullInAStreamOfPointers(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.Ptr(serde.String)).
		MapValues(func(v *string) string { return or(v, "nothing") }).
		To("out")
	got, err := feed(t, b, message{"k", "-", 1}, message{"k", "v", 2})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]message{{"k", "nothing", 1}, {"k", "v", 2}}, got, cmp.AllowUnexported(message{})); diff != "" {
		t.Error(diff)
	}
}

func TestDeletesPassFunctionsOfValuesUnseen(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Table("in", serde.String, serde.String).
		MapValues(strings.ToUpper).
		ToStream().
		Filter(func(_, v string) bool { return v == "A" }).
		MapValues(func(v string) string { return v + "!" }).
		To("out")
	got, err := feed(t, b, message{"k", "a", 1}, message{"k", "b", 2}, message{"k", "-", 3})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]message{{"k", "A!", 1}, {"k", "-", 3}}, got, cmp.AllowUnexported(message{})); diff != "" {
		t.Error(diff)
	}
}

func TestDeletesFailInFunctionsThatMakeKeys(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Table("in", serde.String, serde.String).ToStream().
		SelectKey(func(_, v string) string { return v }).
		To("out")
	_, err := feed(t, b, message{"k", "-", 1})
	var bad *processors.ProcessingError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "topology.Changes") {
		t.Errorf("error %v, want a processing error that points to topology.Changes", err)
	}
}

func TestErrorsAndPanicsOfFunctionsAreProcessingErrors(t *testing.T) {
	for name, f := range map[string]func(k, v string) (string, error){
		"error": func(_, _ string) (string, error) { return "", errors.New("can't") },
		"panic": func(_, _ string) (string, error) { panic("can't") },
	} {
		b := topology.NewBuilder("app")
		b.Stream("in", serde.String, serde.String).TryMapValues(f, topology.Name("mine")).To("out")
		_, err := feed(t, b, message{"k", "v", 1})
		var bad *processors.ProcessingError
		if !errors.As(err, &bad) || bad.Node != "mine" || !strings.Contains(err.Error(), "can't") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestSerdesAreInferred(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).
		MapValues(func(v string) order { return order{v} }, topology.ValueSerde(serde.JSON[order]())).
		Filter(func(_ string, o order) bool { return o.Region != "" }). // keeps it
		MapValues(func(o order) order { return o }).                    // of the same type
		GroupBy(region).                                                // through a topic
		Aggregate(func() int { return 0 }, func(_ string, _ order, n int) int { return n + 1 }).
		MapValues(func(n int) string { return strings.Repeat("*", n) }).
		ToStream().
		To("out")
	got, err := feed(t, b, message{"k", "north", 1}, message{"k", "north", 2})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]message{{"north", "*", 1}, {"north", "**", 2}}, got, cmp.AllowUnexported(message{})); diff != "" {
		t.Error(diff)
	}
}

// rows is a lake sink that is never opened.
type rows struct {
	place  string
	refuse error
}

func (r rows) String() string                        { return "test:rows" + r.place }
func (r rows) Bind(reflect.Type, reflect.Type) error { return r.refuse }
func (rows) Open(context.Context, sink.Env) (sink.Writer, error) {
	return nil, errors.New("not opened in this test")
}

func TestToLake(t *testing.T) {
	b := topology.NewBuilder("app")
	orders := b.Stream("orders", serde.String, serde.String)
	orders.ToLake(rows{place: "1"}, topology.Name("raw"))
	other := b.Stream("other", serde.String, serde.String)
	other.MapValues(strings.ToUpper).ToLake(rows{place: "2"}, topology.Name("upper"))
	orders.GroupBy(second, topology.Name("by-value")).Count(topology.Store("counts")).ToStream().ToLake(rows{})
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"app-LAKE-SINK-0000000011-lake", "app-by-value-repartition", "app-counts-changelog",
		"app-raw-lake", // its sub-topology also writes the repartition topic
	}
	if diff := cmp.Diff(want, plan.InternalTopics()); diff != "" {
		t.Errorf("internal topics: %s", diff)
	}
	if diff := cmp.Diff([]string{"LAKE-SINK-0000000011"}, plan.GeneratedNames()); diff != "" {
		t.Errorf("generated names: %s", diff)
	}
	lakes := 0
	for _, sub := range plan.Internal().Subtopologies {
		if sub.Lake {
			lakes++
		}
	}
	if lakes != 3 {
		t.Errorf("%d sub-topologies end only in lake sinks, want 3:\n%s", lakes, plan.Describe())
	}
}

func TestToLakeRefusesWhatTheTableRefuses(t *testing.T) {
	cause := errors.New("field F has no type")
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).ToLake(rows{refuse: cause}, topology.Name("x"))
	if _, err := b.Build(); !errors.Is(err, cause) || !strings.Contains(err.Error(), "x: rows of test:rows can't be made") {
		t.Errorf("Build: %v", err)
	}
}

func TestDedupByIDInAnyPartition(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).
		DedupBy(strings.ToUpper, time.Hour, topology.RepartitionByID(), topology.Name("once"), topology.Store("seen")).
		To("out")
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if !plan.Stores()["seen"].WrittenOnce {
		t.Error("the store of ids would keep them all in memory")
	}
	d := topologytest.New(t, plan, topologytest.Partitions(5))
	in := topologytest.Input(d, "in", serde.String, serde.String)
	for i, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := in.Pipe(key, []string{"x", "X", "y"}[i%3], int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := topologytest.Output(d, "out", serde.String, serde.String).Read(); len(got) != 2 {
		t.Errorf("%d records came out, want one of each id: %v", len(got), got)
	}
}

// A record without a key has an id, too: it is neither lost on the way nor taken for another.
func TestDedupByIDOfRecordsWithoutKeys(t *testing.T) {
	b := topology.NewBuilder("app")
	key := serde.Ptr(serde.String)
	b.Stream("in", key, serde.String).
		DedupBy(strings.ToUpper, time.Hour, topology.RepartitionByID(), topology.Name("once"), topology.Store("seen")).
		To("out")
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan, topologytest.Partitions(3))
	in := topologytest.Input(d, "in", key, serde.String)
	a := "a"
	for i, m := range []topologytest.Message[*string, string]{{Value: "x"}, {Value: "X"}, {Key: &a, Value: "x"}, {Value: "y"}} {
		m.Timestamp = int64(i)
		if err := in.SendTo(int32(i%3), m); err != nil {
			t.Fatal(err)
		}
	}
	if got := topologytest.Output(d, "out", key, serde.String).Read(); len(got) != 2 {
		t.Errorf("%d records came out, want one of each id: %v", len(got), got)
	}
}

// prefixer puts what a store says before each row's value.
type prefixer struct {
	store processors.Store[string, string]
	get   func(string) (string, bool, error)
}

func (p *prefixer) Init(ctx processors.BaseContext) error {
	s, err := processors.KeyValueStore(ctx, p.store)
	if err == nil {
		p.get = s.Get
	}
	return err
}

func (p *prefixer) Transform(key string, value *string) (string, error) {
	prefix, ok, err := p.get(key)
	if !ok {
		prefix = "none"
	}
	return prefix + " " + or(value, "null"), err
}

func (*prefixer) Close() error { return nil }

func TestTransformValuesReadsStores(t *testing.T) {
	b := topology.NewBuilder("app")
	store := topology.KeyValueStore("prefixes", serde.String, serde.String)
	b.AddStateStore(store)
	topology.Changes(b.Table("in", serde.String, serde.String).
		TransformValues(func() processors.ValueTransformer[string, string, string] { return &prefixer{store: store.Store} },
			topology.Stores("prefixes"), topology.Store("transformed"))).
		MapValues(func(v *string) string { return or(v, "deleted") }).
		To("out")
	got, err := feed(t, b, message{"k", "v", 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]message{{"k", "none v", 1}}, got, cmp.AllowUnexported(message{})); diff != "" {
		t.Error(diff)
	}
}

// A join of streams takes by ValueSerde a serde of its result, or of its left side: the type tells which.
func TestSerdesOfJoinedStreams(t *testing.T) {
	for name, opts := range map[string][]topology.Option{
		"result": {topology.ValueSerde(serde.JSON[order]())},
		"left":   {topology.ValueSerde(serde.String)},
	} {
		b := topology.NewBuilder("app")
		in := b.Stream("in", serde.String, serde.String)
		joined := in.JoinStream(b.Stream("other", serde.String, serde.String), func(l, r string) order { return order{l + r} }, topology.JoinWithin(time.Second), opts...)
		if name == "left" {
			joined.To("out", topology.ValueSerde(serde.JSON[order]()))
		} else {
			joined.To("out")
		}
		plan, err := b.Build()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := topologytest.New(t, plan)
		topologytest.Input(d, "in", serde.String, serde.String).Pipe("k", "a", 1)
		topologytest.Input(d, "other", serde.String, serde.String).Pipe("k", "b", 2)
		if got := topologytest.Output(d, "out", serde.String, serde.JSON[order]()).Read(); len(got) != 1 || got[0].Value.Region != "ab" {
			t.Errorf("%s: got %v", name, got)
		}
	}
	b := topology.NewBuilder("app")
	in := b.Stream("in", serde.String, serde.String)
	in.JoinStream(in, func(l, r string) order { return order{l + r} }, topology.JoinWithin(time.Second), topology.ValueSerde(serde.Int64)).ForEach(func(string, order) {})
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "a serde for int64") {
		t.Errorf("a serde of neither: %v", err)
	}
}

// A join with grace takes the serde of what it holds back where the stream doesn't know it, whatever the type of its result.
func TestValuesThatAJoinWithGraceHoldsBack(t *testing.T) {
	declare := func(opts ...topology.Option) *topology.Builder {
		b := topology.NewBuilder("app")
		table := table2(b, "names", topology.Store("names"), topology.Versioned(time.Hour))
		strings2(b, "in").MapValues(func(region string) order { return order{region} }).
			Join(table, func(o order, name string) string { return o.Region + name }, append(opts, topology.JoinGrace(0))...).To("out")
		return b
	}
	if _, err := declare().Build(); err == nil {
		t.Error("it was built, and nothing says how an order becomes bytes")
	}
	b := declare(topology.ValueSerde(serde.JSON[order]()))
	out, err := feed(t, b, message{"k", "north", 1})
	if err != nil || len(out) != 0 { // there is no row yet
		t.Errorf("%v, %v", out, err)
	}
	if _, err := declare(topology.ValueSerde(serde.Int64)).Build(); err == nil || !strings.Contains(err.Error(), "ValueSerde is a serde for int64") {
		t.Errorf("a serde of neither type: %v", err)
	}
}
