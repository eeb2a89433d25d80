package processors

import "github.com/tributary-io/tributary/state"

// StreamTableJoin joins each record of a stream with a table's row of the same key. It is a Supplier.
//
// Records with a null value are dropped. So are those with a null key in an inner join; a left join joins them with nil. Only the
// stream's records give results.
type StreamTableJoin[K, L, R, O any] struct {
	Table ViewSupplier[K, R]
	Join  Joiner[K, L, R, O]
	Left  bool // left join: a record without a row is joined with nil
	// With a Buffer records are held back for GraceMs, in stream time, so that the row as of the record's time is known (KIP-923). It
	// needs a versioned table. Buffer names a store of kind JoinBuffer, whose spec has the same grace. A record that is later than that
	// is joined at once.
	GraceMs int64
	Buffer  Store[K, L]
}

// New implements Supplier.
func (j StreamTableJoin[K, L, R, O]) New(rt Runtime, children []Child) (Instance, error) {
	n, err := newRowJoin(rt, children, j.Table, j.Join, j.Left)
	if err != nil {
		return Instance{}, err
	}
	process := func(r *Record[K, L]) error { return n.process(r, r.Key, r.KeyNull) }
	if j.Buffer.Name == "" {
		return Instance{Next: Guard(rt, process), Init: n.open, Close: n.views.close}, nil
	}
	b := &bufferedJoin[K, L, R, O]{join: n, rt: rt, ctx: rt.Context()}
	// Each record that leaves the buffer is guarded on its own: its failure is not that of the record that drove it out.
	b.joinNow = Guard(rt, process)
	open := func() error {
		if err := n.open(); err != nil {
			return err
		}
		return b.open(j.Buffer)
	}
	return Instance{Next: Guard(rt, b.process), Init: open, Close: n.views.close}, nil
}

// GlobalTableJoin joins each record of a stream with the row of a global table whose key Select gives. It is a Supplier. Nulls are
// treated as in StreamTableJoin, the selected key taking the part of the record's.
type GlobalTableJoin[K, L, GK, R, O any] struct {
	Table  ViewSupplier[GK, R]
	Select func(K, L) (GK, error)
	Join   Joiner[K, L, R, O]
	Left   bool
}

// New implements Supplier.
func (j GlobalTableJoin[K, L, GK, R, O]) New(rt Runtime, children []Child) (Instance, error) {
	n, err := newRowJoin(rt, children, j.Table, j.Join, j.Left)
	if err != nil {
		return Instance{}, err
	}
	args, selected := argumentsOf[K, L](), nilsOf[GK]()
	process := func(r *Record[K, L]) error {
		if r.ValueNull {
			rt.Dropped(DroppedNullValue)
			return nil
		}
		if err := args.check(r.KeyNull, false); err != nil {
			return err
		}
		key, err := j.Select(r.Key, r.Value)
		if err != nil {
			return err
		}
		return n.process(r, key, selected.isNil(key))
	}
	return Instance{Next: Guard(rt, process), Init: n.open, Close: n.views.close}, nil
}

// rowJoin joins records with rows of a view, whose keys may be others than the records'.
type rowJoin[K, L, TK, R, O any] struct {
	rt      Runtime
	view    View[TK, R]
	views   *viewScope
	from    ViewSupplier[TK, R]
	join    Joiner[K, L, R, O]
	left    bool
	next    Next[K, O]
	results nils[O]
	value   L // what the joiner's pointers point to
	row     R
	out     Record[K, O]
}

func newRowJoin[K, L, TK, R, O any](rt Runtime, children []Child, from ViewSupplier[TK, R], join Joiner[K, L, R, O], left bool) (*rowJoin[K, L, TK, R, O], error) {
	next, err := Fan[K, O](children)
	return &rowJoin[K, L, TK, R, O]{rt: rt, views: newViewScope(rt), from: from, join: join, left: left, next: next, results: nilsOf[O]()}, err
}

