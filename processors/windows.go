package processors

import "math"

// TimeWindows are tumbling (AdvanceMs = SizeMs), hopping or unlimited windows. A window holds the times from its start up to, but not
// including, its end; starts are multiples of AdvanceMs, from 0 on.
type TimeWindows struct {
	SizeMs, AdvanceMs int64
	// GraceMs is how long after its end, in stream time, a window still takes late records. Windows close when stream time is end +
	// grace or more.
	GraceMs int64
	// Unlimited is one window from StartMs on that never ends; the other fields are then ignored.
	Unlimited bool
	StartMs   int64
}

// first is the start of the earliest window that holds ts.
func (w *TimeWindows) first(ts int64) int64 {
	return max(0, ts-w.SizeMs+w.AdvanceMs) / w.AdvanceMs * w.AdvanceMs
}

// each calls f for the windows that hold ts, the earliest first, until it fails.
func (w *TimeWindows) each(ts int64, f func(Window) error) error {
	if w.Unlimited {
		if ts < w.StartMs {
			return nil
		}
		return f(Window{Start: w.StartMs, End: math.MaxInt64})
	}
	for start := w.first(ts); start <= ts; start += w.AdvanceMs {
		if err := f(Window{Start: start, End: start + w.SizeMs}); err != nil {
			return err
		}
	}
	return nil
}

// startsWithin tells whether some window starts within from..to, inclusive.
func (w *TimeWindows) startsWithin(from, to int64) bool {
	from = max(from, 0)
	return from <= to && to/w.AdvanceMs*w.AdvanceMs >= from
}

// SlidingWindows hold the records of a key that are at most DifferenceMs apart (KIP-450). Start and end are both inclusive: a window
// is DifferenceMs long, and ends or starts (one ms later) at a record. Late records are taken until stream time is end + GraceMs.
type SlidingWindows struct {
	DifferenceMs, GraceMs int64
}

// SessionWindows hold the records of a key between gaps of more than GapMs. Start and end are the times of a session's first and last
// record, both inclusive. A session closes when stream time passes end + GapMs + GraceMs.
type SessionWindows struct {
	GapMs, GraceMs int64
}

// Emit says when windowed results are sent.
type Emit struct {
	// OnClose sends each window's result once, when it closes (KIP-825), instead of at each update.
	OnClose bool
	// IntervalMs throttles how often, in wall-clock time, closed windows are looked for; 0 looks at each record. Kafka Streams'
	// default is 1000. Windows that would expire in the store are sent before that, whatever the throttle says.
	IntervalMs int64
}
