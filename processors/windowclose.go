package processors

import (
	"math"

	"github.com/tributary-io/tributary/state"
)

// windowCloser sends the results of closed windows.
//
// Kafka Streams first stores the record that closes windows. If it moves stream time far enough, the store has expired those windows
// by then, and their results are lost. Here they are sent before the record is stored, but for those of a plain store, whose rows have no time that
// a result could have: that is an error of the record, which is stored, as in Kafka Streams.
type windowCloser[K, A any] struct {
	rounds
	rows    *windowRows[K, A]
	out     *updates[Windowed[K], A]
	windows closeRange
}

// closeRange turns close times into the starts of the windows that close.
type closeRange interface {
	// starts is the range of starts, inclusive, of the windows that are closed at closeTime and were not at last, which may be
	// NoTimestamp. ok is false if there can be none.
	starts(last, closeTime int64) (from, to int64, ok bool)
	// end is the end of the window that starts at start.
	end(start int64) int64
}

// close sends what is closed at closeTime, with the headers of the record that brought it about. incoming is that record's time.
func (c *windowCloser[K, A]) close(closeTime, incoming int64, headers []Header) error {
	if !c.advanced(closeTime) {
		return nil
	}
	from, to, ok := c.windows.starts(c.last, closeTime)
	if !ok || !c.due(from, incoming) {
		return nil
	}
	it, err := c.rows.bytes.FetchAll(from, to, state.Forward)
	if err != nil {
		return c.rows.failed("fetch", err)
	}
	if err := c.sendAll(it, headers); err != nil {
		return err
	}
	c.done(closeTime)
	return nil
}

func (c *windowCloser[K, A]) sendAll(it state.WindowIterator, headers []Header) error {
	return sendClosed(c.rt.NodeName(), c.out, it, headers, func() (key Windowed[K], row Row[A], err error) {
		key.Window = Window{Start: it.Start(), End: c.windows.end(it.Start())}
		if key.Key, err = c.rows.decodeKeyShared(it.Key()); err != nil {
			return key, row, err
		}
		row, err = c.rows.decodeShared(it.Value(), c.rows.time(it.Timestamp()))
		return key, row, err
	})
}

// timeWindowRange is the closeRange of time windows: they are closed at their end, which is exclusive.
type timeWindowRange struct{ windows *TimeWindows }

func (w timeWindowRange) starts(last, closeTime int64) (from, to int64, ok bool) {
	to = closeTime - w.windows.SizeMs
	if last != NoTimestamp {
		from = max(0, last-w.windows.SizeMs) + 1
	}
	return from, to, to >= 0 && (last == NoTimestamp || w.windows.startsWithin(from, to))
}

func (w timeWindowRange) end(start int64) int64 {
	if w.windows.Unlimited {
		return math.MaxInt64
	}
	return start + w.windows.SizeMs
}

// slidingRange is the closeRange of sliding windows: they are closed when their end, which is inclusive, is past.
type slidingRange struct{ difference int64 }

func (w slidingRange) starts(last, closeTime int64) (from, to int64, ok bool) {
	to = closeTime - w.difference - 1
	if last != NoTimestamp {
		from = max(0, last-w.difference)
	}
	return from, to, to >= 0 && from <= to
}

func (w slidingRange) end(start int64) int64 { return start + w.difference }
