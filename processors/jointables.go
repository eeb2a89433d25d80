package processors

import "slices"

// TableJoin is a join of two tables on their keys. It takes three nodes: This gets the updates of the left table, Other those of the
// right one, and both send to Merge, which is the result.
type TableJoin[K, L, R, O any] struct {
	This, Other TableJoinSide
	Merge       Table[K, O]
}

// TableJoinSide is one side of a TableJoin.
type TableJoinSide interface {
	Supplier
	VersionedSemantics
	// Stores are those that have to be connected to the node: it reads the other table's rows.
	Stores() []string
}

// NewTableJoin makes a table-table join. store is nil where the result has no store of its own.
//
// A result's time is the larger of both rows' times. Both tables get their stores; the sides of a left or outer join that may be
// missing something send old values. A tombstone is sent whenever a row that the other side may have matched goes away.
func NewTableJoin[K, L, R, O any](kind JoinKind, left Table[K, L], right Table[K, R], join Joiner[K, L, R, O], store *Store[K, O]) *TableJoin[K, L, R, O] {
	if kind != InnerJoin {
		left.EnableOldValues(true)
	}
	if kind == OuterJoin {
		right.EnableOldValues(true)
	}
	leftView, rightView := left.View(), right.View()
	reversed := func(key K, r *R, l *L) (O, error) { return join(key, l, r) }
	this := &tableJoinSide[K, L, R, O]{
		other: rightView, join: join, needOther: kind == InnerJoin, alone: kind == OuterJoin,
	}
	other := &tableJoinSide[K, R, L, O]{
		other: leftView, join: reversed, needOther: kind != OuterJoin, alone: kind != InnerJoin,
	}
	merge := &tableJoinMerge[K, O]{
		store: store,
		enable: func() {
			left.EnableOldValues(true)
			right.EnableOldValues(true)
			this.old, other.old = true, true
		},
		view: joinedView[K, L, R, O]{leftView, rightView, join, kind},
	}
	return &TableJoin[K, L, R, O]{This: this, Other: other, Merge: merge}
}

// tableJoinSide joins the updates of one table, T, with the rows of the other one, U.
type tableJoinSide[K, T, U, O any] struct {
	other     ViewSupplier[K, U]
	join      Joiner[K, T, U, O]
	needOther bool // without a row on the other side there is no result
	alone     bool // a row of the other side gives a result without one on this side
	old       bool
	versioned bool
}

// Stores implements TableJoinSide.
func (s *tableJoinSide[K, T, U, O]) Stores() []string { return s.other.StoreNames() }

// UseVersionedSemantics implements VersionedSemantics: updates that are not the newest are dropped.
func (s *tableJoinSide[K, T, U, O]) UseVersionedSemantics(on bool) { s.versioned = on }

// New implements Supplier.
func (s *tableJoinSide[K, T, U, O]) New(rt Runtime, children []Child) (Instance, error) {
	out, err := newUpdates[K, O](children, s.old)
	if err != nil {
		return Instance{}, err
	}
	n := &tableJoiner[K, T, U, O]{tableJoinSide: s, rt: rt, out: out, results: nilsOf[O]()}
	views := newViewScope(rt)
	open := func() (err error) { n.rows, err = s.other.Open(views); return err }
	return Instance{Next: Guard(rt, n.process), Init: open, Close: views.close}, nil
}

type tableJoiner[K, T, U, O any] struct {
	*tableJoinSide[K, T, U, O]
	rt       Runtime
	out      *updates[K, O]
	rows     View[K, U]
	results  nils[O]
	now, was T // what the joiner's pointers point to
	row      U
}

