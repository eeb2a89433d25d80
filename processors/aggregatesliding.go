package processors

import (
	"math"
	"slices"

	"github.com/tributary-io/tributary/state"
)

// NewSlidingAggregate aggregates a grouped stream in sliding windows (KIP-450): K, V to Windowed[K], Change[A]. The store is of kind
// TimestampedWindow and must keep two differences and the grace.
//
// Records with a null key or value are dropped. A record belongs to the window that ends at it (its left window), to those that hold
// it already, and starts a right window, one ms after it, as soon as that holds another record. Windows that would start before time 0
// are one window that starts at 0.
func NewSlidingAggregate[K, V, A any](aggregation Aggregation[K, V, A], windows SlidingWindows, emit Emit, store Store[K, A]) Table[Windowed[K], A] {
	return &slidingAggregate[K, V, A]{windowed: windowed[K, A]{store: store}, aggregation: aggregation, windows: windows, emit: emit}
}

type slidingAggregate[K, V, A any] struct {
	windowed[K, A]
	aggregation Aggregation[K, V, A]
	windows     SlidingWindows
	emit        Emit
}

// New implements Supplier.
func (t *slidingAggregate[K, V, A]) New(rt Runtime, children []Child) (Instance, error) {
	out, err := newUpdates[Windowed[K], A](children, t.old.send)
	if err != nil {
		return Instance{}, err
	}
	n := &slidingAggregator[K, V, A]{
		windowNode: windowNode[K, V, A]{Aggregation: t.aggregation, rt: rt, out: out, time: newStreamTime(rt), emit: t.emit},
		difference: t.windows.DifferenceMs,
		grace:      t.windows.GraceMs,
	}
	open := func() error { return n.open(t.store, slidingRange{n.difference}, n.grace) }
	return Instance{Next: Guard(rt, n.process), Init: open}, nil
}

type slidingAggregator[K, V, A any] struct {
	windowNode[K, V, A]
	difference, grace int64

	record    *Record[K, V] // the current one
	closeTime int64
	found     []slidingWindow[A] // the windows of the record's key around it, reused
}

// slidingWindow is a window found in the store. The row's timestamp is that of the last record in it.
type slidingWindow[A any] struct {
	start int64
	row   Row[A]
	again []byte // the row's bytes, where the aggregate may be changed in place
}

func (n *slidingAggregator[K, V, A]) process(r *Record[K, V]) error {
	if r.KeyNull || r.ValueNull {
		n.rt.Dropped(nullReason(r.KeyNull))
		return nil
	}
	moved := n.time.observe(r.Timestamp) && n.rows.timed
	n.record, n.closeTime = r, n.time.now-n.grace
	if r.Timestamp+n.difference < n.closeTime {
		n.rt.Dropped(DroppedLate)
		return nil
	}
	if r.Timestamp < n.difference {
		return n.processEarly(r.Timestamp)
	}
	if moved {
		if err := n.closer.close(n.closeTime, r.Timestamp, r.Headers); err != nil {
			return err
		}
	}
	if err := n.processWindows(r.Timestamp); err != nil || moved {
		return err
	}
	return n.closer.close(n.closeTime, r.Timestamp, r.Headers)
}

func nullReason(keyNull bool) string {
	if keyNull {
		return DroppedNullKey
	}
	return DroppedNullValue
}

// noRecord is no time, not even that of a row without one: a plain store's rows have none, so that the last record of each of its windows
// seems to be one of before time 0, as in Kafka Streams.
const noRecord int64 = math.MinInt64

// surroundings is what the windows in the store say about a record's neighbours.
type surroundings[A any] struct {
	left, right *slidingWindow[A] // what the record's own left and right window start from
	leftThere   bool              // the record's left window exists
	rightThere  bool              // the record's right window exists
	previous    int64             // the time of the record before it, or noRecord
}

// processWindows takes the record into the windows around it, latest first, and makes those that it starts.
func (n *slidingAggregator[K, V, A]) processWindows(ts int64) error {
	if err := n.fetch(max(0, ts-2*n.difference), ts+1, state.Backward); err != nil {
		return err
	}
	s := surroundings[A]{previous: noRecord}
	for i := range n.found {
		w := &n.found[i]
		end := w.start + n.difference
		if w.start == ts+1 {
			s.rightThere = true
			continue
		}
		if end < ts {
			s.left, s.previous = w, w.row.Timestamp
			break
		}
		if end > ts && s.right == nil {
			s.right = w
		}
		if err := n.update(w.start, w); err != nil {
			return err
		}
		if end == ts {
			s.leftThere = true
			if w.row.Timestamp >= ts {
				return nil // a record of the same time has made all windows that this one could
			}
			s.previous = w.row.Timestamp
		}
	}
	return n.create(ts, &s)
}

