package processors

// TableSource turns records into the updates of a table, and keeps its rows in a store, of kind TimestampedKeyValue, KeyValue or
// Versioned, if anyone needs them. It serves table topics, Stream.ToTable, global tables and the results of foreign-key joins.
//
// Records without a key are dropped. A plain store takes every update, late ones too; a versioned one sorts them in by time and marks
// in Change.IsLatest what is not the newest.
type TableSource[K, V any] struct {
	store        Store[K, V]
	materialized bool
	old          oldValues
}

// NewTableSource makes a table source. store names its store whether there is one or not; materialized says that the user wants it.
func NewTableSource[K, V any](store Store[K, V], materialized bool) *TableSource[K, V] {
	return &TableSource[K, V]{store: store, materialized: materialized}
}

// Materialized reports whether the table has its store. It is known when the whole topology is.
func (t *TableSource[K, V]) Materialized() bool { return t.materialized }

// Materialize gives the table its store.
func (t *TableSource[K, V]) Materialize() { t.materialized = true }

// EnableOldValues implements Table.
func (t *TableSource[K, V]) EnableOldValues(force bool) bool {
	if t.old.send {
		return true
	}
	if !force && !t.materialized {
		return false
	}
	t.materialized, t.old.send = true, true
	return true
}

// View implements Table. It gives the table its store.
func (t *TableSource[K, V]) View() ViewSupplier[K, V] {
	t.Materialize()
	return StoreView[K, V]{t.store}
}

// New implements Supplier.
func (t *TableSource[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	out, err := newUpdates[K, V](children, t.old.send)
	if err != nil {
		return Instance{}, err
	}
	n := &tableSource[K, V]{rt: rt, out: out}
	if !t.materialized {
		return Instance{Next: Guard(rt, n.passOn)}, nil
	}
	open := func() (err error) { n.rows, err = openOwnRows(rt, t.store, out); return err }
	return Instance{Next: Guard(rt, n.store), Init: open}, nil
}

type tableSource[K, V any] struct {
	rt   Runtime
	out  *updates[K, V]
	rows *rows[K, V]
}

func (n *tableSource[K, V]) passOn(r *Record[K, V]) error {
	if r.KeyNull {
		n.rt.Dropped(DroppedNullKey)
		return nil
	}
	return send(n.out, r, Change[V]{New: r.Value, NewNull: r.ValueNull, OldNull: true, IsLatest: true}, r.Timestamp)
}

func (n *tableSource[K, V]) store(r *Record[K, V]) error {
	if r.KeyNull {
		n.rt.Dropped(DroppedNullKey)
		return nil
	}
	old, err := n.oldRow(r.Key)
	if err != nil {
		return err
	}
	put, latest, err := n.rows.put(r.Value, r.ValueNull, r.Timestamp)
	if err != nil || !put {
		return err
	}
	return send(n.out, r, Change[V]{
		New: r.Value, NewNull: r.ValueNull, Old: old.Value, OldNull: old.Null, IsLatest: latest,
	}, r.Timestamp)
}

// oldRow reads the present row only if it is to be sent.
func (n *tableSource[K, V]) oldRow(key K) (Row[V], error) {
	if n.out.old {
		return n.rows.find(key)
	}
	return noRow[V](), n.rows.at(key)
}
