package processors

import (
	"fmt"
	"slices"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// SubscriptionJoin answers subscriptions with the right row: KR, Subscription[K] to K, Response[R]; the response topic's sink follows. It
// is connected to the stores of the right table's view.
func (j *ForeignKeyJoin[K, L, KR, R, O]) SubscriptionJoin() Supplier {
	view := j.RightTable.View()
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		next, err := Fan[K, Response[R]](children)
		if err != nil {
			return Instance{}, err
		}
		var right View[KR, R]
		var out Record[K, Response[R]]
		process := func(r *Record[KR, Subscription[K]]) error {
			row := noRow[R]()
			if !r.KeyNull {
				if row, err = right.Get(r.Key); err != nil {
					return err
				}
			}
			switch r.Value.Instruction {
			case Unsubscribe:
				return nil
			case UnsubscribeAndAnswer:
				row = Row[R]{Null: true, Timestamp: row.Timestamp}
			case SubscribeAnswerIfFound:
				if row.Null {
					return nil
				}
			}
			out = Record[K, Response[R]]{
				Key: r.Value.Key, Value: response(&r.Value, row.Value, row.Null),
				Timestamp: max(r.Timestamp, row.Timestamp), Headers: r.Headers,
			}
			return next(&out)
		}
		views := newViewScope(rt)
		open := func() (err error) { right, err = view.Open(views); return err }
		return Instance{Next: Guard(rt, process), Init: open, Close: views.close}, nil
	})
}

func response[K, R any](s *Subscription[K], v R, null bool) Response[R] {
	return Response[R]{
		Hash: s.Hash, HashNull: s.HashNull, Value: v, Null: null, Version: responseVersion, Partition: s.Partition,
	}
}

// ForeignJoin answers for the updates of right rows, once for each subscription: KR, Change[R] to K, Response[R]; the response topic's
// sink follows.
func (j *ForeignKeyJoin[K, L, KR, R, O]) ForeignJoin() Supplier {
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		next, err := Fan[K, Response[R]](children)
		if err != nil {
			return Instance{}, err
		}
		s := j.subscriptions(rt)
		var out Record[K, Response[R]]
		process := func(r *Record[KR, Change[R]]) error {
			switch {
			case r.KeyNull:
				rt.Dropped(DroppedNullKey)
				return nil
			case j.rightVersioned && !r.Value.IsLatest:
				rt.Dropped(DroppedOutOfOrder)
				return nil
			}
			return s.each(r.Key, func(v *Subscription[K]) error {
				out = Record[K, Response[R]]{
					Key: v.Key, Value: response(v, r.Value.New, r.Value.NewNull), Timestamp: r.Timestamp, Headers: r.Headers,
				}
				return next(&out)
			})
		}
		return Instance{Next: Guard(rt, process), Init: s.open}, nil
	})
}

// Resolve joins responses with the left rows: K, Response[R] to K, O, a null being a delete. It is connected to the stores of the left
// table's view.
//
// A response to a row that has changed since is dropped: another one is on its way. An inner join can't rely on that for a null, which says that
// the result is to be deleted: the changed row may have asked for an answer only if there is a right row (SubscribeAnswerIfFound), or for none
// at all. Kafka Streams leaves the old result in the table then. Here the resolver, unless it knows that an answer is due, deletes the result if the
// row can't have one any more, and else asks again, for an answer in any case; what comes back is the last word, since subscriptions of a row stay
// in order.
func (j *ForeignKeyJoin[K, L, KR, R, O]) Resolve() Supplier {
	view := j.LeftTable.View()
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		next, err := Fan[K, O](children)
		if err != nil {
			return Instance{}, err
		}
		n := &responseResolver[K, L, KR, R, O]{
			rt: rt, next: next, join: j.Join, leftJoin: j.Left, results: nilsOf[O](), hasher: newRowHasher(rt, j.LeftValue, j.SubscriptionTopic),
			foreignKey: j.ForeignKey, keys: serde.NewCodec(j.RightKey), due: j.dueAnswers(rt),
		}
		sink, err := j.SubscriptionSink().New(rt, nil)
		if err != nil {
			return Instance{}, err
		}
		n.ask = sink.Next.(Next[KR, Subscription[K]])
		views := newViewScope(rt)
		open := func() (err error) {
			n.leftForgets = forgets(rt.Stores(), view.StoreNames())
			n.left, err = view.Open(views)
			return err
		}
		return Instance{Next: Guard(rt, n.process), Init: open, Close: views.close}, nil
	})
}

