package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/group"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/engine/internal/txn"
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

// seat is a membership that lasts, without brokers.
type seat struct{ group.Membership }

func (seat) Member() (offsets.Member, bool) { return offsets.Member{Generation: 1}, true }
func (seat) Rejoin()                        {}

// An instance that is thrown out while it gives tasks up opens nothing of that assignment: its other tasks may run elsewhere by then.
func TestNothingIsOpenedOfAnAssignmentThatWasLost(t *testing.T) {
	for _, lost := range []bool{false, true} {
		e, spec := withoutBrokers(t)
		var cancel context.CancelFunc
		e.life, cancel = context.WithCancel(t.Context())
		client, err := kgo.NewClient(e.clientOptions("test")...)
		if err != nil {
			t.Fatal(err)
		}
		if e.inputs, err = fetch.NewInputs(fetch.InputsConfig{Client: e.clientOptions("test"), MaxBytes: 1 << 20, MaxPartitionBytes: 1 << 20, MaxWait: time.Second}); err != nil {
			t.Fatal(err)
		}
		e.control, e.producer = client, txn.New(txn.Config{Client: e.clientOptions("test"), Logger: e.log})
		e.members, e.membership = newMembers(e, ""), seat{}
		mine, next := task.ID{Subtopology: spec.id.Subtopology}, task.ID{Subtopology: spec.id.Subtopology, Partition: 1}
		e.known.Store(&catalog{tasks: map[task.ID]*taskSpec{mine: {id: mine, subs: spec.subs}, next: {id: next, subs: spec.subs}}})
		e.runners[mine] = e.newRunner(e.catalog().tasks[mine], 0)
		e.runners[mine].opening = true
		e.cfg.stepped = func(s step) {
			if s == stepClosed && lost {
				e.members.Lost(errors.New("the session ended"))
			}
		}
		e.members.take(assign.Placement{Active: []assign.TaskID{assignID(next)}})
		if err := e.rebalance(); err != nil {
			t.Error(err)
		}
		if e.runners[mine] != nil || (e.runners[next] != nil) == lost {
			t.Errorf("thrown out: %v; afterwards it has %v", lost, e.runners)
		}
		cancel()
		e.openers.Wait()
		e.inputs.Close()
		client.Close()
	}
}
