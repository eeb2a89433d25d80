package engine

import (
	"testing"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/internal/task"
)

// What is given and taken away again before the conductor has looked was never opened: others must get it all the same.
func TestTasksTakenAwayUnopenedAreForgotten(t *testing.T) {
	m := &members{claimed: map[task.ID]bool{}}
	give := func(partitions ...int32) {
		var p assign.Placement
		for _, n := range partitions {
			p.Active = append(p.Active, assign.TaskID{Partition: n})
		}
		m.take(p)
	}
	give(0, 1, 2)
	runners := map[task.ID]*runner{{Partition: 0}: {}}
	give(1, 3)
	if !m.forget(runners) {
		t.Error("nothing was forgotten, though task 2 was given, taken away, and never opened")
	}
	for n, want := range map[int32]bool{0: true /* still open */, 1: true, 2: false, 3: true} {
		if got := m.claimed[task.ID{Partition: n}]; got != want {
			t.Errorf("task %d is claimed: %v, want %v", n, got, want)
		}
	}
	if m.forget(runners) {
		t.Error("something was forgotten twice")
	}
}
