package engine

import (
	"fmt"
	"slices"
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

// A source that says so is waited for by the records of the others, for a while or until it has something.
func TestSourceThatIsWaitedFor(t *testing.T) {
	for name, wait := range map[string]time.Duration{"a while": 100 * time.Millisecond, "until it has something": topology.Forever} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, brokertest.Embedded(t), "waited")
			for _, topic := range []string{"in", "slow", "out"} {
				a.create(topic, 1)
			}
			b := topology.NewBuilder(a.name)
			slow := b.Stream(a.topic("slow"), serde.String, serde.String, topology.WaitFor(wait))
			b.Stream(a.topic("in"), serde.String, serde.String).Merge(slow).To(a.topic("out"))
			i, out := a.start(build(b), "i1"), a.read("out")
			values := func() (vs []string) {
				for _, r := range out.all() {
					vs = append(vs, string(r.Value))
				}
				return vs
			}
			now := time.Now()
			a.produceAt("in", now, "first")
			if wait == topology.Forever {
				i.await(t, "the first waits", func(s Stats) bool {
					return len(s.Tasks) == 1 && slices.ContainsFunc(s.Tasks[0].Inputs, func(in InputStats) bool { return in.Topic == a.topic("slow") && !in.HoldsSince.IsZero() })
				})
				if vs := values(); len(vs) > 0 {
					t.Errorf("%v came out", vs)
				}
				a.produceAt("slow", now.Add(time.Second), "second")
			} else {
				eventually(t, "the first comes out", func() bool { return len(values()) == 1 })
				a.produceAt("slow", now.Add(-time.Second), "second")
			}
			eventually(t, "both come out", func() bool { return len(values()) == 2 })
			if vs := values(); vs[0] != "first" || vs[1] != "second" {
				t.Errorf("%v came out", vs)
			}
			i.stop(t)
		})
	}
}

// By the option a task waits for all of its inputs, also for those of which nothing is known to be there, for so long or until they have something.
func TestMaxTaskIdle(t *testing.T) {
	for name, idle := range map[string]time.Duration{"a moment": 50 * time.Millisecond, "an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, brokertest.Embedded(t), "idle")
			for _, topic := range []string{"in", "other", "out"} {
				a.create(topic, 1)
			}
			b := topology.NewBuilder(a.name)
			other := b.Stream(a.topic("other"), serde.String, serde.String)
			b.Stream(a.topic("in"), serde.String, serde.String).Merge(other).To(a.topic("out"))
			i, out := a.start(build(b), "i1", MaxTaskIdle(idle)), a.read("out")
			a.produce("in", 1, "first")
			if idle < time.Hour {
				i.await(t, "the record is processed all the same", func(s Stats) bool { return s.Processed == 1 && s.Tasks[0].Enforced == 1 })
				return
			}
			i.await(t, "the record waits", func(s Stats) bool {
				return len(s.Tasks) == 1 && slices.ContainsFunc(s.Tasks[0].Inputs, func(in InputStats) bool { return in.Topic == a.topic("other") && !in.HoldsSince.IsZero() })
			})
			if s := i.Stats(); s.Processed > 0 {
				t.Errorf("%d records were processed", s.Processed)
			}
			a.produce("other", 1, "second")
			eventually(t, "the first comes out", func() bool { return len(out.all()) >= 1 })
		})
	}
}