type responseResolver[K, L, KR, R, O any] struct {
	rt         Runtime
	next       Next[K, O]
	join       Joiner[K, L, R, O]
	leftJoin   bool
	foreignKey func(K, L) (KR, error)
	keys       serde.Codec[KR]
	ask        Next[KR, Subscription[K]]
	results    nils[O]
	left       View[K, L]
	// leftForgets: a left row that isn't there, or is another one, may have fallen out of its table, which deletes no result.
	leftForgets bool
	hasher      rowHasher[L]
	due         *dueAnswers[K]
	row         L // what the joiner's pointers point to
	right       R
	out         Record[K, O]
	again       Record[KR, Subscription[K]]
}

func (n *responseResolver[K, L, KR, R, O]) process(r *Record[K, Response[R]]) error {
	v := &r.Value
	if v.Version != responseVersion {
		return fmt.Errorf("a response has version %d: it was written by a newer release", v.Version)
	}
	row, err := n.left.Get(r.Key)
	if err != nil {
		return err
	}
	current, err := n.current(row, v)
	if err != nil {
		return err
	}
	if err := n.due.came(r.Key, rowVersion{v.Hash, v.HashNull}); err != nil {
		return err
	}
	n.out = Record[K, O]{Key: r.Key, KeyNull: r.KeyNull, ValueNull: true, Timestamp: r.Timestamp, Headers: r.Headers}
	if !current {
		n.rt.Dropped(DroppedOutOfOrder)
		if !v.Null || n.leftJoin || n.leftForgets {
			return nil
		}
		if keeps, err := n.due.keeps(r.Key); keeps || err != nil {
			return err
		}
		return n.missedDelete(r, row)
	}
	if !v.Null || n.leftJoin && !row.Null {
		n.row, n.right = row.Value, v.Value
		if n.out.Value, err = n.join(r.Key, pointer(&n.row, row.Null), pointer(&n.right, v.Null)); err != nil {
			return err
		}
		n.out.ValueNull = n.results.isNil(n.out.Value)
	}
	return n.next(&n.out)
}

// missedDelete sees to it that an inner join's result doesn't stay although its delete came too late for the row that it was for.
func (n *responseResolver[K, L, KR, R, O]) missedDelete(r *Record[K, Response[R]], row Row[L]) (err error) {
	if row.Null {
		return n.next(&n.out)
	}
	s := Subscription[K]{Instruction: SubscribeAndAnswer, Key: r.Key, Version: subscriptionVersion, Partition: n.rt.Context().Partition}
	n.again = Record[KR, Subscription[K]]{Timestamp: row.Timestamp, Headers: r.Headers}
	if n.again.Key, err = n.find(r.Key, row.Value); err != nil {
		if IsFatal(err) {
			return err
		}
		return nil // the row's update has failed so, too, and was left out: its result stays
	}
	if n.keys.IsNil(n.again.Key) {
		return n.next(&n.out)
	}
	if s.Hash, err = n.hasher.hash(row.Value); err != nil {
		return err
	}
	n.again.Value = s
	return n.ask(&n.again)
}

// find gives the foreign key of a row; a panic of the user's function is its error.
func (n *responseResolver[K, L, KR, R, O]) find(key K, row L) (fk KR, err error) {
	defer recovered(&err)
	return n.foreignKey(key, row)
}

// forgets tells whether one of the stores keeps a limited number of rows.
func forgets(stores state.Stores, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		spec, ok := stores.Spec(name)
		return ok && spec.MaxEntries > 0
	})
}

// current tells whether the response is for the left row as it is now.
func (n *responseResolver[K, L, KR, R, O]) current(row Row[L], v *Response[R]) (bool, error) {
	if row.Null || v.HashNull {
		return row.Null && v.HashNull, nil
	}
	hash, err := n.hasher.hash(row.Value)
	return hash == v.Hash, err
}
