package processors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// ForeignKeyJoin is a join of a left table with the row of a right table that a foreign key names (KIP-213). The tables needn't be
// co-partitioned: subscriptions go to where the right rows are, and responses come back. In order of the flow:
//
//	left  -> Send -> subscription topic -> Receive -> SubscriptionJoin -.
//	right -> ForeignJoin -----------------------------------------------+-> response topic -> Resolve -> a TableSource
//
// Keys in the subscription topic are KR, its values Subscription; keys in the response topic are K, its values Response. Both tables have
// to send old values.
type ForeignKeyJoin[K, L, KR, R, O any] struct {
	Left       bool // left join
	LeftTable  Table[K, L]
	RightTable Table[KR, R]
	// ForeignKey gives the key of the right row; the nil of a nullable KR is none.
	ForeignKey func(K, L) (KR, error)
	Join       Joiner[K, L, R, O]

	LeftKey    serde.Serde[K]
	LeftValue  serde.Serde[L]
	RightKey   serde.Serde[KR]
	RightValue serde.Serde[R]

	SubscriptionTopic, ResponseTopic string // full names
	// SubscriptionStore is of kind TimestampedKeyValue. Receive and ForeignJoin are connected to it.
	SubscriptionStore string
	// Store is that of the TableSource which follows Resolve.
	Store *Store[K, O]

	leftVersioned, rightVersioned bool
}

// UseVersionedSemantics tells whether the left and the right table are versioned: updates that are not the newest are dropped then.
func (j *ForeignKeyJoin[K, L, KR, R, O]) UseVersionedSemantics(left, right bool) {
	j.leftVersioned, j.rightVersioned = left, right
}

// SubscriptionSink writes to the subscription topic.
func (j *ForeignKeyJoin[K, L, KR, R, O]) SubscriptionSink() TopicSink[KR, Subscription[K]] {
	return TopicSink[KR, Subscription[K]]{Topic: j.SubscriptionTopic, Key: j.RightKey, Value: SubscriptionSerde(j.LeftKey)}
}

// ResponsePartitioner sends each response to the partition that its subscription came from.
func ResponsePartitioner[K, R any](_ string, r *Record[K, Response[R]], _ int32) (int32, error) {
	return r.Value.Partition, nil
}

// Send: K, Change[L] to KR, Subscription[K]; the subscription topic's sink follows.
func (j *ForeignKeyJoin[K, L, KR, R, O]) Send() Supplier {
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		next, err := Fan[KR, Subscription[K]](children)
		if err != nil {
			return Instance{}, err
		}
		n := &subscriptionSender[K, L, KR]{
			rt: rt, next: next, left: j.Left, versioned: j.leftVersioned, foreignKey: j.ForeignKey, due: j.dueAnswers(rt),
			keys:   serde.NewCodec(bindToWrite(rt, j.RightKey, j.SubscriptionTopic+"-fk", true)),
			hasher: newRowHasher(rt, j.LeftValue, j.SubscriptionTopic),
		}
		return Instance{Next: Guard(rt, n.process)}, nil
	})
}

// rowHasher hashes left rows, by which a response is known to be for the present row.
type rowHasher[L any] struct {
	values serde.Serde[L]
	buf    []byte
}

func newRowHasher[L any](rt Runtime, values serde.Serde[L], subscriptionTopic string) rowHasher[L] {
	return rowHasher[L]{values: bindToWrite(rt, values, subscriptionTopic+"-vh", false)}
}

func (h *rowHasher[L]) hash(v L) (out [16]byte, err error) {
	if h.buf, err = h.values.Append(h.buf[:0], v); err != nil {
		return out, codecError(err, "the left row can't be encoded")
	}
	return hash128(h.buf), nil
}

type subscriptionSender[K, L, KR any] struct {
	rt         Runtime
	next       Next[KR, Subscription[K]]
	left       bool
	versioned  bool
	foreignKey func(K, L) (KR, error)
	keys       serde.Codec[KR]
	hasher     rowHasher[L]
	due        *dueAnswers[K]

	oldKey, newKey []byte
	out            Record[KR, Subscription[K]]
}

// foreign is the foreign key of a row.
type foreign[KR any] struct {
	key  KR
	none bool
}

