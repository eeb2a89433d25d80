package processors

// NewWindowAggregate aggregates a grouped stream in time windows: K, V to Windowed[K], Change[A]. The store is of kind
// TimestampedWindow.
//
// Records with a null key are dropped; null values are not, as in Kafka Streams, unless V can't hold them. A late record is dropped,
// and counted, once for each closed window that it falls into.
func NewWindowAggregate[K, V, A any](aggregation Aggregation[K, V, A], windows TimeWindows, emit Emit, store Store[K, A]) Table[Windowed[K], A] {
	return &windowAggregate[K, V, A]{windowed: windowed[K, A]{store: store}, aggregation: aggregation, windows: windows, emit: emit}
}

// windowed is what aggregations with a window store have in common.
type windowed[K, A any] struct {
	store Store[K, A]
	old   oldValues
}

// EnableOldValues implements Table.
func (t *windowed[K, A]) EnableOldValues(bool) bool {
	t.old.send = true
	return true
}

// View implements Table.
func (t *windowed[K, A]) View() ViewSupplier[Windowed[K], A] { return windowView[K, A]{t.store} }

type windowAggregate[K, V, A any] struct {
	windowed[K, A]
	aggregation Aggregation[K, V, A]
	windows     TimeWindows
	emit        Emit
}

// New implements Supplier.
func (t *windowAggregate[K, V, A]) New(rt Runtime, children []Child) (Instance, error) {
	out, err := newUpdates[Windowed[K], A](children, t.old.send)
	if err != nil {
		return Instance{}, err
	}
	n := &windowAggregator[K, V, A]{
		windowNode: windowNode[K, V, A]{Aggregation: t.aggregation, rt: rt, out: out, time: newStreamTime(rt), emit: t.emit},
		windows:    t.windows,
	}
	n.inWindow = n.update
	open := func() error { return n.open(t.store, timeWindowRange{&n.windows}, n.windows.GraceMs) }
	return Instance{Next: Guard(rt, n.process), Init: open}, nil
}

// windowNode is what the nodes of time windows and of sliding windows have in common.
type windowNode[K, V, A any] struct {
	Aggregation[K, V, A]
	rt     Runtime
	out    *updates[Windowed[K], A]
	rows   *windowRows[K, A]
	time   streamTime
	emit   Emit
	closer *windowCloser[K, A]
}

func (n *windowNode[K, V, A]) open(store Store[K, A], windows closeRange, graceMs int64) (err error) {
	if n.rows, err = openWindowRows(n.rt, store); err != nil {
		return err
	}
	n.closer = &windowCloser[K, A]{newRounds(n.rt, n.emit, n.rows.retention), n.rows, n.out, windows}
	n.closeAtIdle(graceMs)
	if n.emit.OnClose {
		return nil
	}
	return n.rows.holdBack(n.out, windows.end)
}

// store writes a window's aggregate and, unless results wait for the window's end, sends the change.
func (n *windowNode[K, V, A]) store(r *Record[K, V], w Window, old, now agg[A], ts int64) error {
	if err := n.rows.set(now.value, now.null, w.Start, ts); err != nil {
		return err
	}
	if n.emit.OnClose {
		return nil
	}
	c := Change[A]{New: now.value, NewNull: now.null, Old: old.value, OldNull: old.null, IsLatest: true}
	return n.out.send(Windowed[K]{Key: r.Key, Window: w}, c, ts, r.Headers)
}

type windowAggregator[K, V, A any] struct {
	windowNode[K, V, A]
	windows TimeWindows

	record    *Record[K, V] // the current one
	closeTime int64
	inWindow  func(Window) error
}

func (n *windowAggregator[K, V, A]) process(r *Record[K, V]) error {
	if r.KeyNull {
		n.rt.Dropped(DroppedNullKey)
		return nil
	}
	moved := n.time.observe(r.Timestamp) && n.rows.timed
	n.closeTime = n.time.now
	if !n.windows.Unlimited {
		n.closeTime -= n.windows.GraceMs
	}
	if r.ValueNull && !n.nulls {
		n.rt.Dropped(DroppedNullValue)
		return n.closer.close(n.closeTime, r.Timestamp, r.Headers)
	}
	if moved {
		if err := n.closer.close(n.closeTime, r.Timestamp, r.Headers); err != nil {
			return err
		}
	}
	n.record = r
	if err := n.windows.each(r.Timestamp, n.inWindow); err != nil || moved {
		return err
	}
	return n.closer.close(n.closeTime, r.Timestamp, r.Headers)
}

// update takes the current record into one of its windows.
func (n *windowAggregator[K, V, A]) update(w Window) error {
	r := n.record
	if w.End <= n.closeTime {
		n.rt.Dropped(DroppedLate)
		return nil
	}
	row, err := n.rows.find(r.Key, w.Start)
	if err != nil {
		return err
	}
	old, ts := agg[A]{row.Value, row.Null}, r.Timestamp
	if row.Null {
		if old, err = n.init(); err != nil {
			return err
		}
	} else {
		ts = max(ts, row.Timestamp)
	}
	before := old
	if n.out.old && n.rows.mutable {
		if before, err = n.before(row); err != nil {
			return err
		}
	}
	now, err := n.add(r.Key, r.Value, old)
	if err != nil {
		return err
	}
	return n.store(r, w, before, now, ts)
}

// before is the aggregate just read once more: add may change the other one in place.
func (n *windowNode[K, V, A]) before(row Row[A]) (agg[A], error) {
	if row.Null {
		return n.init()
	}
	again, err := n.rows.again()
	return agg[A]{again.Value, again.Null}, err
}