func (n *tableJoiner[K, T, U, O]) process(r *Record[K, Change[T]]) error {
	c := &r.Value
	switch {
	case r.KeyNull:
		n.rt.Dropped(DroppedNullKey)
		return nil
	case n.versioned && !c.IsLatest:
		n.rt.Dropped(DroppedOutOfOrder)
		return nil
	}
	row, err := n.rows.Get(r.Key)
	if err != nil {
		return err
	}
	if row.Null {
		if n.needOther || c.NewNull && c.OldNull {
			return nil
		}
	}
	n.now, n.was, n.row = c.New, c.Old, row.Value
	result := Change[O]{OldNull: true, IsLatest: c.IsLatest}
	if result.New, result.NewNull, err = n.joined(r.Key, pointer(&n.now, c.NewNull), row.Null); err != nil {
		return err
	}
	if n.old {
		if result.Old, result.OldNull, err = n.joined(r.Key, pointer(&n.was, c.OldNull), row.Null); err != nil {
			return err
		}
	}
	return send(n.out, r, result, max(r.Timestamp, row.time()))
}

// joined is the result for a row of this side, which is nil if there is none.
func (n *tableJoiner[K, T, U, O]) joined(key K, v *T, otherNull bool) (out O, null bool, err error) {
	if v == nil && (!n.alone || otherNull) {
		return out, true, nil
	}
	out, err = n.join(key, v, pointer(&n.row, otherNull))
	return out, n.results.isNil(out), err
}

// tableJoinMerge is the result of a table join.
type tableJoinMerge[K, O any] struct {
	store  *Store[K, O]
	enable func()
	view   ViewSupplier[K, O]
	old    bool
}

// EnableOldValues implements Table.
func (t *tableJoinMerge[K, O]) EnableOldValues(bool) bool {
	t.enable()
	t.old = true
	return true
}

// View implements Table.
func (t *tableJoinMerge[K, O]) View() ViewSupplier[K, O] {
	if t.store != nil {
		return StoreView[K, O]{*t.store}
	}
	return t.view
}

// New implements Supplier.
func (t *tableJoinMerge[K, O]) New(rt Runtime, children []Child) (Instance, error) {
	out, err := newUpdates[K, O](children, t.old)
	if err != nil {
		return Instance{}, err
	}
	if t.store == nil {
		pass := func(r *Record[K, Change[O]]) error { return send(out, r, r.Value, r.Timestamp) }
		return Instance{Next: Guard(rt, pass)}, nil
	}
	var rows *rows[K, O]
	keep := func(r *Record[K, Change[O]]) error {
		c := r.Value
		if err := rows.at(r.Key); err != nil {
			return err
		}
		put, latest, err := rows.put(c.New, c.NewNull, r.Timestamp)
		if err != nil || !put {
			return err
		}
		c.IsLatest = latest
		return send(out, r, c, r.Timestamp)
	}
	open := func() (err error) { rows, err = openOwnRows(rt, *t.store, out); return err }
	return Instance{Next: Guard(rt, keep), Init: open}, nil
}

// joinedView computes the rows of a join that has no store.
type joinedView[K, L, R, O any] struct {
	left  ViewSupplier[K, L]
	right ViewSupplier[K, R]
	join  Joiner[K, L, R, O]
	kind  JoinKind
}

// StoreNames implements ViewSupplier.
func (v joinedView[K, L, R, O]) StoreNames() []string {
	names := slices.Concat(v.left.StoreNames(), v.right.StoreNames())
	slices.Sort(names)
	return slices.Compact(names)
}

// Open implements ViewSupplier.
func (v joinedView[K, L, R, O]) Open(rt Runtime) (View[K, O], error) {
	left, err := v.left.Open(rt)
	if err != nil {
		return nil, err
	}
	right, err := v.right.Open(rt)
	if err != nil {
		return nil, err
	}
	results := nilsOf[O]()
	return unversioned[K, O](func(key K) (row Row[O], err error) {
		l, err := left.Get(key)
		if err != nil {
			return noRow[O](), err
		}
		if l.Null && v.kind != OuterJoin {
			return noRow[O](), nil
		}
		r, err := right.Get(key)
		if err != nil {
			return noRow[O](), err
		}
		if r.Null && (v.kind == InnerJoin || l.Null) {
			return noRow[O](), nil
		}
		row.Value, err = v.join(key, pointer(&l.Value, l.Null), pointer(&r.Value, r.Null))
		row.Null, row.Timestamp = results.isNil(row.Value), max(l.time(), r.time())
		return row, err
	}), nil
}
