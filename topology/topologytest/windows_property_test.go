package topologytest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

const (
	windowSize  = 10
	windowStep  = 4
	windowGrace = 1000
)

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// windows aggregates one stream in windows of every kind. An aggregate is the sum of the values, and how many there are. The topics
// that end in "Final" have each window's result once.
func windows() *topology.Builder {
	b := topology.NewBuilder("windows")
	in := b.Stream("in", serde.String, serde.Int64).GroupByKey()
	add := func(out string, w topology.Windows, opts ...topology.Option) *topology.WindowedTable[string, string] {
		t := in.Windowed(w.Grace(millis(windowGrace)), opts...).
			Aggregate(func() string { return "0/0" }, addTo, topology.Store(out), topology.ValueSerde(serde.String))
		send(t, out)
		return t
	}
	tumbling, hopping := topology.Tumbling(millis(windowSize)), topology.Hopping(millis(windowSize), millis(windowStep))
	sliding := topology.Sliding(millis(windowSize))
	send(add("tumbling", tumbling).EmitFinal(), "tumblingFinal")
	send(add("hopping", hopping).EmitFinal(), "hoppingFinal")
	send(add("sliding", sliding).EmitFinal(), "slidingFinal")
	add("tumblingClosed", tumbling, topology.EmitOnClose())
	add("hoppingClosed", hopping, topology.EmitOnClose())
	add("slidingClosed", sliding, topology.EmitOnClose())
	sessions := func(out string, opts ...topology.Option) *topology.WindowedTable[string, string] {
		t := in.Sessions(topology.Session(millis(windowSize)).Grace(millis(windowGrace)), opts...).
			Aggregate(func() string { return "0/0" }, addTo, mergeTo, topology.Store(out), topology.ValueSerde(serde.String))
		send(t, out)
		return t
	}
	send(sessions("sessions").EmitFinal(), "sessionsFinal")
	sessions("sessionsClosed", topology.EmitOnClose())
	return b
}

func send(t *topology.WindowedTable[string, string], topic string) {
	topology.Changes(topology.FlattenTable(t)). // sessions that are joined are deleted
							SelectKey(func(w topology.Window[string], _ *string) string {
			return windowName(w.Key, w.Window.Start, w.Window.End)
		}).
		To(topic, topology.KeySerde(serde.String), topology.ValueSerde(serde.Ptr(serde.String)))
}

func windowName(key string, start, end int64) string {
	return fmt.Sprintf("%s[%d,%d]", key, start, end)
}

func addTo(_ string, n int64, agg string) string { return mergeTo("", agg, fmt.Sprintf("%d/1", n)) }

func mergeTo(_ string, a, b string) string {
	var sumA, countA, sumB, countB int64
	fmt.Sscanf(a, "%d/%d", &sumA, &countA)
	fmt.Sscanf(b, "%d/%d", &sumB, &countB)
	return fmt.Sprintf("%d/%d", sumA+sumB, countA+countB)
}

// measured is one input record.
type measured struct {
	key      string
	value    int64
	at       int64
	position int // in the order of reading
}

func measurements(t *rapid.T) []measured {
	all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) measured {
		return measured{
			key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), value: rapid.Int64Range(1, 5).Draw(t, "value"),
			at: rapid.Int64Range(0, 60).Draw(t, "at"), position: rapid.IntRange(0, 1000).Draw(t, "position"),
		}
	}), 1, 15).Draw(t, "records")
	slices.SortStableFunc(all, func(a, b measured) int { return a.position - b.position })
	return all
}

// batch computes all windows at once, from all records.
func batch(all []measured) map[string]map[string]string {
	want := map[string]map[string]string{"tumbling": {}, "hopping": {}, "sliding": {}, "sessions": {}}
	for _, key := range []string{"a", "b", "c"} {
		var mine []measured
		for _, m := range all {
			if m.key == key {
				mine = append(mine, m)
			}
		}
		fill := func(kind string, start, end, last int64) { // last is the last ms in the window
			agg := "0/0"
			for _, m := range mine {
				if start <= m.at && m.at <= last {
					agg = addTo("", m.value, agg)
				}
			}
			if agg != "0/0" {
				want[kind][windowName(key, start, end)] = agg
			}
		}
		for start := int64(0); start <= 60; start++ {
			if start%windowSize == 0 {
				fill("tumbling", start, start+windowSize, start+windowSize-1)
			}
			if start%windowStep == 0 {
				fill("hopping", start, start+windowSize, start+windowSize-1)
			}
		}
		for _, m := range mine {
			start := max(0, m.at-windowSize)
			fill("sliding", start, start+windowSize, start+windowSize) // ends at the record
			fill("sliding", m.at+1, m.at+1+windowSize, m.at+1+windowSize)
		}
		slices.SortFunc(mine, func(a, b measured) int { return int(a.at - b.at) })
		for i := 0; i < len(mine); {
			j := i
			for j+1 < len(mine) && mine[j+1].at-mine[j].at <= windowSize {
				j++
			}
			fill("sessions", mine[i].at, mine[j].at, mine[j].at)
			i = j + 1
		}
	}
	return want
}

// Every windowed aggregate of records that come in any order within grace is what a batch computation says, and each final result comes
// out once, over any partitions and whatever happens meanwhile.
func TestWindowsInAnyWeather(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := measurements(t)
		w := inWeather(t, windows)
		in := topologytest.Input(w.Driver, "in", serde.String, serde.Int64)
		for _, m := range all {
			w.must(in.Pipe(m.key, m.value, m.at))
			w.blow()
		}
		for p := range max(w.partitions, 1) { // closes all windows
			w.must(in.SendTo(p, topologytest.Message[string, int64]{Key: "end", Timestamp: 10 * windowGrace}))
		}
		w.settle()
		for kind, want := range batch(all) {
			for _, how := range []string{"", "Final", "Closed"} {
				compareWindows(t, w, kind+how, want, how != "")
			}
		}
	})
}

func compareWindows(t *rapid.T, w *weather, topic string, want map[string]string, once bool) {
	got := map[string]string{}
	for _, m := range topologytest.Output(w.Driver, topic, serde.String, serde.String).Read() {
		if strings.HasPrefix(m.Key, "end") {
			continue
		}
		if _, again := got[m.Key]; again && once {
			t.Errorf("%s: %s came out twice", topic, m.Key)
		}
		if got[m.Key] = m.Value; m.ValueNull {
			delete(got, m.Key)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", topic, got, want)
	}
}
