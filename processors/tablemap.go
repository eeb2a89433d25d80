package processors

// tableMap is a table whose values are made of its parent's, one by one: MapValues and TransformValues.
type tableMap[K, V, V2 any] struct {
	parent Table[K, V]
	store  *Store[K, V2]
	old    oldValues
	// mapper makes the function for one task.
	mapper func(rt Runtime) (mapValue[K, V, V2], func() error, error)
}

// mapValue makes a new value; v is nil for a null.
type mapValue[K, V, V2 any] func(key K, v *V) (V2, bool, error)

// NewTableMapValues makes a table with other values. f never sees a null: a delete stays a delete. store is nil where the result has
// no store of its own.
func NewTableMapValues[K, V, V2 any](parent Table[K, V], f func(K, V) (V2, error), store *Store[K, V2]) Table[K, V2] {
	results := nilsOf[V2]()
	mapped := func(key K, v *V) (out V2, null bool, err error) {
		if v == nil {
			return out, true, nil
		}
		out, err = f(key, *v)
		return out, results.isNil(out), err
	}
	return &tableMap[K, V, V2]{parent: parent, store: store, mapper: func(Runtime) (mapValue[K, V, V2], func() error, error) {
		return mapped, nil, nil
	}}
}

// EnableOldValues implements Table.
func (t *tableMap[K, V, V2]) EnableOldValues(force bool) bool {
	return t.old.enable(t.store != nil, force, t.parent.EnableOldValues)
}

// New implements Supplier.
func (t *tableMap[K, V, V2]) New(rt Runtime, children []Child) (Instance, error) {
	out, err := newUpdates[K, V2](children, t.old.send)
	if err != nil {
		return Instance{}, err
	}
	n := &tableMapper[K, V, V2]{out: out}
	var closer func() error
	return Instance{
		Next: Guard(rt, n.process),
		Init: func() (err error) {
			if n.mapped, closer, err = t.mapper(rt); err != nil || t.store == nil {
				return err
			}
			n.rows, err = openOwnRows(rt, *t.store, out)
			return err
		},
		Close: func() error {
			if closer == nil {
				return nil
			}
			return closer()
		},
	}, nil
}

type tableMapper[K, V, V2 any] struct {
	out    *updates[K, V2]
	mapped mapValue[K, V, V2]
	rows   *rows[K, V2]
	v, o   V // what a mapper's argument points to
}

func (n *tableMapper[K, V, V2]) process(r *Record[K, Change[V]]) (err error) {
	c := Change[V2]{OldNull: true, IsLatest: r.Value.IsLatest}
	n.v = r.Value.New
	if c.New, c.NewNull, err = n.mapped(r.Key, pointer(&n.v, r.Value.NewNull)); err != nil {
		return err
	}
	if n.rows != nil {
		return n.store(r, c)
	}
	if n.out.old {
		n.o = r.Value.Old
		if c.Old, c.OldNull, err = n.mapped(r.Key, pointer(&n.o, r.Value.OldNull)); err != nil {
			return err
		}
	}
	return send(n.out, r, c, r.Timestamp)
}

func (n *tableMapper[K, V, V2]) store(r *Record[K, Change[V]], c Change[V2]) error {
	if n.out.old {
		row, err := n.rows.find(r.Key)
		if err != nil {
			return err
		}
		c.Old, c.OldNull = row.Value, row.Null
	} else if err := n.rows.at(r.Key); err != nil {
		return err
	}
	put, latest, err := n.rows.put(c.New, c.NewNull, r.Timestamp)
	if err != nil || !put {
		return err
	}
	c.IsLatest = latest
	return send(n.out, r, c, r.Timestamp)
}

// View implements Table.
func (t *tableMap[K, V, V2]) View() ViewSupplier[K, V2] {
	if t.store != nil {
		return StoreView[K, V2]{*t.store}
	}
	return mappedView[K, V, V2]{t.parent.View(), func(rt Runtime) (mapRow[K, V, V2], error) {
		mapped, closer, err := t.mapper(rt)
		if err != nil {
			return nil, err
		}
		closeWith(rt, closer)
		var v V
		return func(key K, row Row[V]) (out Row[V2], err error) {
			v = row.Value
			out.Value, out.Null, err = mapped(key, pointer(&v, row.Null))
			out.Timestamp = row.Timestamp
			return out, err
		}, nil
	}}
}

// pointer is p, or nil for a null.
func pointer[T any](p *T, null bool) *T {
	if null {
		return nil
	}
	return p
}
