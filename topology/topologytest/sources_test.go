package topologytest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// A source can take the wall clock for its records' event times.
func TestWallClockIsTheEventTime(t *testing.T) {
	b := topology.NewBuilder("clock", topology.TimestampsBy(func(*processors.RawRecord, int64) (int64, error) {
		return 0, errors.New("the source has its own")
	}))
	b.Stream("in", serde.String, serde.String, topology.WallClock()).To("out")
	b.Table("rows", serde.String, serde.String, topology.WallClock()).ToStream().To("changes")
	d := topologytest.New(t, built(t, b), topologytest.StartTime(time.UnixMilli(1000)))
	topologytest.Input(d, "in", serde.String, serde.String).Pipe("k", "v", 7)
	d.AdvanceWallClock(time.Second)
	topologytest.Input(d, "rows", serde.String, serde.String).Pipe("k", "v", 7)
	for topic, want := range map[string]int64{"out": 1000, "changes": 2000} {
		if got := topologytest.Output(d, topic, serde.String, serde.String).Read(); len(got) != 1 || got[0].Timestamp != want {
			t.Errorf("%s: %+v, want the time %d", topic, got, want)
		}
	}
}

// Windowed streams have what streams have, with functions that may fail.
func TestWindowedStreamOperators(t *testing.T) {
	b := topology.NewBuilder("windowed")
	counts := func(topic string) *topology.WindowedStream[string, int64] {
		return b.Stream(topic, serde.String, serde.String).GroupByKey().Windowed(topology.Tumbling(time.Second)).Count().ToStream()
	}
	failing := errors.New("three")
	var seen []int64
	all := counts("left").Merge(counts("right")).
		TryFilterNot(func(_ topology.Window[string], n int64) (bool, error) { return n == 2, nil }).
		TryPeek(func(_ topology.Window[string], n int64) error {
			if n == 3 {
				return failing
			}
			return nil
		}).
		FlatMapValues(func(_ topology.Window[string], n int64, emit func(int64)) { emit(n); emit(-n) })
	all.TryForEach(func(_ topology.Window[string], n int64) error { seen = append(seen, n); return nil })
	all.TryGroupBy(func(w topology.Window[string], n int64) (int64, error) { return n, nil }).Count().ToStream().To("out")
	all.TryFlatMap(func(w topology.Window[string], n int64, emit func(string, int64)) error { emit(w.Key, n); return nil }).To("flat")
	d := topologytest.New(t, built(t, b), topologytest.ErrorHandlers(processors.Handlers{Processing: processors.SkipOnError()}))
	for range 4 {
		topologytest.Input(d, "left", serde.String, serde.String).Pipe("a", "v", 1)
	}
	topologytest.Input(d, "right", serde.String, serde.String).Pipe("b", "v", 1)
	same(t, "seen", seen, []int64{1, -1, 4, -4, 1, -1})
	same(t, "grouped", pairs(topologytest.Output(d, "out", serde.Int64, serde.Int64).Read()),
		[]string{"1=1", "-1=1", "4=1", "-4=1", "1=2", "-1=2"})
	same(t, "flat", pairs(topologytest.Output(d, "flat", serde.String, serde.Int64).Read()), []string{"a=1", "a=-1", "a=4", "a=-4", "b=1", "b=-1"})
	same(t, "dropped", d.Dropped(), map[string]int64{processors.DroppedProcessing: 1})
}
