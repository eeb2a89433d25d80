package processors

// NewAggregate aggregates a grouped stream: K, V to K, Change[A]. The store is of kind TimestampedKeyValue, KeyValue or Versioned.
//
// Records with a null key or value are dropped. A result's time is the largest of the times of its records.
func NewAggregate[K, V, A any](aggregation Aggregation[K, V, A], store Store[K, A]) Table[K, A] {
	return &streamAggregate[K, V, A]{aggregated[K, A]{store: store}, aggregation}
}

// NewTableAggregate aggregates a grouped table: K, Change[V] to K, Change[A]. The store is as in NewAggregate.
//
// Where a row leaves a group its old value is subtracted, where one enters the new value is added; both where a row changes.
func NewTableAggregate[K, V, A any](aggregation Aggregation[K, V, A], store Store[K, A]) Table[K, A] {
	return &tableAggregate[K, V, A]{aggregated[K, A]{store: store}, aggregation}
}

// aggregated is what tables that own a store have in common.
type aggregated[K, A any] struct {
	store Store[K, A]
	old   oldValues
}

func (t *aggregated[K, A]) open(rt Runtime, out *updates[K, A]) (*rows[K, A], error) {
	return openOwnRows(rt, t.store, out)
}

// EnableOldValues implements Table.
func (t *aggregated[K, A]) EnableOldValues(bool) bool {
	t.old.send = true
	return true
}

// View implements Table.
func (t *aggregated[K, A]) View() ViewSupplier[K, A] { return StoreView[K, A]{t.store} }

type streamAggregate[K, V, A any] struct {
	aggregated[K, A]
	aggregation Aggregation[K, V, A]
}

// New implements Supplier.
func (t *streamAggregate[K, V, A]) New(rt Runtime, children []Child) (Instance, error) {
	out, err := newUpdates[K, A](children, t.old.send)
	if err != nil {
		return Instance{}, err
	}
	n := &streamAggregator[K, V, A]{Aggregation: t.aggregation, rt: rt, out: out}
	open := func() (err error) { n.rows, err = t.open(rt, out); return err }
	return Instance{Next: Guard(rt, n.process), Init: open}, nil
}

type streamAggregator[K, V, A any] struct {
	Aggregation[K, V, A]
	rt   Runtime
	out  *updates[K, A]
	rows *rows[K, A]
}

func (n *streamAggregator[K, V, A]) process(r *Record[K, V]) error {
	if r.KeyNull {
		n.rt.Dropped(DroppedNullKey)
		return nil
	}
	if r.ValueNull {
		n.rt.Dropped(DroppedNullValue)
		return nil
	}
	row, err := n.rows.find(r.Key)
	if err != nil {
		return err
	}
	old, ts := agg[A]{row.Value, row.Null}, r.Timestamp
	if row.Null {
		// The initial value is then the change's old value, as in Kafka Streams.
		if old, err = n.init(); err != nil {
			return err
		}
	} else {
		ts = max(ts, row.Timestamp)
	}
	before, err := n.unchanged(old, row)
	if err != nil {
		return err
	}
	now, err := n.add(r.Key, r.Value, old)
	if err != nil {
		return err
	}
	return update(n.rows, n.out, r, before, now, ts)
}

// unchanged is the old value that goes along with the change: a copy where add might change the aggregate in place.
func (n *streamAggregator[K, V, A]) unchanged(old agg[A], row Row[A]) (agg[A], error) {
	if !n.out.old || !n.rows.mutable {
		return old, nil
	}
	if row.Null {
		return n.init()
	}
	again, err := n.rows.again()
	return agg[A]{again.Value, again.Null}, err
}

// update stores an aggregate and sends the change.
func update[K, In, A any](rows *rows[K, A], out *updates[K, A], r *Record[K, In], old, now agg[A], ts int64) error {
	put, latest, err := rows.put(now.value, now.null, ts)
	if err != nil || !put {
		return err
	}
	return send(out, r, Change[A]{New: now.value, NewNull: now.null, Old: old.value, OldNull: old.null, IsLatest: latest}, ts)
}

type tableAggregate[K, V, A any] struct {
	aggregated[K, A]
	aggregation Aggregation[K, V, A]
}

// New implements Supplier.
func (t *tableAggregate[K, V, A]) New(rt Runtime, children []Child) (Instance, error) {
	if t.aggregation.sub == nil {
		return Instance{}, errNoSubtractor
	}
	out, err := newUpdates[K, A](children, t.old.send)
	if err != nil {
		return Instance{}, err
	}
	n := &tableAggregator[K, V, A]{Aggregation: t.aggregation, out: out}
	open := func() (err error) { n.rows, err = t.open(rt, out); return err }
	return Instance{Next: Guard(rt, n.process), Init: open}, nil
}

type tableAggregator[K, V, A any] struct {
	Aggregation[K, V, A]
	out  *updates[K, A]
	rows *rows[K, A]
}

func (n *tableAggregator[K, V, A]) process(r *Record[K, Change[V]]) error {
	if r.KeyNull {
		return errAggregateNoKey
	}
	row, err := n.rows.find(r.Key)
	if err != nil {
		return err
	}
	before := row
	if n.out.old && n.rows.mutable && !row.Null {
		if before, err = n.rows.again(); err != nil {
			return err
		}
	}
	now, used, err := n.apply(r.Key, &r.Value, agg[A]{row.Value, row.Null})
	if err != nil {
		return err
	}
	ts := r.Timestamp
	if used {
		ts = max(ts, row.Timestamp)
	}
	return update(n.rows, n.out, r, agg[A]{before.Value, before.Null}, now, ts)
}

// apply subtracts the old value and adds the new one. used tells whether the present aggregate went into the result, whose time then
// counts too.
func (n *tableAggregator[K, V, A]) apply(key K, c *Change[V], now agg[A]) (_ agg[A], used bool, err error) {
	there := !now.null
	if !c.OldNull && there {
		if now, err = n.sub(key, c.Old, now); err != nil {
			return now, false, err
		}
		used = true
	}
	if c.NewNull {
		return now, used, nil
	}
	if now.null {
		if now, err = n.init(); err != nil {
			return now, false, err
		}
	}
	now, err = n.add(key, c.New, now)
	return now, used || there, err
}
