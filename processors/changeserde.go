package processors

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/serde"
)

// ChangeSerde is the format in which the changes of a regrouped table travel through its repartition topic (KIP-904):
//
//	old {0}                         only an old value
//	new {1}                         only a new value
//	varint(len(new)) new old {2}    both; the length is zig-zag encoded
//
// Types 3, 4 and 5 are the same with a byte IsLatest before the type. They are read, but not written; the others read as latest. A
// change of nothing to nothing can't be written.
func ChangeSerde[V any](value serde.Serde[V]) serde.Serde[Change[V]] {
	return likeInner(value, changeSerde[V]{serde.NewCodec(value)})
}

// The last byte of a change.
const (
	changeOld = iota
	changeNew
	changeBoth
	changeOldLatest
	changeNewLatest
	changeBothLatest
)

var (
	errNoChange  = errors.New("a change without an old and a new value can't be written")
	errBadChange = errors.New("malformed change of a table")
)

type changeSerde[V any] struct{ value serde.Codec[V] }

// Append implements serde.Serde.
func (s changeSerde[V]) Append(dst []byte, c Change[V]) ([]byte, error) {
	newNull, oldNull := c.NewNull || s.value.IsNil(c.New), c.OldNull || s.value.IsNil(c.Old)
	switch {
	case newNull && oldNull:
		return dst, errNoChange
	case newNull:
		return s.appendOne(dst, c.Old, changeOld)
	case oldNull:
		return s.appendOne(dst, c.New, changeNew)
	}
	// The length goes before the new value: leave room for the longest one, then close the gap.
	start := len(dst)
	out := append(dst, make([]byte, binary.MaxVarintLen32)...)
	out, err := s.value.Append(out, c.New)
	if err != nil {
		return dst, err
	}
	size := len(out) - start - binary.MaxVarintLen32
	n := binary.PutVarint(out[start:start+binary.MaxVarintLen32], int64(size))
	copy(out[start+n:], out[start+binary.MaxVarintLen32:])
	return s.appendOne(out[:start+n+size], c.Old, changeBoth)
}

func (s changeSerde[V]) appendOne(dst []byte, v V, kind byte) ([]byte, error) {
	out, err := s.value.Append(dst, v)
	if err != nil {
		return dst, err
	}
	return append(out, kind), nil
}

// Decode implements serde.Serde.
func (s changeSerde[V]) Decode(data []byte) (c Change[V], err error) {
	if len(data) == 0 {
		return c, fmt.Errorf("%w: empty", errBadChange)
	}
	kind, rest := data[len(data)-1], data[:len(data)-1]
	c.IsLatest = true
	if kind >= changeOldLatest && kind <= changeBothLatest {
		if len(rest) == 0 || rest[len(rest)-1] > 1 {
			return c, fmt.Errorf("%w: no IsLatest", errBadChange)
		}
		c.IsLatest = rest[len(rest)-1] == 1
		kind, rest = kind-changeOldLatest, rest[:len(rest)-1]
	}
	switch kind {
	case changeOld:
		c.NewNull = true
		c.Old, c.OldNull, err = s.decode(rest)
	case changeNew:
		c.OldNull = true
		c.New, c.NewNull, err = s.decode(rest)
	case changeBoth:
		size, n := binary.Varint(rest)
		if n <= 0 || size < 0 || size > int64(len(rest)-n) {
			return c, fmt.Errorf("%w: length of the new value", errBadChange)
		}
		if c.New, c.NewNull, err = s.decode(rest[n : n+int(size)]); err == nil {
			c.Old, c.OldNull, err = s.decode(rest[n+int(size):])
		}
	default:
		err = fmt.Errorf("%w: type %d", errBadChange, kind)
	}
	return c, err
}

func (s changeSerde[V]) decode(data []byte) (V, bool, error) {
	v, err := s.value.Decode(data[:len(data):len(data)])
	return v, err == nil && s.value.IsNil(v), err
}

// ForTopic implements serde.TopicBound.
func (s changeSerde[V]) ForTopic(topic string, isKey bool) serde.Serde[Change[V]] {
	return ChangeSerde(serde.Bind(s.value.Serde, topic, isKey))
}

// Prepare implements serde.Preparer.
func (s changeSerde[V]) Prepare(ctx context.Context) error { return serde.Prepare(ctx, s.value.Serde) }
