package topologytest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

const (
	joinBefore = 6
	joinAfter  = 9
	joinGrace  = 1000
)

// meetings joins two streams in every way, behind a repartition on one side, and one of them with itself.
func meetings() *topology.Builder {
	b := topology.NewBuilder("meetings")
	left := b.Stream("left", serde.String, serde.String).SelectKey(func(k, _ string) string { return k })
	right := b.Stream("right", serde.String, serde.String)
	within := topology.JoinWithin(millis(joinAfter)).Before(millis(joinBefore)).Grace(millis(joinGrace))
	text := topology.ValueSerde(serde.String)
	both := func(l, r string) string { return l + "+" + r }

	left.JoinStream(right, both, within, text).To("inner")
	left.LeftJoinStream(right, func(l string, r *string) string { return both(l, orNone(r)) }, within, text).To("leftJoin")
	left.OuterJoinStream(right, func(l, r *string) string { return both(orNone(l), orNone(r)) }, within, text).To("outer")
	right.JoinStream(right, both, within, text).To("self")
	return b
}

// meeting is a record of one of the streams.
type meeting struct {
	left       bool
	key, value string
	at         int64
}

func meet(t *rapid.T) []meeting {
	all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) meeting {
		return meeting{
			left: rapid.Bool().Draw(t, "left"), key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"),
			at: rapid.Int64Range(0, 40).Draw(t, "at"),
		}
	}), 1, 15).Draw(t, "records")
	for i := range all {
		all[i].value = fmt.Sprint(i)
	}
	return all
}

// joined is what comes out of the joins: what must, once each, and what may, once each. A record that comes after its window is over, though not
// its grace, is sent without a partner at once, as Kafka Streams does, and may find one later.
type joined struct{ must, may map[string][]string }

// nestedLoop joins all records with all others.
func nestedLoop(all []meeting) joined {
	out := joined{map[string][]string{"inner": nil, "leftJoin": nil, "outer": nil, "self": nil}, map[string][]string{}}
	meets := func(l, r meeting) bool {
		return l.key == r.key && l.at-joinBefore <= r.at && r.at <= l.at+joinAfter
	}
	for i, a := range all {
		met := false
		for j, b := range all {
			switch {
			case a.left && !b.left && meets(a, b):
				add(out.must, a.value+"+"+b.value, "inner", "leftJoin", "outer")
				met = true
			case !a.left && b.left && meets(b, a):
				met = true
			}
			if !a.left && !b.left && (i == j || meets(a, b)) {
				add(out.must, a.value+"+"+b.value, "self")
			}
		}
		alone := out.must
		if met {
			alone = out.may
		}
		if a.left {
			add(alone, a.value+"+none", "leftJoin", "outer")
		} else {
			add(alone, "none+"+a.value, "outer")
		}
	}
	return out
}

func add(to map[string][]string, value string, topics ...string) {
	for _, topic := range topics {
		to[topic] = append(to[topic], value)
	}
}

// Joined streams give each pair that a nested loop over all records finds, once, and each record without a partner, once, in whatever order
// records come within grace, over any partitions, and whatever happens meanwhile.
func TestJoinedStreamsInAnyWeather(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := meet(t)
		w := inWeather(t, meetings)
		left := topologytest.Input(w.Driver, "left", serde.String, serde.String)
		right := topologytest.Input(w.Driver, "right", serde.String, serde.String)
		for _, m := range all {
			in := right
			if m.left {
				in = left
			}
			w.must(in.Pipe(m.key, m.value, m.at))
			w.blow()
		}
		w.settle()          // what waits for a commit in front of a repartition topic would come too late
		for i := range 40 { // closes all windows: enough keys to reach every partition
			w.must(left.Pipe(fmt.Sprint("end", i), "end", 10*joinGrace))
			w.must(right.Pipe(fmt.Sprint("end", i), "end", 10*joinGrace))
		}
		w.settle()
		model := nestedLoop(all)
		for topic, want := range model.must {
			var got []string
			may := model.may[topic]
			for _, m := range topologytest.Output(w.Driver, topic, serde.String, serde.String).Read() {
				if i := slices.Index(may, m.Value); i >= 0 {
					may = slices.Delete(may, i, i+1)
				} else if !strings.HasPrefix(m.Key, "end") {
					got = append(got, m.Value)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d partitions, %s (-want +got):\n%s", w.partitions, topic, diff)
			}
		}
	})
}
