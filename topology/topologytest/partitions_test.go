package topologytest_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// shop joins orders with customers, counts by region in windows, and sums up by customer: stream, table, repartitions, windows.
func shop(opts ...topology.BuilderOption) (*topology.Plan, error) {
	b := topology.NewBuilder("shop", opts...)
	customers := b.Table("customers", serde.String, serde.String, topology.Store("customers"))
	orders := b.Stream("orders", serde.String, serde.Int64)
	orders.Join(customers, func(amount int64, region string) string { return fmt.Sprint(region, "/", amount) },
		topology.ValueSerde(serde.String)).
		GroupBy(func(_, v string) string { return v[:1] }).
		Windowed(topology.Tumbling(10 * time.Millisecond).Grace(time.Second)).
		Count(topology.Store("by-region")).
		ToStream().
		Map(func(w topology.Window[string], n int64) (string, int64) {
			return fmt.Sprint(w.Key, "@", w.Window.Start), n
		}).
		To("regions")
	orders.GroupByKey().
		Reduce(func(sum, amount int64) int64 { return sum + amount }, topology.Store("totals")).
		ToStream().To("totals")
	return b.Build()
}

// event is one input record.
type event struct {
	customer bool
	key      string
	region   string
	amount   int64
}

// The same input over 1, 2 and 7 partitions, in memory and on disk, with restarts, crashes and failing commits at random points, gives the
// same final tables, and each total once.
func TestFinalTablesDependOnNothingButTheInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys, regions := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.SampledFrom([]string{"north", "south"})
		var events []event
		for _, k := range []string{"a", "b", "c", "d", "e"} { // every order finds its customer
			events = append(events, event{customer: true, key: k, region: regions.Draw(t, "region")})
		}
		for range rapid.IntRange(1, 25).Draw(t, "orders") {
			events = append(events, event{key: keys.Draw(t, "key"), amount: rapid.Int64Range(1, 9).Draw(t, "amount")})
		}
		want := model(events)
		for _, n := range []int32{0, 1, 2, 7} {
			got := play(t, events, n)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%d partitions: got %v, want %v", n, got, want)
			}
		}
	})
}

// model is what must come out.
func model(events []event) map[string]int64 {
	region, out := map[string]string{}, map[string]int64{}
	for i, e := range events {
		if e.customer {
			region[e.key] = e.region
			continue
		}
		out["total "+e.key] += e.amount
		out[fmt.Sprint(region[e.key][:1], "@", i/10*10)]++
	}
	return out
}

func play(t *rapid.T, events []event, partitions int32) map[string]int64 {
	plan, err := shop()
	if err != nil {
		t.Fatal(err)
	}
	opts := []topologytest.Option{topologytest.Partitions(partitions)}
	if rapid.Bool().Draw(t, "manual commit") {
		opts = append(opts, topologytest.ManualCommit())
	}
	d, err := topologytest.Open(plan, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	customers := topologytest.Input(d, "customers", serde.String, serde.String)
	orders := topologytest.Input(d, "orders", serde.String, serde.Int64)
	failures := 0
	for i, e := range events {
		if e.customer {
			must(customers.Pipe(e.key, e.region, 0))
			must(d.Commit())
		} else {
			must(orders.Pipe(e.key, e.amount, int64(i)))
		}
		switch rapid.IntRange(0, 11).Draw(t, "then") {
		case 0:
			must(d.Restart())
		case 1:
			must(d.Crash())
		case 2:
			d.FailNext(topologytest.CommitOp, nil)
			failures++
		case 3:
			d.FailNext(topologytest.CommitReplyOp, nil)
			failures++
		case 4, 5:
			must(d.Commit())
		}
	}
	for range failures + 3 { // each failure takes one commit; then the records pass the sub-topologies on both sides of the repartition
		must(d.Commit())
	}
	out := map[string]int64{}
	for _, m := range topologytest.Output(d, "regions", serde.String, serde.Int64).Read() {
		out[m.Key] = max(out[m.Key], m.Value)
	}
	for _, m := range topologytest.Output(d, "totals", serde.String, serde.Int64).Read() {
		if m.Value <= out["total "+m.Key] {
			t.Fatalf("the total of %s went from %d to %d: something was counted twice or lost", m.Key, out["total "+m.Key], m.Value)
		}
		out["total "+m.Key] = m.Value
	}
	return out
}
