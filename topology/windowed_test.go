package topology_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// windowed is a key in a window as it is written to topics.
func windowed(key string, start uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(key), start))
}

// windowedCounts are the counts of a stream of text in windows of 10 ms.
func windowedCounts(b *topology.Builder) *topology.WindowedTable[string, int64] {
	return b.Stream("in", serde.String, serde.String).GroupByKey().Windowed(topology.Tumbling(10 * time.Millisecond)).Count()
}

func late(w topology.Window[string], _ int64) bool { return w.Window.Start >= 10 }

func two(_ topology.Window[string], n int64) bool { return n == 2 }

// A result that passes a filter of a windowed table no more is a deletion, as in every table, and one that never passed is nothing.
func TestOperatorsOfWindowedTables(t *testing.T) {
	b := topology.NewBuilder("app")
	windowedCounts(b).
		Filter(late).
		FilterNot(two).
		MapValues(func(n int64) string { return fmt.Sprint(n) }).
		MapValuesWithKey(func(w topology.Window[string], n string) string { return fmt.Sprint(w.Key, n, "@", w.Window.Start) }).
		ToStream().To("out")
	got, err := feed(t, b, message{"k", "", 1}, message{"k", "", 11}, message{"k", "", 12}, message{"k", "", 13})
	if err != nil {
		t.Fatal(err)
	}
	want := []message{{windowed("k", 10), "k1@10", 11}, {windowed("k", 10), "-", 12}, {windowed("k", 10), "k3@10", 13}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(message{})); d != "" {
		t.Error(d)
	}
}

// passing sends on what it is given, without its window.
type passing struct {
	ctx processors.ProcessorContext[string, string]
}

func (p *passing) Init(ctx processors.ProcessorContext[string, string]) error {
	p.ctx = ctx
	return nil
}

func (p *passing) Process(r *processors.Record[topology.Window[string], string]) error {
	p.ctx.Forward(&processors.Record[string, string]{Key: "processed " + r.Key.Key, Value: r.Value, Timestamp: r.Timestamp})
	return nil
}

func (p *passing) Close() error { return nil }

// Each operator of a windowed stream gets the same three records, and sees their windows.
func TestOperatorsOfWindowedStreams(t *testing.T) {
	b := topology.NewBuilder("app")
	var peeked, ended []string
	say := func(to *[]string) func(topology.Window[string], string) {
		return func(w topology.Window[string], v string) {
			*to = append(*to, fmt.Sprint(w.Window.Start, "-", w.Window.End, " ", w.Key, v))
		}
	}
	s := windowedCounts(b).ToStream().Filter(late).FilterNot(two).MapValues(func(n int64) string { return fmt.Sprint(n) }).Peek(say(&peeked))
	s.ForEach(say(&ended))
	s.FlatMap(func(w topology.Window[string], v string, emit func(string, string)) {
		emit("flat "+w.Key, v+"a")
		emit("flat "+w.Key, v+"b")
	}).To("out")
	s.Process(func() processors.Processor[topology.Window[string], string, string, string] { return &passing{} }).To("out")
	topology.Flatten(s).Map(func(w topology.Window[string], v string) (string, string) { return "flattened " + w.Key, v }).To("out")
	s.GroupBy(func(w topology.Window[string], _ string) string { return "grouped" }).Count().ToStream().
		MapValues(func(n int64) string { return fmt.Sprint(n) }).To("out")
	got, err := feed(t, b, message{"k", "", 1}, message{"k", "", 11}, message{"l", "", 12}, message{"k", "", 13}, message{"k", "", 14})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"10-20 k1", "10-20 l1", "10-20 k3"}; !slices.Equal(peeked, want) || !slices.Equal(ended, want) {
		t.Errorf("peeked at %v, ended with %v, want %v", peeked, ended, want)
	}
	var want []message
	for i, in := range []message{{"k", "1", 11}, {"l", "1", 12}, {"k", "3", 14}} {
		want = append(want, message{"flat " + in.key, in.value + "a", in.at}, message{"flat " + in.key, in.value + "b", in.at},
			message{"processed " + in.key, in.value, in.at}, message{"flattened " + in.key, in.value, in.at}, message{"grouped", fmt.Sprint(i + 1), in.at})
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(message{})); d != "" {
		t.Error(d)
	}
}

// With DropOlder a record whose duplicates are forgotten already is dropped, and passes without.
func TestDropOlder(t *testing.T) {
	for _, drop := range []bool{false, true} {
		b, want := topology.NewBuilder("app"), []message{{"k", "a", 0}, {"k", "b", 1000}}
		var opts []topology.Option
		if drop {
			opts = append(opts, topology.DropOlder())
		} else {
			want = append(want, message{"k", "a", 0})
		}
		b.Stream("in", serde.String, serde.String).DedupBy(func(v string) string { return v }, 100*time.Millisecond, opts...).To("out")
		got, err := feed(t, b, message{"k", "a", 0}, message{"k", "a", 1}, message{"k", "b", 1000}, message{"k", "a", 0})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(message{})); d != "" {
			t.Errorf("DropOlder %v: %s", drop, d)
		}
	}
}
