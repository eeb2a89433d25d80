package engine

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// A paused instance keeps its tasks, processes nothing, stays a member for longer than the session timeout, and goes on where it was; a task
// that it takes over meanwhile waits as well.
func TestPauseAndResume(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "pause")
		a.create("in", 4)
		a.create("out", 1)
		out := a.read("out")
		one, two := a.start(counts(a.name), "i1"), a.start(counts(a.name), "i2")
		a.produce("in", 4, numbered(400, 10)...)
		eventually(t, "the first counted", func() bool { return total(out.lastCounts()) == 400 })
		for _, i := range []*instance{one, two} {
			i.Pause()
			i.await(t, "paused", func(s Stats) bool { return s.State == Paused })
		}
		a.produce("in", 4, numbered(400, 10)...)
		two.stop(t)
		one.await(t, "has all tasks", func(s Stats) bool { return s.State == Paused && len(s.Tasks) == 8 })
		time.Sleep(1500 * time.Millisecond) // many commit intervals
		if n := total(out.lastCounts()); n != 400 || !one.Paused() {
			t.Errorf("%d counted while paused, want 400", n)
		}
		if !Paused.Ready() || !Paused.Alive() {
			t.Error("a paused instance is ready and alive")
		}
		one.Resume()
		one.Resume()
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 800 })
		one.await(t, "runs", func(s Stats) bool { return s.State == Running })
		one.stop(t)
		if err := out.onlyRises(); err != nil {
			t.Error(err)
		}
	})
}

// An instance that is paused before it runs starts paused.
func TestStartsPaused(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "startspaused")
	a.create("in", 1)
	a.create("out", 1)
	a.produce("in", 1, numbered(10, 2)...)
	i := a.start(counts(a.name), "i1")
	i.Pause() // it has not joined yet
	i.await(t, "paused", func(s Stats) bool { return s.State == Paused })
	before := i.Stats().Processed
	time.Sleep(300 * time.Millisecond)
	if n := i.Stats().Processed; n != before {
		t.Errorf("%d processed while paused", n-before)
	}
	i.stop(t)
}

// A pause doesn't count as idle time: what came while the application was paused isn't late for windows behind a repartition, whose tasks have
// nothing to read when they resume.
func TestPauseIsNotIdleTime(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "pauseidle")
	a.create("in", 1)
	a.create("out", 1)
	b := topology.NewBuilder(a.name, topology.AdvanceIdle(10*time.Minute))
	b.Stream(a.topic("in"), serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).
		Windowed(topology.Tumbling(time.Minute)).Count(topology.Store("counts")).EmitFinal(topology.Name("final")).ToStream().
		SelectKey(func(w topology.Window[string], _ int64) string { return fmt.Sprint(w.Key, "@", w.Window.Start) }).
		To(a.topic("out"), topology.KeySerde(serde.String))
	out := a.read("out")
	var ahead atomic.Int64 // of the real clock
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	client := a.c.Client(t, kgo.DefaultProduceTopic(a.topic("in")))
	produce := func(at time.Time) {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Key: []byte("k"), Value: []byte("v"), Timestamp: at}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	i := a.start(build(b), "i1", Clock(now))
	produce(now())
	i.await(t, "the first is counted", func(s Stats) bool { return s.Processed == 2 })
	i.Pause()
	i.await(t, "paused", func(s Stats) bool { return s.State == Paused })
	began := now()
	ahead.Add(int64(time.Hour))
	for minute := range 60 {
		produce(began.Add(time.Duration(minute) * time.Minute))
	}
	i.Resume()
	i.await(t, "all is counted", func(s Stats) bool { return s.Processed == 2*61 })
	for _, d := range i.Stats().Dropped {
		if d.Reason == processors.DroppedLate {
			t.Errorf("%d records that came during the pause were late", d.Count)
		}
	}
	produce(now().Add(time.Hour))
	eventually(t, "all windows before it have closed", func() bool { return total(out.lastCounts()) == 61 })
	i.stop(t)
}
