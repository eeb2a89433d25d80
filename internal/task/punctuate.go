package task

import (
	"time"

	"github.com/tributary-io/tributary/processors"
)

// schedule is one punctuation: KIP-138.
type schedule struct {
	node      *node
	at        int64 // ms of its clock at which it is due
	interval  int64 // ms
	call      func(timestampMs int64) error
	cancelled bool
}

// Cancel ends the punctuation.
func (s *schedule) Cancel() { s.cancelled = true }

// schedules holds a task's punctuations by clock. There are few, so they are searched in order.
type schedules struct {
	streamTime, wallClock []*schedule
}

func (t *Task) schedule(n *node, interval time.Duration, kind processors.PunctuationType, call func(int64) error) processors.Cancellable {
	s := &schedule{node: n, interval: max(interval.Milliseconds(), 1), call: call}
	if kind == processors.StreamTime {
		// Due at time 0: fires as soon as stream time is known.
		t.schedules.streamTime = append(t.schedules.streamTime, s)
		return s
	}
	s.at = t.nowMs() + s.interval
	t.schedules.wallClock = append(t.schedules.wallClock, s)
	return s
}

// PunctuateStreamTime fires the stream-time punctuations that are due and reports whether any was. The host calls it after each
// record.
func (t *Task) PunctuateStreamTime() (bool, error) {
	if len(t.schedules.streamTime) == 0 || t.streamTime == processors.NoTimestamp {
		return false, nil
	}
	return t.punctuate(&t.schedules.streamTime, t.streamTime)
}

// PunctuateWallClock does what the wall clock brings: it fires the wall-clock punctuations that are due, and lets stream time go on if
// the task has been idle for long enough. It reports whether there was anything to do.
func (t *Task) PunctuateWallClock() (bool, error) {
	advanced, err := t.advanceIdle()
	if err != nil || len(t.schedules.wallClock) == 0 {
		return advanced, err
	}
	fired, err := t.punctuate(&t.schedules.wallClock, t.nowMs())
	return advanced || fired, err
}

// NextWallClock is when PunctuateWallClock has next something to do, and false if never.
func (t *Task) NextWallClock() (next time.Time, ok bool) {
	if at, idle := t.nextIdle(); idle && !t.HasRecords() {
		next, ok = time.UnixMilli(at), true
	}
	if s := earliest(t.schedules.wallClock); s != nil {
		if at := time.UnixMilli(s.at); !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}

func (t *Task) punctuate(list *[]*schedule, now int64) (bool, error) {
	fired := false
	for {
		s := earliest(*list)
		if s == nil || s.at > now {
			break
		}
		s.at = nextDue(s.at, s.interval, now)
		fired, t.dirty = true, true
		if err := t.fire(s, now); err != nil {
			return true, err
		}
	}
	if fired {
		*list = withoutCancelled(*list)
	}
	return fired, nil
}

func (t *Task) fire(s *schedule, now int64) error {
	t.resetContext(now)
	err := s.run(now)
	if err == nil {
		return nil
	}
	return t.failed(s.node, err)
}

func (s *schedule) run(now int64) (err error) {
	defer recoverTo(&err)
	return s.call(now)
}

// nextDue is the next multiple of the interval after now: missed times are not made up for.
func nextDue(at, interval, now int64) int64 {
	next := at + interval
	if now >= next {
		next = at + ((now-at)/interval+1)*interval
	}
	return next
}

func earliest(list []*schedule) *schedule {
	var first *schedule
	for _, s := range list {
		if !s.cancelled && (first == nil || s.at < first.at) {
			first = s
		}
	}
	return first
}

func withoutCancelled(list []*schedule) []*schedule {
	kept := list[:0]
	for _, s := range list {
		if !s.cancelled {
			kept = append(kept, s)
		}
	}
	clear(list[len(kept):])
	return kept
}
