package engine

import (
	"math"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// pacedRunners makes three runners of one sub-topology that are open and idle, with the events that each has next.
func pacedRunners(t *testing.T, next ...int64) (*Engine, []*runner, *time.Time) {
	t.Helper()
	now := time.Unix(1000, 0)
	p := &plan.Plan{Stores: map[string]*plan.Store{"w": {Spec: state.Spec{Name: "w", Kind: state.Window}}}}
	e := &Engine{plan: p, pacer: newPacer(p, 10*time.Millisecond), queue: newRunQueue(), runners: map[task.ID]*runner{}}
	e.cfg.clock = func() time.Time { return now }
	var all []*runner
	for i, at := range next {
		tp := task.TopicPartition{Topic: "in", Partition: int32(i)}
		r := e.newRunner(&taskSpec{id: task.ID{Partition: int32(i)}, inputs: []task.TopicPartition{tp}}, 1)
		r.runs.Store(true)
		r.pace.next.Store(at)
		e.runners[r.spec.id] = r
		all = append(all, r)
	}
	e.pair()
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
	*now = now.Add(patience + 3*time.Millisecond)
	if got := e.paceLimit(all[0]); got != 63 {
		t.Errorf("they don't come: limit %d, want 63: time goes on with the clock", got)
	}
	*now = now.Add(awayPatience)
	if got := e.paceLimit(all[0]); got != math.MaxInt64 {
		t.Errorf("they haven't come for long: limit %d", got)
	}
}

// What a commit has put into a repartition topic is due from then on, however long the reader was idle before.
func TestPaceWaitsForWhatWasCommitted(t *testing.T) {
	e, all, now := pacedRunners(t, 100, 50)
	tp := all[1].spec.inputs[0]
	all[1].ends[tp] = 0
	*now = now.Add(time.Hour)
	e.pacer.end(tp.Topic, tp.Partition).Reached(6)
	e.paceCommitted()
	if got := e.paceLimit(all[0]); got != 60 {
		t.Errorf("limit %d, want 60", got)
	}
}

// A task that is being opened holds the others at where it was, however long its restore takes; with the wall clock they go on.
func TestPaceWaitsForTasksThatOpen(t *testing.T) {
	e, all, now := pacedRunners(t, 100, 50)
	r, tp := all[1], all[1].spec.inputs[0]
	r.runs.Store(false)
	r.pace.next.Store(processors.NoTimestamp)
	if got := e.paceLimit(all[0]); got != 9 {
		t.Errorf("nothing is known of it yet: limit %d, want 9", got)
	}
	s := &starts{
		committed: map[task.TopicPartition]start{tp: {offset: 3, meta: offsets.Metadata{PartitionTime: 40}}},
		stable:    map[fetch.Partition]int64{fetch.Partition(tp): 9},
	}
	r.paceOpening(s)
	if got := e.paceLimit(all[0]); got != 50 {
		t.Errorf("it was at 40: limit %d, want 50", got)
	}
	*now = now.Add(time.Hour)
	if got, want := e.paceLimit(all[0]), 50+(time.Hour-patience).Milliseconds(); got != want {
		t.Errorf("an hour later: limit %d, want %d", got, want)
	}
	s.stable[fetch.Partition(tp)] = 3
	r.paceOpening(s)
	if got := e.paceLimit(all[0]); got != math.MaxInt64 {
		t.Errorf("it has nothing to read: limit %d", got)
	}
}

func TestPaceDoesNotWaitForTheUnknownForEver(t *testing.T) {
	e, all, now := pacedRunners(t, 100, 50)
	all[1].runs.Store(false)
	all[1].pace.next.Store(processors.NoTimestamp)
	*now = now.Add(openPatience + time.Millisecond)
	if got := e.paceLimit(all[0]); got != math.MaxInt64 {
		t.Errorf("limit %d", got)
	}
}

// Who is held by a task that is being opened goes on as soon as it shows that it has nothing to read.
func TestPaceReleasesWhenATaskHasNothingToRead(t *testing.T) {
	e, all, _ := pacedRunners(t, 100, 50)
	all[1].runs.Store(false)
	all[0].pace.held.Store(true)
	all[1].paceOpening(&starts{})
	e.releaseSiblings(all[1])
	if all[0].pace.held.Load() || all[0].phase.Load() != queued {
		t.Error("still held")
	}
}

func TestNoPaceWithoutWindows(t *testing.T) {
	p := &plan.Plan{Stores: map[string]*plan.Store{"kv": {Spec: state.Spec{Name: "kv", Kind: state.KeyValue}}}}
	if newPacer(p, time.Second).on() {
		t.Error("tasks wait for one another in an application that has no windows")
	}
}
