package processors

// TableFilter passes the rows of a table for which keep is true; others, and those that no longer pass, become deletes.
type TableFilter[K, V any] struct {
	parent    Table[K, V]
	keep      func(K, V) (bool, error)
	not       bool
	store     *Store[K, V]
	old       oldValues
	versioned bool
}

// NewTableFilter makes a TableFilter. not inverts keep. store is nil where the result has no store of its own.
//
// Where a parent has a store at hand, its old values are enabled, so that rows which pass neither before nor after an update send
// nothing. Elsewhere each of them sends a delete, as in Kafka Streams.
func NewTableFilter[K, V any](parent Table[K, V], keep func(K, V) (bool, error), not bool, store *Store[K, V]) *TableFilter[K, V] {
	t := &TableFilter[K, V]{parent: parent, keep: keep, not: not, store: store}
	t.old.send = parent.EnableOldValues(false)
	return t
}

// UseVersionedSemantics implements VersionedSemantics: of a versioned table every update goes on.
func (t *TableFilter[K, V]) UseVersionedSemantics(on bool) { t.versioned = on }

// EnableOldValues implements Table.
func (t *TableFilter[K, V]) EnableOldValues(force bool) bool {
	return t.old.enable(t.store != nil, force, t.parent.EnableOldValues)
}

// View implements Table.
func (t *TableFilter[K, V]) View() ViewSupplier[K, V] {
	if t.store != nil {
		return StoreView[K, V]{*t.store}
	}
	return mappedView[K, V, V]{t.parent.View(), func(Runtime) (mapRow[K, V, V], error) {
		return func(key K, row Row[V]) (Row[V], error) {
			if row.Null {
				return row, nil
			}
			null, err := t.dropped(key, row.Value, false)
			if null || err != nil {
				return noRow[V](), err
			}
			return row, nil
		}, nil
	}}
}

// dropped tells whether a value does not pass.
func (t *TableFilter[K, V]) dropped(key K, v V, null bool) (bool, error) {
	if null {
		return true, nil
	}
	ok, err := t.keep(key, v)
	return ok == t.not, err
}

// New implements Supplier.
func (t *TableFilter[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	out, err := newUpdates[K, V](children, t.old.send)
	if err != nil {
		return Instance{}, err
	}
	n := &tableFilter[K, V]{table: t, out: out}
	if t.store == nil {
		return Instance{Next: Guard(rt, n.process)}, nil
	}
	open := func() (err error) { n.rows, err = openOwnRows(rt, *t.store, out); return err }
	return Instance{Next: Guard(rt, n.process), Init: open}, nil
}

type tableFilter[K, V any] struct {
	table *TableFilter[K, V]
	out   *updates[K, V]
	rows  *rows[K, V]
}

func (n *tableFilter[K, V]) process(r *Record[K, Change[V]]) error {
	c := r.Value
	var err error
	if c.NewNull, err = n.table.dropped(r.Key, c.New, c.NewNull); err != nil {
		return err
	}
	if err := n.setOld(r.Key, &c); err != nil {
		return err
	}
	if !n.table.versioned && n.out.old && c.OldNull && c.NewNull {
		return nil
	}
	clearNulls(&c)
	if n.rows != nil {
		put, latest, err := n.rows.put(c.New, c.NewNull, r.Timestamp)
		if err != nil || !put {
			return err
		}
		c.IsLatest = latest
	}
	return send(n.out, r, c, r.Timestamp)
}

// setOld sets c's old value to what this table had before: by its own store, else by what its parent had.
func (n *tableFilter[K, V]) setOld(key K, c *Change[V]) (err error) {
	switch {
	case n.rows != nil && n.out.old:
		row, err := n.rows.find(key)
		c.Old, c.OldNull = row.Value, row.Null
		return err
	case n.rows != nil:
		c.OldNull = true
		return n.rows.at(key)
	case n.out.old:
		c.OldNull, err = n.table.dropped(key, c.Old, c.OldNull)
		return err
	}
	c.OldNull = true
	return nil
}

// clearNulls keeps the rule of null bits: a null holds no value.
func clearNulls[V any](c *Change[V]) {
	var none V
	if c.NewNull {
		c.New = none
	}
	if c.OldNull {
		c.Old = none
	}
}
