package task

import (
	"time"

	"github.com/tributary-io/tributary/processors"
)

// schedule is one punctuation: KIP-138.
type schedule struct {
	node      *node
	interval  int64 // ms
	call      func(timestampMs int64) error
	cancelled bool
}

// Cancel ends the punctuation.
func (s *schedule) Cancel() { s.cancelled = true }

// schedules holds a task's punctuations, by the ms of their clock at which they are due. Those that were cancelled leave when they would be.
type schedules struct {
	streamTime, wallClock timeHeap[*schedule]
}

func (t *Task) schedule(n *node, interval time.Duration, kind processors.PunctuationType, call func(int64) error) processors.Cancellable {
	s := &schedule{node: n, interval: max(interval.Milliseconds(), 1), call: call}
	if kind == processors.StreamTime {
		t.schedules.streamTime.offer(0, s) // fires as soon as stream time is known
		return s
	}
	t.schedules.wallClock.offer(t.nowMs()+s.interval, s)
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
	if due := t.schedules.wallClock; len(due) > 0 {
		if at := time.UnixMilli(due[0].at); !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}

func (t *Task) punctuate(due *timeHeap[*schedule], now int64) (bool, error) {
	fired := false
	for len(*due) > 0 && (*due)[0].at <= now {
		at := (*due)[0].at
		s := due.poll()
		if s.cancelled {
			continue
		}
		fired, t.dirty = true, true
		err := t.fire(s, now)
		if !s.cancelled {
			due.offer(nextDue(at, s.interval, now), s)
		}
		if err != nil {
			return true, err
		}
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