// create makes the windows that the record is the first to need.
func (n *slidingAggregator[K, V, A]) create(ts int64, s *surroundings[A]) error {
	if s.previous != noRecord {
		start := s.previous + 1
		if !n.exists(start) && start+n.difference >= ts {
			if err := n.update(start, nil); err != nil {
				return err
			}
		}
	}
	if !s.leftThere {
		var from *slidingWindow[A]
		if s.previous != noRecord && ts-n.difference <= s.previous {
			from = s.left
		}
		if err := n.updateAt(ts-n.difference, from, ts); err != nil {
			return err
		}
	}
	if !s.rightThere {
		return n.createRight(ts, s.right)
	}
	return nil
}

// processEarly takes a record whose left window would start before 0: the window 0..difference takes its place.
func (n *slidingAggregator[K, V, A]) processEarly(ts int64) error {
	if err := n.fetch(0, ts+1, state.Forward); err != nil {
		return err
	}
	var first, right *slidingWindow[A]
	rightThere, previous := false, noRecord
	for i := range n.found {
		w := &n.found[i]
		switch {
		case w.start == 0:
			first = w
			if w.row.Timestamp < ts {
				previous = w.row.Timestamp
			}
		case w.start == ts+1:
			rightThere = true
		default:
			right = w
			if err := n.update(w.start, w); err != nil {
				return err
			}
		}
	}
	if right == nil && first != nil && first.row.Timestamp > ts {
		right = first
	}
	if !rightThere {
		if err := n.createRight(ts, right); err != nil {
			return err
		}
	}
	if previous != noRecord && !n.exists(previous+1) {
		if err := n.update(previous+1, nil); err != nil {
			return err
		}
	}
	return n.update(0, first)
}

// createRight makes the record's right window, if it holds anything: it has what from has, which is all later than the record.
func (n *slidingAggregator[K, V, A]) createRight(ts int64, from *slidingWindow[A]) error {
	if from == nil || from.row.Timestamp <= ts {
		return nil
	}
	a, err := n.fresh(from)
	if err != nil {
		return err
	}
	return n.store(n.record, Window{Start: ts + 1, End: ts + 1 + n.difference}, agg[A]{null: true}, a, from.row.Timestamp)
}

// update adds the record to a window, which is new if w is nil.
func (n *slidingAggregator[K, V, A]) update(start int64, w *slidingWindow[A]) error {
	if w == nil {
		return n.updateAt(start, nil, n.record.Timestamp)
	}
	return n.updateAt(start, w, w.row.Timestamp)
}

// updateAt adds the record to the window that starts at start and has what from has so far, the last of it at time last.
func (n *slidingAggregator[K, V, A]) updateAt(start int64, from *slidingWindow[A], last int64) error {
	w := Window{Start: start, End: start + n.difference}
	if w.End < n.closeTime {
		n.rt.Dropped(DroppedLate)
		return nil
	}
	old, err := n.fresh(from)
	if err != nil {
		return err
	}
	before := old
	if n.out.old && n.rows.mutable {
		if before, err = n.fresh(from); err != nil {
			return err
		}
	}
	now, err := n.add(n.record.Key, n.record.Value, old)
	if err != nil {
		return err
	}
	ts := n.record.Timestamp
	if !old.null {
		ts = max(ts, last)
	}
	return n.store(n.record, w, before, now, ts)
}

// fresh is a window's aggregate for one use: several windows may start from the same one, and add may change it in place.
func (n *slidingAggregator[K, V, A]) fresh(w *slidingWindow[A]) (agg[A], error) {
	if w == nil {
		return n.init()
	}
	if w.again == nil {
		return agg[A]{w.row.Value, w.row.Null}, nil
	}
	row, err := n.rows.decodeShared(w.again, w.row.Timestamp)
	return agg[A]{row.Value, row.Null}, err
}

// fetch reads the windows of the record's key that start within from..to. They are read before any is changed.
func (n *slidingAggregator[K, V, A]) fetch(from, to int64, dir state.Direction) (err error) {
	clear(n.found)
	n.found = n.found[:0]
	if err := n.rows.encodeKey(n.record.Key); err != nil {
		return err
	}
	it, err := n.rows.bytes.Fetch(n.rows.key, from, to, dir)
	if err != nil {
		return n.rows.failed("fetch", err)
	}
	defer func() {
		if closed := it.Close(); err == nil {
			err = fatal(closed)
		}
	}()
	for it.Next() {
		row, err := n.rows.decodeShared(it.Value(), n.rows.time(it.Timestamp()))
		if err != nil {
			return err
		}
		w := slidingWindow[A]{start: it.Start(), row: row}
		if n.rows.mutable {
			w.again = slices.Clone(n.rows.last)
		}
		n.found = append(n.found, w)
	}
	return nil
}

func (n *slidingAggregator[K, V, A]) exists(start int64) bool {
	return slices.ContainsFunc(n.found, func(w slidingWindow[A]) bool { return w.start == start })
}
