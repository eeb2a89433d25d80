package engine

import (
	"math"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
)

// pacedRunners makes three runners of one sub-topology that are open and idle, with the events that each has next.
func pacedRunners(t *testing.T, next ...int64) (*Engine, []*runner, *time.Time) {
	t.Helper()
	now := time.Unix(1000, 0)
	p := &plan.Plan{Stores: map[string]*plan.Store{"w": {Spec: state.Spec{Name: "w", Kind: state.Window}}}}
	e := &Engine{plan: p, pacer: newPacer(p, 10*time.Millisecond), queue: newRunQueue()}
	e.cfg.clock = func() time.Time { return now }
	var all []*runner
	for i, at := range next {
		tp := task.TopicPartition{Topic: "in", Partition: int32(i)}
		r := e.newRunner(&taskSpec{id: task.ID{Partition: int32(i)}, inputs: []task.TopicPartition{tp}}, 1)
		r.runs.Store(true)
		r.pace.next.Store(at)
		r.pace.emptySince.Store(now.UnixNano())
		all = append(all, r)
	}
	setSiblings(all)
	return e, all, &now
}

func TestPaceFollowsWhoeverHasSomethingToRead(t *testing.T) {
	e, all, now := pacedRunners(t, 100, 50, 500)
	tp := all[1].spec.inputs[0]
	if got := e.paceLimit(all[0]); got != math.MaxInt64 {
		t.Errorf("nobody has anything to read: limit %d", got)
	}
	all[1].phase.Store(queued)
	if got := e.paceLimit(all[0]); got != 60 {
		t.Errorf("a sibling with records at 50: limit %d, want 60", got)
	}
	if got := e.paceLimit(all[1]); got != math.MaxInt64 {
		t.Errorf("the earliest is never held: limit %d", got)
	}
	all[1].phase.Store(idle)
	all[1].ends[tp] = 7
	if got := e.paceLimit(all[0]); got != 60 {
		t.Errorf("its records are known to be in the topic: limit %d, want 60", got)
	}
	*now = now.Add(patience + time.Millisecond)
	if got := e.paceLimit(all[0]); got != math.MaxInt64 {
		t.Errorf("they don't come: limit %d", got)
	}
}

func TestPaceWaitsForTasksThatOpen(t *testing.T) {
	e, all, now := pacedRunners(t, 100, 50)
	all[1].runs.Store(false)
	all[1].pace.next.Store(-1)
	if got := e.paceLimit(all[0]); got != 9 {
		t.Errorf("a sibling is being opened: limit %d, want 9", got)
	}
	*now = now.Add(openPatience)
	if got := e.paceLimit(all[0]); got != math.MaxInt64 {
		t.Errorf("it is being restored for long: limit %d", got)
	}
}

func TestNoPaceWithoutWindows(t *testing.T) {
	p := &plan.Plan{Stores: map[string]*plan.Store{"kv": {Spec: state.Spec{Name: "kv", Kind: state.KeyValue}}}}
	if newPacer(p, time.Second).on() {
		t.Error("tasks wait for one another in an application that has no windows")
	}
}