func (n *subscriptionSender[K, L, KR]) process(r *Record[K, Change[L]]) error {
	c := &r.Value
	if n.versioned && !c.IsLatest {
		n.rt.Dropped(DroppedOutOfOrder)
		return nil
	}
	if c.NewNull && c.OldNull {
		return nil
	}
	old, now, err := n.foreignKeys(r.Key, c)
	if err != nil {
		return err
	}
	n.out = Record[KR, Subscription[K]]{Timestamp: r.Timestamp, Headers: r.Headers}
	n.out.Value = Subscription[K]{HashNull: c.NewNull, Key: r.Key, Version: subscriptionVersion, Partition: n.rt.Context().Partition}
	if !c.NewNull {
		if n.out.Value.Hash, err = n.hasher.hash(c.New); err != nil {
			return err
		}
	}
	changed, err := n.changed(old, now)
	if err != nil {
		return err
	}
	if n.left {
		return n.leftJoin(old, now, changed)
	}
	return n.innerJoin(old, now, changed, c.NewNull)
}

// foreignKeys finds the foreign keys before and after a change, and notes where the user's function can't tell them.
func (n *subscriptionSender[K, L, KR]) foreignKeys(key K, c *Change[L]) (old, now foreign[KR], err error) {
	told := false
	defer func() {
		if told {
			return
		}
		if noted := n.due.left(key); noted != nil { // else the error stays as it is: its type is in a dead letter's header
			err = errors.Join(err, noted)
		}
	}()
	if old, err = n.foreign(key, c.Old, c.OldNull); err == nil {
		now, err = n.foreign(key, c.New, c.NewNull)
	}
	told = err == nil
	return old, now, err
}

func (n *subscriptionSender[K, L, KR]) foreign(key K, v L, null bool) (f foreign[KR], err error) {
	if null {
		f.none = true
		return f, nil
	}
	f.key, err = n.foreignKey(key, v)
	f.none = n.keys.IsNil(f.key)
	return f, err
}

// leftJoin subscribes even without a foreign key, to be answered: every left row has a result.
func (n *subscriptionSender[K, L, KR]) leftJoin(old, now foreign[KR], changed bool) error {
	if !old.none && changed {
		if err := n.send(old, Unsubscribe); err != nil {
			return err
		}
	}
	return n.send(now, SubscribeAndAnswer)
}

// innerJoin asks for an answer of null only where there may be a result to be deleted.
func (n *subscriptionSender[K, L, KR]) innerJoin(old, now foreign[KR], changed, deleted bool) error {
	if now.none {
		if !deleted {
			n.rt.Dropped(DroppedNullKey)
		}
		if old.none {
			return n.due.none(n.out.Value.Key)
		}
		return n.send(old, UnsubscribeAndAnswer)
	}
	if old.none || !changed {
		return n.send(now, SubscribeAnswerIfFound)
	}
	if err := n.send(old, Unsubscribe); err != nil {
		return err
	}
	return n.send(now, SubscribeAndAnswer)
}

// changed tells whether two foreign keys differ, by their bytes.
func (n *subscriptionSender[K, L, KR]) changed(old, now foreign[KR]) (bool, error) {
	if old.none || now.none {
		return old.none != now.none, nil
	}
	var err error
	if n.oldKey, err = n.keys.Append(n.oldKey[:0], old.key); err != nil {
		return false, codecError(err, "the foreign key can't be encoded")
	}
	if n.newKey, err = n.keys.Append(n.newKey[:0], now.key); err != nil {
		return false, codecError(err, "the foreign key can't be encoded")
	}
	return !bytes.Equal(n.oldKey, n.newKey), nil
}

func (n *subscriptionSender[K, L, KR]) send(to foreign[KR], what Instruction) error {
	n.out.Key, n.out.KeyNull, n.out.Value.Instruction = to.key, to.none, what
	if err := n.due.asked(&n.out.Value); err != nil {
		return err
	}
	return n.next(&n.out)
}

