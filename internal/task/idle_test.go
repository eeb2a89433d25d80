package task

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/processors"
)

// idleBench is a bench with a node that notes the times that it is told; lag is that of all inputs, -1 for unknown.
func idleBench(t *testing.T, lag *int64, told *[]int64, fail *error) *bench {
	return newBench(t, func(c *Config) {
		c.Subtopologies[0].AdvanceIdleMs = 100
		c.Lag = func(TopicPartition) (int64, bool) { return *lag, *lag >= 0 }
	}, func(rt processors.Runtime) error {
		rt.(processors.IdleHooks).OnIdleTime(func(ms int64) error {
			*told = append(*told, ms)
			return *fail
		})
		return nil
	}, "a", "b")
}

func (b *bench) wait(t *testing.T, ms int64) {
	t.Helper()
	b.now = b.now.Add(time.Duration(ms) * time.Millisecond)
	if _, err := b.PunctuateWallClock(); err != nil {
		t.Fatal(err)
	}
}

func TestIdleTimeGoesOnInSteps(t *testing.T) {
	lag, told, fail := int64(0), []int64(nil), error(nil)
	b := idleBench(t, &lag, &told, &fail)
	if _, ok := b.NextWallClock(); ok {
		t.Error("there is no time yet that could go on")
	}
	b.wait(t, 1000)
	b.add(t, "a", 0, "5000")
	if _, ok := b.NextWallClock(); ok {
		t.Error("there is a record to be processed")
	}
	b.drain(t)
	b.TakeDirty()
	if at, ok := b.NextWallClock(); !ok || at.UnixMilli() != 2100 {
		t.Errorf("next at %v, %v", at, ok)
	}
	b.wait(t, 99)
	if b.Dirty() {
		t.Error("nothing has happened")
	}
	for _, ms := range []int64{1, 24, 1, 200} { // the second is less than a quarter after the first
		b.wait(t, ms)
	}
	if diff := cmp.Diff([]int64{5100, 5125, 5325}, told); diff != "" {
		t.Error(diff)
	}
	if !b.Dirty() || b.StreamTime() != 5325 {
		t.Errorf("dirty %v, stream time %d", b.Dirty(), b.StreamTime())
	}
	again := idleBench(t, &lag, &told, &fail)
	again.RestoreProgress(b.Progress())
	if again.StreamTime() != 5325 {
		t.Errorf("after a restart it is %d", again.StreamTime())
	}
	b.add(t, "b", 0, "5200")
	b.drain(t)
	b.wait(t, 100)
	if b.StreamTime() != 5425 {
		t.Errorf("an old record has changed the time, which is %d", b.StreamTime())
	}
}

func TestIdleTimeWaitsForWhatMayCome(t *testing.T) {
	lag, told, fail := int64(0), []int64(nil), error(nil)
	b := idleBench(t, &lag, &told, &fail)
	b.add(t, "a", 0, "5000")
	b.drain(t)
	for _, lag = range []int64{-1, 3} {
		b.wait(t, 1000)
	}
	if lag = 0; len(told) > 0 {
		t.Errorf("there may be records to be fetched, but time went on to %d", told)
	}
	b.wait(t, 99)
	b.wait(t, 1)
	if diff := cmp.Diff([]int64{5100}, told); diff != "" {
		t.Error(diff)
	}

	fail = errors.New("no")
	b.now = b.now.Add(time.Second)
	_, err := b.PunctuateWallClock()
	var failed *processors.ProcessingError
	if !errors.As(err, &failed) || failed.Node != "NODE" {
		t.Errorf("a node's failure is the processing handler's: %v", err)
	}
}
