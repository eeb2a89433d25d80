package topologytest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// quotes joins trades with the price that held at their time, and holds each trade back until no price can come any more.
func quotes() *topology.Builder {
	b := topology.NewBuilder("quotes")
	prices := b.Table("prices", serde.String, serde.String, topology.Store("prices"), topology.Versioned(millis(100*joinGrace)))
	trades := b.Stream("trades", serde.String, serde.String).SelectKey(func(k, _ string) string { return k })
	text, grace := topology.ValueSerde(serde.String), topology.JoinGrace(millis(joinGrace))
	trades.Join(prices, func(l, r string) string { return l + "+" + r }, grace, text).To("inner")
	trades.LeftJoin(prices, func(l string, r *string) string { return l + "+" + orNone(r) }, grace, text).To("leftJoin")
	return b
}

// asOf is the price that holds for a trade: of those with the largest time up to the trade's, the one that came last.
func asOf(all []meeting, trade meeting) string {
	price, at := "none", int64(-1)
	for i, m := range all {
		if !m.left && m.key == trade.key && m.at <= trade.at && m.at >= at {
			price, at = m.value, m.at
			if deletes(all, i) {
				price = "none"
			}
		}
	}
	return price
}

// deletes says whether a price is a delete: every third one, but for those with the time of a price before them, which versioned stores
// can forget (docs/semantics/tables.md).
func deletes(all []meeting, i int) bool {
	same := func(m meeting) bool { return !m.left && m.key == all[i].key && m.at == all[i].at }
	return i%3 == 2 && !slices.ContainsFunc(all[:i], same)
}

// Each trade is joined, once, with the price that held at its time, in whatever order trades and prices come within grace, over any partitions,
// and whatever happens meanwhile.
func TestJoinWithGraceInAnyWeather(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := meet(t)
		w := inWeather(t, quotes)
		trades := topologytest.Input(w.Driver, "trades", serde.String, serde.String)
		prices := topologytest.Input(w.Driver, "prices", serde.String, serde.String)
		want := map[string][]string{"inner": nil, "leftJoin": nil}
		for i, m := range all {
			switch {
			case m.left:
				w.must(trades.Pipe(m.key, m.value, m.at))
				price := asOf(all, m)
				if add(want, m.value+"+"+price, "leftJoin"); price != "none" {
					add(want, m.value+"+"+price, "inner")
				}
			case deletes(all, i):
				w.must(prices.PipeNull(m.key, m.at))
			default:
				w.must(prices.Pipe(m.key, m.value, m.at))
			}
			w.blow()
		}
		w.settle()
		for i := range 40 { // lets all go: enough keys to reach every partition
			w.must(trades.Pipe(fmt.Sprint("end", i), "end", 10*joinGrace))
		}
		w.settle()
		for topic, want := range want {
			var got []string
			for _, m := range topologytest.Output(w.Driver, topic, serde.String, serde.String).Read() {
				if m.Value != "end+none" {
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

// groups sums up two streams together, in all, in tumbling windows and in sessions.
func groups() *topology.Builder {
	b := topology.NewBuilder("groups")
	left := b.Stream("left", serde.String, serde.Int64).GroupByKey()
	right := b.Stream("right", serde.String, serde.Int64).GroupBy(func(k string, _ int64) string { return k })
	twice := func(k string, n int64, agg string) string { return addTo(k, 2*n, agg) }
	none := func() string { return "0/0" }
	cogrouped := left.Cogroup(addTo).Cogroup(right, twice)
	cogrouped.Aggregate(none, topology.Store("all"), topology.ValueSerde(serde.String)).ToStream().To("all")
	send(cogrouped.Windowed(topology.Tumbling(millis(windowSize)).Grace(millis(windowGrace))).
		Aggregate(none, topology.Store("tumbling"), topology.ValueSerde(serde.String)), "tumbling")
	send(cogrouped.Sessions(topology.Session(millis(windowSize)).Grace(millis(windowGrace))).
		Aggregate(none, mergeTo, topology.Store("sessions"), topology.ValueSerde(serde.String)), "sessions")
	return b
}

// Streams that are grouped together give what a batch computation over both says, in whatever order their records come within grace, over
// any partitions, and whatever happens meanwhile.
func TestCogroupsInAnyWeather(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := measurements(t)
		w := inWeather(t, groups)
		left := topologytest.Input(w.Driver, "left", serde.String, serde.Int64)
		right := topologytest.Input(w.Driver, "right", serde.String, serde.Int64)
		sums := map[string]string{}
		for i := range all {
			m := &all[i]
			if rapid.Bool().Draw(t, "left") {
				w.must(left.Pipe(m.key, m.value, m.at))
			} else {
				w.must(right.Pipe(m.key, m.value, m.at))
				m.value *= 2
			}
			w.blow()
			if sums[m.key] == "" {
				sums[m.key] = "0/0"
			}
			sums[m.key] = addTo("", m.value, sums[m.key])
		}
		w.settle()
		compareWindows(t, w, "all", sums, false)
		want := batch(all)
		compareWindows(t, w, "tumbling", want["tumbling"], false)
		compareWindows(t, w, "sessions", want["sessions"], false)
	})
}
