package processors

import "github.com/tributary-io/tributary/state"

// StreamSelfJoin is an inner StreamJoin of a stream with itself, over one store (topology optimization single.store.self.join). It follows
// a StreamJoin's ThisWindow and sends what the join of the two sides would, in that order. It is a Supplier.
type StreamSelfJoin[K, V, O any] struct {
	BeforeMs, AfterMs, GraceMs int64
	Join                       Joiner[K, V, V, O]
	Store                      Store[K, V]
}

// New implements Supplier.
func (j StreamSelfJoin[K, V, O]) New(rt Runtime, children []Child) (Instance, error) {
	next, err := Fan[K, O](children)
	if err != nil {
		return Instance{}, err
	}
	n := &selfJoiner[K, V, O]{StreamSelfJoin: j, rt: rt, next: next, results: nilsOf[O](), time: newStreamTime(rt)}
	open := func() (err error) { n.rows, err = openWindowRows(rt, j.Store); return err }
	return Instance{Next: Guard(rt, n.process), Init: open}, nil
}

type selfJoiner[K, V, O any] struct {
	StreamSelfJoin[K, V, O]
	rt           Runtime
	next         Next[K, O]
	results      nils[O]
	time         streamTime
	rows         *windowRows[K, V]
	value, match V // what the joiner's pointers point to
	out          Record[K, O]
}

func (n *selfJoiner[K, V, O]) process(r *Record[K, V]) error {
	if r.KeyNull || r.ValueNull {
		n.rt.Dropped(nullReason(r.KeyNull))
		return nil
	}
	n.time.observe(r.Timestamp)
	if err := n.rows.encodeKey(r.Key); err != nil {
		return err
	}
	n.value = r.Value
	asLeft := func(ts int64) error { return n.send(r, &n.value, &n.match, max(r.Timestamp, ts)) }
	if err := n.each(r.Timestamp-n.BeforeMs, r.Timestamp+n.AfterMs, asLeft); err != nil {
		return err
	}
	// A record older than the stores would keep doesn't join itself, as it wouldn't find itself in the other side's store.
	withSelf := r.Timestamp > n.time.now-(n.BeforeMs+n.AfterMs+n.GraceMs)+1
	asRight := func(ts int64) error {
		if withSelf && ts > r.Timestamp {
			withSelf = false
			if err := n.send(r, &n.value, &n.value, r.Timestamp); err != nil {
				return err
			}
		}
		return n.send(r, &n.match, &n.value, max(r.Timestamp, ts))
	}
	if err := n.each(r.Timestamp-n.AfterMs, r.Timestamp+n.BeforeMs, asRight); err != nil || !withSelf {
		return err
	}
	return n.send(r, &n.value, &n.value, r.Timestamp)
}

// each sets n.match to the records of the current key within from..to, one after the other, and calls f with their times.
func (n *selfJoiner[K, V, O]) each(from, to int64, f func(ts int64) error) (err error) {
	it, err := n.rows.bytes.Fetch(n.rows.key, max(0, from), max(0, to), state.Forward)
	if err != nil {
		return n.rows.failed("fetch", err)
	}
	defer func() {
		if closed := it.Close(); err == nil {
			err = n.rows.failed("fetch", closed)
		}
	}()
	for it.Next() {
		row, err := n.rows.decodeShared(it.Value(), it.Timestamp())
		if err != nil {
			return err
		}
		n.match = row.Value
		if err := f(it.Start()); err != nil {
			return err
		}
	}
	return nil
}

func (n *selfJoiner[K, V, O]) send(r *Record[K, V], left, right *V, ts int64) error {
	v, err := n.Join(r.Key, left, right)
	if err != nil {
		return err
	}
	n.out = Record[K, O]{Key: r.Key, Value: v, ValueNull: n.results.isNil(v), Timestamp: ts, Headers: r.Headers}
	return n.next(&n.out)
}