func (n *rowJoin[K, L, TK, R, O]) open() (err error) {
	n.view, err = n.from.Open(n.views)
	return err
}

// process joins r with the row of key.
func (n *rowJoin[K, L, TK, R, O]) process(r *Record[K, L], key TK, keyNull bool) error {
	if r.ValueNull {
		n.rt.Dropped(DroppedNullValue)
		return nil
	}
	if keyNull && !n.left {
		n.rt.Dropped(DroppedNullKey)
		return nil
	}
	row := noRow[R]()
	if !keyNull {
		var err error
		if n.view.Versioned() {
			row, err = n.view.GetAsOf(key, r.Timestamp)
		} else {
			row, err = n.view.Get(key)
		}
		if err != nil {
			return err
		}
	}
	if row.Null && !n.left {
		return nil
	}
	n.value, n.row = r.Value, row.Value
	v, err := n.join(r.Key, &n.value, pointer(&n.row, row.Null))
	if err != nil {
		return err
	}
	n.out = Record[K, O]{
		Key: r.Key, KeyNull: r.KeyNull, Value: v, ValueNull: n.results.isNil(v), Timestamp: r.Timestamp, Headers: r.Headers,
	}
	return n.next(&n.out)
}

// bufferedJoin holds records back before they are joined.
type bufferedJoin[K, L, R, O any] struct {
	join    *rowJoin[K, L, K, R, O]
	joinNow Next[K, L]
	rt      Runtime
	ctx     *Context
	coder   coder[K, L]
	buffer  state.RecordBuffer
	raw     rawRecords
	out     Record[K, L]
}

func (b *bufferedJoin[K, L, R, O]) open(store Store[K, L]) error {
	if !b.join.view.Versioned() {
		return fatalf("node %s: a join with grace needs a versioned table", b.rt.NodeName())
	}
	spec, err := specOf(b.rt, store.Name)
	if err != nil {
		return fatal(err)
	}
	b.coder = newCoder(b.rt, store, spec)
	buffers, err := buffersOf(b.rt)
	if err != nil {
		return err
	}
	b.buffer, err = buffers.RecordBuffer(store.Name)
	b.raw = newRawRecords(b.rt)
	onIdleTime(b.rt, b.idle)
	return fatal(err)
}

func (b *bufferedJoin[K, L, R, O]) process(r *Record[K, L]) error {
	if r.KeyNull || r.ValueNull {
		return b.joinNow(r) // no row can match, so there is nothing to wait for
	}
	if err := b.coder.encodeKey(r.Key); err != nil {
		return err
	}
	value, err := b.coder.encodeValue(r.Value, false)
	if err != nil {
		return err
	}
	held, err := b.buffer.Put(b.coder.key, value, r.Timestamp, &b.ctx.Context)
	if err != nil {
		return b.coder.failed("put", err)
	}
	if !held {
		return b.joinNow(r)
	}
	b.raw.keepRecord()
	return b.evict()
}

// evict joins what has been held back for long enough.
func (b *bufferedJoin[K, L, R, O]) evict() error {
	current := *b.ctx
	defer func() { *b.ctx = current }()
	return b.coder.failed("evict", b.buffer.Evict(b.release))
}

// release joins a record that was held back, in the context that it came in.
func (b *bufferedJoin[K, L, R, O]) release(held *state.BufferedRecord) error {
	key, err := b.coder.decodeKeyShared(held.Key)
	if err != nil {
		return err
	}
	value, err := b.coder.decodeShared(held.Value, held.Context.Timestamp)
	if err != nil {
		return err
	}
	b.ctx.Context = held.Context
	b.raw.enterRecord()
	b.out = Record[K, L]{Key: key, Value: value.Value, Timestamp: held.Context.Timestamp, Headers: held.Context.Headers}
	if err := b.joinNow(&b.out); err != nil {
		return b.rt.Failed(err) // the record's, not the buffer's: if it is left out, those behind it go on
	}
	return nil
}