// Receive keeps subscriptions: KR, Subscription[K] to the same.
func (j *ForeignKeyJoin[K, L, KR, R, O]) Receive() Supplier {
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		next, err := Fan[KR, Subscription[K]](children)
		if err != nil {
			return Instance{}, err
		}
		s := j.subscriptions(rt)
		process := func(r *Record[KR, Subscription[K]]) error {
			v := &r.Value
			switch {
			case v.Version > subscriptionVersion:
				return fmt.Errorf("a subscription has version %d: it was written by a newer release", v.Version)
			case r.KeyNull && v.Instruction != SubscribeAndAnswer:
				rt.Dropped(DroppedNullKey)
				return nil
			case !r.KeyNull:
				if err := s.keep(r.Key, v, r.Timestamp); err != nil {
					return err
				}
			}
			return next(r)
		}
		return Instance{Next: Guard(rt, process), Init: s.open}, nil
	})
}

// subscriptions is the subscription store: length of the foreign key in 4 bytes, foreign key, left key -> subscription.
type subscriptions[K, KR any] struct {
	rt     Runtime
	name   string
	keys   serde.Serde[K]
	fks    serde.Serde[KR]
	values serde.Serde[Subscription[K]]
	kv     state.KeyValueBytes
	prefix []byte
	value  []byte
}

func (j *ForeignKeyJoin[K, L, KR, R, O]) subscriptions(rt Runtime) *subscriptions[K, KR] {
	return &subscriptions[K, KR]{
		rt: rt, name: j.SubscriptionStore,
		keys:   bindToWrite(rt, j.LeftKey, j.SubscriptionTopic+"-pk", true),
		fks:    bindToWrite(rt, j.RightKey, j.SubscriptionTopic+"-fk", true),
		values: bindToWrite(rt, SubscriptionSerde(j.LeftKey), j.SubscriptionTopic, false),
	}
}

func (s *subscriptions[K, KR]) open() (err error) {
	if _, err := specOf(s.rt, s.name); err != nil {
		return fatal(err)
	}
	s.kv, err = s.rt.Stores().KeyValueBytes(s.name)
	return fatal(err)
}

// foreign makes s.prefix the beginning of the keys of one foreign key's subscriptions.
func (s *subscriptions[K, KR]) foreign(key KR) (err error) {
	if s.prefix, err = s.fks.Append(append(s.prefix[:0], 0, 0, 0, 0), key); err != nil {
		return codecError(err, "store %q: the foreign key can't be encoded", s.name)
	}
	binary.BigEndian.PutUint32(s.prefix, uint32(len(s.prefix)-4))
	return nil
}

// keep stores or removes a subscription, as it says.
func (s *subscriptions[K, KR]) keep(fk KR, v *Subscription[K], ts int64) (err error) {
	if err := s.foreign(fk); err != nil {
		return err
	}
	if s.prefix, err = s.keys.Append(s.prefix, v.Key); err != nil {
		return codecError(err, "store %q: the key can't be encoded", s.name)
	}
	if v.Instruction == Unsubscribe || v.Instruction == UnsubscribeAndAnswer {
		err = s.kv.Put(s.prefix, nil, ts)
	} else {
		if s.value, err = s.values.Append(s.value[:0], *v); err != nil {
			return codecError(err, "store %q: the subscription can't be encoded", s.name)
		}
		err = s.kv.Put(s.prefix, s.value, ts)
	}
	if err != nil {
		return fatalf("store %q: put: %w", s.name, err)
	}
	return nil
}

// each calls f with the subscriptions of a foreign key, in the order of their keys' bytes.
func (s *subscriptions[K, KR]) each(fk KR, f func(*Subscription[K]) error) (err error) {
	if err := s.foreign(fk); err != nil {
		return err
	}
	it, err := s.kv.Prefix(s.prefix)
	if err != nil {
		return fatalf("store %q: scan: %w", s.name, err)
	}
	defer func() {
		if closed := it.Close(); err == nil && closed != nil {
			err = fatalf("store %q: scan: %w", s.name, closed)
		}
	}()
	for it.Next() {
		data := it.Value()
		if serde.Aliases(s.keys) {
			data = bytes.Clone(data)
		}
		v, err := s.values.Decode(data)
		if err != nil {
			return codecError(err, "store %q: a subscription can't be decoded", s.name)
		}
		if err := f(&v); err != nil {
			return err
		}
	}
	return nil
}
