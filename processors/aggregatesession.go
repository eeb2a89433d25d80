package processors

// NewSessionAggregate aggregates a grouped stream in sessions: K, V to Windowed[K], Change[A]. The store is of kind Session.
//
// Records with a null key are dropped; null values are not, as in Kafka Streams, unless V can't hold them. A record joins all sessions
// within the gap into one: the old ones are deleted, each with an update of its own. Results carry the session's end as their time and
// no headers, except on close, where they carry those of the record that closed the session.
func NewSessionAggregate[K, V, A any](aggregation Aggregation[K, V, A], windows SessionWindows, emit Emit, store Store[K, A]) Table[Windowed[K], A] {
	return &sessionAggregate[K, V, A]{store: store, aggregation: aggregation, windows: windows, emit: emit}
}

type sessionAggregate[K, V, A any] struct {
	store       Store[K, A]
	old         oldValues
	aggregation Aggregation[K, V, A]
	windows     SessionWindows
	emit        Emit
}

// EnableOldValues implements Table.
func (t *sessionAggregate[K, V, A]) EnableOldValues(bool) bool {
	t.old.send = true
	return true
}

// View implements Table.
func (t *sessionAggregate[K, V, A]) View() ViewSupplier[Windowed[K], A] {
	return sessionView[K, A]{t.store}
}

// New implements Supplier.
func (t *sessionAggregate[K, V, A]) New(rt Runtime, children []Child) (Instance, error) {
	if t.aggregation.merge == nil {
		return Instance{}, errNoMerger
	}
	out, err := newUpdates[Windowed[K], A](children, t.old.send)
	if err != nil {
		return Instance{}, err
	}
	n := &sessionAggregator[K, V, A]{
		Aggregation: t.aggregation, rt: rt, out: out, time: newStreamTime(rt), windows: t.windows, emit: t.emit,
	}
	open := func() (err error) {
		if n.rows, err = openSessionRows(rt, t.store); err != nil {
			return err
		}
		n.closer = &sessionCloser[K, A]{newRounds(rt, t.emit, n.rows.retention), n.rows, out}
		onIdleTime(rt, n.idle)
		if t.emit.OnClose {
			return nil
		}
		return n.rows.holdBack(out)
	}
	return Instance{Next: Guard(rt, n.process), Init: open}, nil
}

type sessionAggregator[K, V, A any] struct {
	Aggregation[K, V, A]
	rt      Runtime
	out     *updates[Windowed[K], A]
	rows    *sessionRows[K, A]
	time    streamTime
	windows SessionWindows
	emit    Emit
	closer  *sessionCloser[K, A]
	found   []session[A] // reused
}

func (n *sessionAggregator[K, V, A]) process(r *Record[K, V]) error {
	if r.KeyNull {
		n.rt.Dropped(DroppedNullKey)
		return nil
	}
	moved := n.time.observe(r.Timestamp)
	closeTime := n.time.now - n.windows.GraceMs - n.windows.GapMs
	if moved {
		if err := n.closer.close(closeTime, r.Timestamp, r.Headers); err != nil {
			return err
		}
	}
	if err := n.update(r, closeTime); err != nil || moved {
		return err
	}
	return n.closer.close(closeTime, r.Timestamp, r.Headers)
}

// update joins the record with the sessions around it.
func (n *sessionAggregator[K, V, A]) update(r *Record[K, V], closeTime int64) error {
	if r.ValueNull && !n.nulls {
		n.rt.Dropped(DroppedNullValue)
		return nil
	}
	w, merged, err := n.merge(r)
	if err != nil {
		return err
	}
	if w.End < closeTime {
		n.rt.Dropped(DroppedLate)
		return nil
	}
	if w.Start != r.Timestamp || w.End != r.Timestamp {
		for i := range n.found {
			if err := n.removeSession(r, &n.found[i]); err != nil {
				return err
			}
		}
	}
	now, err := n.add(r.Key, r.Value, merged)
	if err != nil {
		return err
	}
	if err := n.rows.set(w, now); err != nil {
		return err
	}
	return n.send(r, w, Change[A]{New: now.value, NewNull: now.null, OldNull: true, IsLatest: true})
}

// merge finds the sessions within the gap around r and joins them: w is the session that they and r make.
func (n *sessionAggregator[K, V, A]) merge(r *Record[K, V]) (w Window, merged agg[A], err error) {
	clear(n.found)
	n.found, err = n.rows.findAll(n.found[:0], r.Key, r.Timestamp-n.windows.GapMs, r.Timestamp+n.windows.GapMs)
	if err != nil {
		return w, merged, err
	}
	w = Window{Start: r.Timestamp, End: r.Timestamp}
	if merged, err = n.init(); err != nil {
		return w, merged, err
	}
	for i := range n.found {
		s := &n.found[i]
		if merged, err = n.Aggregation.merge(r.Key, merged, s.value); err != nil {
			return w, merged, err
		}
		w.Start, w.End = min(w.Start, s.window.Start), max(w.End, s.window.End)
	}
	return w, merged, nil
}

func (n *sessionAggregator[K, V, A]) removeSession(r *Record[K, V], s *session[A]) error {
	if err := n.rows.remove(s.window); err != nil {
		return err
	}
	before, err := n.rows.before(s)
	if err != nil {
		return err
	}
	return n.send(r, s.window, Change[A]{NewNull: true, Old: before.value, OldNull: before.null, IsLatest: true})
}

func (n *sessionAggregator[K, V, A]) send(r *Record[K, V], w Window, c Change[A]) error {
	if n.emit.OnClose {
		return nil
	}
	return n.out.send(Windowed[K]{Key: r.Key, Window: w}, c, w.End, nil)
}
