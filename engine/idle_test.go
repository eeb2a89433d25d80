package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// The windows of topics that have gone quiet close by the wall clock, also those that were open at a restart, and each sends its result
// once. Without the option they stay open.
func TestWindowsOfQuietTopicsClose(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "quiet")
		a.create("in", 2)
		a.create("out", 1)
		plan := func(opts ...topology.BuilderOption) *topology.Plan {
			b := topology.NewBuilder(a.name, opts...)
			b.Stream(a.topic("in"), serde.String, serde.String).
				GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).
				Windowed(topology.Tumbling(200*time.Millisecond)).
				Count(topology.Store("counts")).
				EmitFinal(topology.Name("final")).
				ToStream().
				SelectKey(func(w topology.Window[string], _ int64) string { return fmt.Sprint(w.Key, "@", w.Window.Start) }).
				To(a.topic("out"), topology.KeySerde(serde.String))
			return build(b)
		}
		out := a.read("out")
		i := a.start(plan(), "i1")
		a.produce("in", 2, numbered(20, 4)...)
		i.await(t, "all counted", func(s Stats) bool { return s.Processed >= 40 && s.Lag == 0 })
		i.stop(t)
		before := total(out.lastCounts())
		if before == 20 {
			t.Error("all windows have closed although time stands still")
		}

		i = a.start(plan(topology.AdvanceIdle(100*time.Millisecond)), "i1")
		eventually(t, "the windows from before the restart", func() bool { return total(out.lastCounts()) == 20 })
		a.produce("in", 2, numbered(20, 4)...)
		eventually(t, "the windows since then", func() bool { return total(out.lastCounts()) == 40 })
		i.stop(t)
		once := map[string]bool{}
		for _, r := range out.all() {
			if once[string(r.Key)] {
				t.Errorf("%s came out twice", r.Key)
			}
			once[string(r.Key)] = true
		}
	})
}
