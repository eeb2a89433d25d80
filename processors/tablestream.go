package processors

import (
	"bytes"
	"errors"

	"github.com/tributary-io/tributary/serde"
)

// TableToStream makes a stream of a table's updates: Change[V] to V. A delete is a null.
func TableToStream[K, V any]() Supplier {
	return wire(func(_ Runtime, next Next[K, V]) Next[K, Change[V]] {
		var out Record[K, V]
		return func(r *Record[K, Change[V]]) error {
			out = Record[K, V]{
				Key: r.Key, KeyNull: r.KeyNull, Value: r.Value.New, ValueNull: r.Value.NewNull,
				Timestamp: r.Timestamp, Headers: r.Headers,
			}
			return next(&out)
		}
	})
}

// TableToPointers is TableToStream with pointers for values: Change[V] to *V, nil for a delete. What a pointer points to is valid until
// the call returns, like the record.
func TableToPointers[K, V any]() Supplier {
	values := nilsOf[V]()
	return wire(func(_ Runtime, next Next[K, *V]) Next[K, Change[V]] {
		var out Record[K, *V]
		return func(r *Record[K, Change[V]]) error {
			out = Record[K, *V]{Key: r.Key, KeyNull: r.KeyNull, Timestamp: r.Timestamp, Headers: r.Headers}
			if r.Value.NewNull || values.isNil(r.Value.New) {
				out.ValueNull = true
			} else {
				out.Value = &r.Value.New
			}
			return next(&out)
		}
	})
}

// TableRepartitionMap regroups a table for an aggregation: a record Change[V] of key K becomes records Change[V2] of key K2. It is a
// Supplier; the parent has to send old values.
//
// Where the old and the new row fall into the same group, one record carries both, so that the group never shows a state between the
// two (KIP-904). Else the old row goes to its group first. A nil of a nullable K2 or V2 leaves that row out.
type TableRepartitionMap[K, V, K2, V2 any] struct {
	Map func(K, V) (K2, V2, error)
	// Key serializes groups: two are the same if their bytes are. It is bound to Topic, one that the rows go through.
	Key   serde.Serde[K2]
	Topic string

	versioned bool
}

// UseVersionedSemantics implements VersionedSemantics: updates of a versioned table that are not the newest are left out.
func (m *TableRepartitionMap[K, V, K2, V2]) UseVersionedSemantics(on bool) { m.versioned = on }

// New implements Supplier.
func (m *TableRepartitionMap[K, V, K2, V2]) New(rt Runtime, children []Child) (Instance, error) {
	next, err := Fan[K2, Change[V2]](children)
	if err != nil {
		return Instance{}, err
	}
	n := &tableRepartition[K, V, K2, V2]{
		TableRepartitionMap: m, next: next, keys: serde.NewCodec(bindToWrite(rt, m.Key, m.Topic, true)), values: nilsOf[V2](),
	}
	return Instance{Next: Guard(rt, n.process)}, nil
}

type tableRepartition[K, V, K2, V2 any] struct {
	*TableRepartitionMap[K, V, K2, V2]
	next           Next[K2, Change[V2]]
	keys           serde.Codec[K2]
	values         nils[V2]
	oldKey, newKey []byte
	out            Record[K2, Change[V2]]
}

// grouped is a row in its group.
type grouped[K, V any] struct {
	key   K
	value V
	none  bool
}

var errGroupNullKey = errors.New("a table's row without a key can't be grouped")

func (n *tableRepartition[K, V, K2, V2]) process(r *Record[K, Change[V]]) error {
	if r.KeyNull {
		return errGroupNullKey
	}
	c := &r.Value
	if n.versioned && !c.IsLatest {
		return nil
	}
	now, err := n.group(r.Key, c.New, c.NewNull)
	if err != nil {
		return err
	}
	old, err := n.group(r.Key, c.Old, c.OldNull)
	if err != nil {
		return err
	}
	if !now.none && !old.none {
		if same, err := n.same(old.key, now.key); err != nil {
			return err
		} else if same {
			return n.send(r, old.key, Change[V2]{New: now.value, Old: old.value, IsLatest: c.IsLatest})
		}
	}
	if !old.none {
		if err := n.send(r, old.key, Change[V2]{NewNull: true, Old: old.value, IsLatest: c.IsLatest}); err != nil {
			return err
		}
	}
	if now.none {
		return nil
	}
	return n.send(r, now.key, Change[V2]{New: now.value, OldNull: true, IsLatest: c.IsLatest})
}

func (n *tableRepartition[K, V, K2, V2]) group(key K, v V, null bool) (g grouped[K2, V2], err error) {
	if null {
		g.none = true
		return g, nil
	}
	g.key, g.value, err = n.Map(key, v)
	g.none = n.keys.IsNil(g.key) || n.values.isNil(g.value)
	return g, err
}

func (n *tableRepartition[K, V, K2, V2]) same(a, b K2) (bool, error) {
	var err error
	if n.oldKey, err = n.keys.Append(n.oldKey[:0], a); err != nil {
		return false, codecError(err, "the group can't be encoded")
	}
	if n.newKey, err = n.keys.Append(n.newKey[:0], b); err != nil {
		return false, codecError(err, "the group can't be encoded")
	}
	return bytes.Equal(n.oldKey, n.newKey), nil
}

func (n *tableRepartition[K, V, K2, V2]) send(r *Record[K, Change[V]], key K2, c Change[V2]) error {
	n.out = Record[K2, Change[V2]]{Key: key, Value: c, Timestamp: r.Timestamp, Headers: r.Headers}
	return n.next(&n.out)
}
