package engine

import (
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
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
