package task

import (
	"math"
	"slices"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
)

// idleTime lets stream time go on with the wall clock while nothing comes (topology.AdvanceIdle, topology.AdvanceAfter).
//
// Only a task that has been idle for a while does so, and only if it has nodes that care. How far it has come is among the operators'
// progress: what was decided by it stays decided after a restart, and goes on from there.
type idleTime struct {
	after  int64 // ms; 0: off
	since  int64 // wall clock in ms when the task became idle
	synced int64 // wall clock in ms when stream time was last right
	hooks  []idleHook
	kept   []int // sub-topologies whose time stands still while nothing comes
}

// newIdleTime gives the longest time of the sub-topologies' that have one. Usually there is but one.
func newIdleTime(subs []*plan.Subtopology) (idle idleTime) {
	for _, sub := range subs {
		if sub.AdvanceIdleMs > 0 {
			idle.after = max(idle.after, sub.AdvanceIdleMs)
		} else {
			idle.kept = append(idle.kept, sub.ID)
		}
	}
	return idle
}

// idleHook is a node's wish to be told.
type idleHook struct {
	node *node
	call func(timeMs int64) error
}

// idleProgress is the key under which the time is kept: no node has an empty name.
const idleProgress = "/idle-time"

// OnIdleTime implements processors.IdleHooks. Nodes register parents first, so that what closes in one node reaches those below before
// they move on themselves.
func (rt *runtime) OnIdleTime(f func(timeMs int64) error) {
	if idle := &rt.task.idle; idle.after > 0 && !slices.Contains(idle.kept, rt.node.spec.Subtopology) {
		idle.hooks = append(idle.hooks, idleHook{rt.node, f})
	}
}

// idleMatters tells whether anything depends on idle time.
func (t *Task) idleMatters() bool {
	return t.idle.after > 0 && (len(t.idle.hooks) > 0 || len(t.schedules.streamTime) > 0)
}

// becameIdle notes that the task has nothing more in hand.
func (t *Task) becameIdle() {
	if t.idle.after > 0 {
		t.idle.since = t.nowMs()
		t.idle.synced = t.idle.since
	}
}

// IdleAnew is for a host that has kept the task from its records until now, by a pause: only from now on it counts as idle, as after a restart.
// What came meanwhile is still on its way, perhaps through other tasks; time that went on over the pause would make it late.
func (t *Task) IdleAnew() { t.becameIdle() }

// waitsForRecords tells whether there is, or may be, something to be processed.
func (t *Task) waitsForRecords() bool {
	if t.HasRecords() {
		return true
	}
	if t.cfg.Lag == nil {
		return false
	}
	for _, q := range t.queues {
		if lag, known := t.cfg.Lag(q.tp); !known || lag > 0 {
			return true
		}
	}
	return false
}

// nextIdle is when stream time may next go on by itself, in ms of the wall clock.
func (t *Task) nextIdle() (at int64, ok bool) {
	if !t.idleMatters() || t.streamTime == processors.NoTimestamp {
		return 0, false
	}
	return max(t.idle.since+t.idle.after, t.idle.synced+max(t.idle.after/4, 1)), true
}

// advanceIdle moves stream time on, if it is time to, and reports whether it did.
func (t *Task) advanceIdle() (bool, error) {
	at, ok := t.nextIdle()
	if !ok {
		return false, nil
	}
	if t.waitsForRecords() {
		t.becameIdle()
		return false, nil
	}
	now := t.nowMs()
	if now < at {
		return false, nil
	}
	t.streamTime += now - t.idle.synced
	t.idle.synced = now
	t.progress.set(idleProgress, t.streamTime, 0)
	t.dirty = true
	for _, h := range t.idle.hooks {
		if err := t.tell(h); err != nil {
			return true, err
		}
	}
	_, err := t.PunctuateStreamTime()
	return true, err
}

// tell moves a node's time on.
func (t *Task) tell(h idleHook) error {
	held := h.node.spec.HeldMs
	if held == math.MaxInt64 || t.streamTime-held <= 0 {
		return nil
	}
	t.resetContext(t.streamTime - held)
	err := runHook(func() error { return h.call(t.streamTime - held) })
	if err == nil {
		return nil
	}
	return t.failed(h.node, err)
}
