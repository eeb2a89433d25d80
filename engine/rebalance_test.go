package engine

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

func runningTasks(s Stats) (n int) {
	for _, t := range s.Tasks {
		if t.Running {
			n++
		}
	}
	return n
}

// Instances share the tasks, and take them over from one that closes without waiting for its session.
func TestInstancesShareTasks(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "share")
		a.create("in", 6)
		a.create("out", 2)
		out := a.read("out")
		produced := 0
		feed := func() { a.produce("in", 6, numbered(600, 20)...); produced += 600 }
		feed()
		const session = 5 * time.Minute // half of it is longer than eventually waits
		i1 := a.start(counts(a.name), "i1", SessionTimeout(session))
		i1.await(t, "the first has all", func(s Stats) bool { return runningTasks(s) == 12 && s.State == Running })
		feed()
		i2 := a.start(counts(a.name), "i2", SessionTimeout(session))
		feed()
		i2.await(t, "the second has its half", func(s Stats) bool { return runningTasks(s) == 6 })
		i1.await(t, "the first has its half", func(s Stats) bool { return len(s.Tasks) == 6 })
		i3 := a.start(counts(a.name), "i3", SessionTimeout(session))
		feed()
		for _, i := range []*instance{i1, i2, i3} {
			i.await(t, "a third each", func(s Stats) bool { return len(s.Tasks) == 4 && runningTasks(s) == 4 })
		}
		feed()
		began := time.Now()
		i1.stop(t)
		feed()
		i2.await(t, "half each", func(s Stats) bool { return runningTasks(s) == 6 })
		i3.await(t, "half each", func(s Stats) bool { return runningTasks(s) == 6 })
		if took := time.Since(began); took > session/2 {
			t.Errorf("taking over took %v", took)
		}
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= int64(produced) })
		if err := out.onlyRises(); err != nil {
			t.Error(err)
		}
	})
}

// Thousands of partitions come up, are shared with a second instance and taken back in about a second each.
func TestThousandsOfPartitionsAreShared(t *testing.T) {
	const n = 3000
	a := newApp(t, brokertest.Embedded(t), "thousands")
	a.create("in", n)
	a.create("out", 1)
	quiet := Logger(slog.New(slog.DiscardHandler)) // it says of each task that it runs
	start := func(name string) *instance {
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.String).To(a.topic("out"))
		return a.start(build(b), name, quiet)
	}
	began := time.Now()
	took := func(i *instance, what string, tasks int) {
		t.Helper()
		i.await(t, what, func(s Stats) bool {
			return s.State == Running && len(s.Tasks) == tasks && !slices.ContainsFunc(s.Tasks, func(task TaskStats) bool { return !task.Running })
		})
		if d := time.Since(began); d > time.Minute {
			t.Errorf("%s after %v", what, d)
		} else {
			t.Logf("%s after %v", what, d)
		}
	}
	i1 := start("i1")
	took(i1, "all run", n)
	began = time.Now()
	i2 := start("i2")
	took(i2, "the second instance runs half of them", n/2)
	took(i1, "the first runs the other half", n/2)
	began = time.Now()
	i2.stop(t)
	took(i1, "the first runs all again", n)
	i1.stop(t)
}

// State outlives the process; without its directory it comes back from the changelogs.
func TestStateSurvivesRestartAndLossOfTheDirectory(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "restore")
		a.create("in", 2)
		a.create("out", 1)
		out := a.read("out")
		const n = 2000
		for round := range 3 {
			a.produce("in", 2, numbered(n, 500)...)
			i := a.start(counts(a.name), "i1")
			eventually(t, "counted", func() bool { return total(out.lastCounts()) >= int64(n*(round+1)) })
			var restored int64
			for _, task := range i.Stats().Tasks {
				restored += task.Restore.Records
			}
			i.stop(t)
			switch round {
			case 1: // the directory was there
				if restored != 0 {
					t.Errorf("restored %d records although the state was on disk", restored)
				}
				if err := os.RemoveAll(filepath.Join(a.dir, "i1")); err != nil {
					t.Fatal(err)
				}
			case 2:
				if restored < 500 {
					t.Errorf("restored %d records, want those of 500 keys at least", restored)
				}
			}
		}
		if err := out.onlyRises(); err != nil {
			t.Error(err)
		}
	})
}

// A table that is restored from its own source topic: behind the committed offset by processing, before it by restoring.
func TestTableIsRestoredFromItsSource(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "reuse")
		a.create("names", 2)
		a.create("in", 2)
		a.create("out", 1)
		plan := func() *topology.Plan {
			b := topology.NewBuilder(a.name, topology.Optimize(topology.AllOptimizations))
			names := b.Table(a.topic("names"), serde.String, serde.String, topology.Store("names"))
			b.Stream(a.topic("in"), serde.String, serde.String).
				Join(names, func(v, name string) string { return v + "=" + name }).
				To(a.topic("out"))
			return build(b)
		}
		if topics := plan().InternalTopics(); len(topics) > 0 {
			t.Fatalf("internal topics %v, want none", topics)
		}
		out := a.read("out")
		seen := func(want string) func() bool {
			return func() bool {
				return slices.ContainsFunc(out.all(), func(r *kgo.Record) bool { return string(r.Value) == want })
			}
		}
		a.produce("names", 2, "zero", "one", "two") // k0, k1, k2
		i := a.start(plan(), "i1")
		eventually(t, "joined", func() bool { a.produce("in", 2, "x", "y", "z"); return seen("z=two")() })
		i.stop(t)
		a.produce("names", 2, "ZERO")
		for _, instance := range []string{"i1", "i2"} { // with its state, and without
			i = a.start(plan(), instance)
			eventually(t, "the old and the new name", func() bool {
				a.produce("in", 2, instance, instance)
				return seen(instance+"=ZERO")() && seen(instance+"=one")()
			})
			i.stop(t)
		}
	})
}
