package state

import (
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/serde"
)

// ErrNullKey is the error of reading or writing a store with the nil of a nullable key.
var ErrNullKey = errors.New("a key can't be null")

// coder encodes and decodes for a typed facade. It owns scratch buffers, so a facade serves one goroutine at a time.
type coder[K, V any] struct {
	name        string
	key         serde.Codec[K]
	val         serde.Codec[V]
	keyAliases  bool // decoded keys may alias their bytes
	valAliases  bool
	kbuf, kbuf2 []byte
	vbuf        []byte
	gbuf        []byte // for bytes that come out of a Get
}

func newCoder[K, V any](name string, key serde.Codec[K], val serde.Codec[V]) (coder[K, V], error) {
	c := coder[K, V]{name: name, key: key, val: val}
	if !key.Valid() || !val.Valid() {
		return c, fmt.Errorf("store %q: no serde for its keys or values", name)
	}
	c.keyAliases = serde.Aliases(key.Serde)
	c.valAliases = serde.Aliases(val.Serde)
	return c, nil
}

// encodeKey encodes k into the scratch buffer.
func (c *coder[K, V]) encodeKey(k K) ([]byte, error) {
	out, null, err := c.key.Encode(c.kbuf[:0], k, false)
	if err != nil {
		return nil, fmt.Errorf("store %q: encode key: %w", c.name, err)
	}
	if null {
		return nil, fmt.Errorf("store %q: %w", c.name, ErrNullKey)
	}
	c.kbuf = out
	return notNil(out), nil
}

// encodeBound encodes a bound of a range; nil is open.
func (c *coder[K, V]) encodeBound(k *K, buf *[]byte) ([]byte, error) {
	if k == nil {
		return nil, nil
	}
	out, null, err := c.key.Encode((*buf)[:0], *k, false)
	if err != nil {
		return nil, fmt.Errorf("store %q: encode key: %w", c.name, err)
	}
	if null {
		return nil, nil
	}
	*buf = out
	return notNil(out), nil
}

func (c *coder[K, V]) encodeBounds(from, to *K) (f, t []byte, err error) {
	if f, err = c.encodeBound(from, &c.kbuf); err != nil {
		return nil, nil, err
	}
	t, err = c.encodeBound(to, &c.kbuf2)
	return f, t, err
}

// encodeValue encodes v into the scratch buffer; a nil of a nullable type gives nil.
func (c *coder[K, V]) encodeValue(v V) ([]byte, error) {
	out, null, err := c.val.Encode(c.vbuf[:0], v, false)
	if err != nil {
		return nil, fmt.Errorf("store %q: encode value: %w", c.name, err)
	}
	if null {
		return nil, nil
	}
	c.vbuf = out
	return notNil(out), nil
}

// dst is where a Get may append a value: the scratch buffer, unless the decoded value would alias it.
func (c *coder[K, V]) dst() []byte {
	if c.valAliases {
		return nil
	}
	return c.gbuf[:0]
}

// decodeGot decodes what a Get appended to dst().
func (c *coder[K, V]) decodeGot(data []byte) (V, error) {
	if !c.valAliases {
		c.gbuf = data
	}
	return c.decode(notNil(data))
}

func (c *coder[K, V]) decode(data []byte) (V, error) {
	v, err := c.val.Decode(data)
	if err != nil {
		return v, fmt.Errorf("store %q: decode value of %d bytes: %w", c.name, len(data), err)
	}
	return v, nil
}

// decodeShared decodes a value whose bytes are valid only until the iterator moves on.
func (c *coder[K, V]) decodeShared(data []byte) (V, error) {
	if c.valAliases {
		data = append(make([]byte, 0, len(data)), data...)
	}
	return c.decode(data)
}

func (c *coder[K, V]) decodeKeyShared(data []byte) (K, error) {
	if c.keyAliases {
		data = append(make([]byte, 0, len(data)), data...)
	}
	k, err := c.key.Decode(data)
	if err != nil {
		return k, fmt.Errorf("store %q: decode key of %d bytes: %w", c.name, len(data), err)
	}
	return k, nil
}

// decodeRow decodes a key and a value whose bytes are valid only until the iterator moves on.
func (c *coder[K, V]) decodeRow(key, value []byte) (k K, v V, err error) {
	if k, err = c.decodeKeyShared(key); err != nil {
		return k, v, err
	}
	v, err = c.decodeShared(value)
	return k, v, err
}

// walk yields what row makes of each place of it and closes it. err is that of opening it. It ends after an error, which it yields.
func walk[E any](it rowIterator, err error, yield func(E, error) bool, row func() (E, error)) {
	var none E
	if err != nil {
		yield(none, err)
		return
	}
	defer it.Close()
	for it.Next() {
		e, err := row()
		if !yield(e, err) || err != nil {
			return
		}
	}
	if err := it.Close(); err != nil {
		yield(none, err)
	}
}

// rowIterator is what the iterators of all kinds of stores share.
type rowIterator interface {
	Next() bool
	Close() error
}

// notNil turns an empty encoding into one that is not mistaken for null.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
