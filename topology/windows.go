package topology

import (
	"math"
	"time"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Window is a key within a window, the key of windowed results: w.Key is the group's key, w.Window.Start and w.Window.End are the window's bounds in ms
// since the epoch.
type Window[K any] = processors.Windowed[K]

// Windows cut time into windows for aggregations. Made by Tumbling, Hopping, Sliding and Unlimited.
type Windows struct {
	kind    windowKind
	size    time.Duration // of sliding windows: the greatest difference
	advance time.Duration
	grace   time.Duration
	start   time.Time
}

type windowKind int

const (
	noWindows windowKind = iota
	tumbling
	hopping
	sliding
	unlimited
)

// Tumbling windows follow each other without a gap. They begin at multiples of their size since the epoch.
func Tumbling(size time.Duration) Windows {
	return Windows{kind: tumbling, size: size, advance: size}
}

// Hopping windows begin every advance, so that a record may be in several.
func Hopping(size, advance time.Duration) Windows {
	return Windows{kind: hopping, size: size, advance: advance}
}

// Sliding windows hold the records that are at most difference apart (KIP-450): there is one for each set of such records.
func Sliding(difference time.Duration) Windows { return Windows{kind: sliding, size: difference} }

// Unlimited is one window from start on that never ends. Results in it can't be final.
func Unlimited(start time.Time) Windows { return Windows{kind: unlimited, start: start} }

// Grace lets a window take late records for so long, in stream time, after its end. Without it, a window closes at its end.
func (w Windows) Grace(d time.Duration) Windows {
	w.grace = d
	return w
}

// check finds what is wrong with the windows.
func (w Windows) check(s *settings) {
	size, advance := w.size.Milliseconds(), w.advance.Milliseconds()
	switch w.kind {
	case noWindows:
		s.bad(plan.InvalidArgument, "the windows are empty: make them with Tumbling, Hopping, Sliding or Unlimited")
	case tumbling, hopping:
		if size <= 0 {
			s.bad(plan.InvalidArgument, "windows need a size of at least a millisecond, this is %v", w.size)
		} else if advance <= 0 || advance > size {
			s.bad(plan.InvalidArgument, "windows of %v must advance by at least a millisecond and at most their size, this is %v", w.size, w.advance)
		}
	case sliding:
		if size < 0 {
			s.bad(plan.InvalidArgument, "the difference of sliding windows can't be negative: %v", w.size)
		}
	case unlimited:
		w.checkUnlimited(s)
	}
	if w.grace < 0 {
		s.bad(plan.InvalidArgument, "the grace of windows can't be negative: %v", w.grace)
	}
}

func (w Windows) checkUnlimited(s *settings) {
	if w.start.UnixMilli() < 0 {
		s.bad(plan.InvalidArgument, "unlimited windows can't start before the epoch: %v", w.start)
	}
	if w.grace != 0 {
		s.bad(plan.InvalidArgument, "unlimited windows never end, so they have no grace")
	}
	if s.has(optEmitOnClose) {
		s.bad(plan.InvalidArgument, "unlimited windows never close: with EmitOnClose there would never be a result")
	}
}

func (w Windows) sizeMs() int64 {
	if w.kind == unlimited {
		return math.MaxInt64
	}
	return w.size.Milliseconds()
}

// windowing tells what the store of results needs.
func (w Windows) windowing(onClose bool) windowing {
	least := addMs(w.sizeMs(), w.grace.Milliseconds())
	if w.kind == sliding {
		least = addMs(w.sizeMs(), least) // the windows on both sides of a record
	}
	return windowing{kind: state.TimestampedWindow, size: w.sizeMs(), least: least, onClose: onClose, sliding: w.kind == sliding}
}

func (w Windows) timeWindows() processors.TimeWindows {
	t := processors.TimeWindows{
		SizeMs: w.sizeMs(), AdvanceMs: w.advance.Milliseconds(), GraceMs: w.grace.Milliseconds(),
	}
	if w.kind == unlimited {
		t.Unlimited, t.StartMs = true, w.start.UnixMilli()
	}
	return t
}

func (w Windows) slidingWindows() processors.SlidingWindows {
	return processors.SlidingWindows{DifferenceMs: w.sizeMs(), GraceMs: w.grace.Milliseconds()}
}

// SessionWindows hold the records of a key between gaps of inactivity.
type SessionWindows struct{ gap, grace time.Duration }

// Session makes session windows: two records of a key are in the same session if no more than gap lies between them or between
// others that connect them.
func Session(gap time.Duration) SessionWindows { return SessionWindows{gap: gap} }

// Grace lets a session take late records for so long, in stream time, after its end and the gap.
func (w SessionWindows) Grace(d time.Duration) SessionWindows {
	w.grace = d
	return w
}

func (w SessionWindows) check(s *settings) {
	if w.gap < 0 {
		s.bad(plan.InvalidArgument, "the gap of sessions can't be negative: %v", w.gap)
	} else if w.gap > 0 && w.gap < time.Millisecond {
		s.bad(plan.InvalidArgument, "the gap of sessions is counted in ms, this is %v", w.gap)
	}
	if w.grace < 0 {
		s.bad(plan.InvalidArgument, "the grace of sessions can't be negative: %v", w.grace)
	}
}

func (w SessionWindows) windowing(onClose bool) windowing {
	return windowing{kind: state.Session, least: addMs(w.gap.Milliseconds(), w.grace.Milliseconds()), onClose: onClose}
}

func (w SessionWindows) sessions() processors.SessionWindows {
	return processors.SessionWindows{GapMs: w.gap.Milliseconds(), GraceMs: w.grace.Milliseconds()}
}

// JoinWindows say how far apart two records of joined streams may be. Made by JoinWithin.
type JoinWindows struct{ difference, before, after, grace time.Duration }

// JoinWithin joins records that are at most difference apart.
func JoinWithin(difference time.Duration) JoinWindows {
	return JoinWindows{difference: difference, before: difference, after: difference}
}

// Before sets how much earlier than the left record the right one may be.
func (w JoinWindows) Before(d time.Duration) JoinWindows {
	w.before = d
	return w
}

// After sets how much later than the left record the right one may be. It may be negative.
func (w JoinWindows) After(d time.Duration) JoinWindows {
	w.after = d
	return w
}

// Grace lets late records be joined for so long, in stream time, after their window's end. Only then records without a match come
// out of left and outer joins.
func (w JoinWindows) Grace(d time.Duration) JoinWindows {
	w.grace = d
	return w
}

func (w JoinWindows) check(s *settings) {
	if w.difference < 0 {
		s.bad(plan.InvalidArgument, "records of a join can't be a negative time apart: %v", w.difference)
	}
	if w.before+w.after < 0 {
		s.bad(plan.InvalidArgument, "the windows of a join end before they begin: %v before and %v after", w.before, w.after)
	}
	if w.grace < 0 {
		s.bad(plan.InvalidArgument, "the grace of a join can't be negative: %v", w.grace)
	}
}

func (w JoinWindows) sizeMs() int64 { return w.before.Milliseconds() + w.after.Milliseconds() }

// windowsOf tells what keys in windows are like.
func windowsOf[K any]() *windowInfo[Window[K]] {
	return &windowInfo[Window[K]]{end: func(w Window[K]) int64 { return w.Window.End }}
}
