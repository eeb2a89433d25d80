package processors

import (
	"reflect"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// coder encodes keys and values for one node's use of a store. It works on the byte stores, below state's typed facades, for three
// reasons: null is a bit beside the value here; a key is encoded once for a read and the write that follows; and an error of a serde,
// which is the record's, must not be mixed up with one of the store, which is fatal.
type coder[K, V any] struct {
	name    string
	rt      Runtime
	keys    serde.Codec[K]
	values  serde.Codec[V]
	aliases bool // values may alias their bytes
	mutable bool // values may be changed in place

	key, val, got []byte // scratch; key is the key last encoded
	last          []byte // the bytes of the value last decoded
}

func newCoder[K, V any](rt Runtime, s Store[K, V], spec state.Spec) coder[K, V] {
	c := coder[K, V]{name: s.Name, rt: rt}
	c.keys, c.values = boundSerdes(rt, s, spec)
	c.aliases = serde.Aliases(c.values.Serde)
	kind := reflect.TypeFor[V]().Kind()
	c.mutable = kind > reflect.Complex128 && kind != reflect.String
	return c
}

// encodeKey encodes a key into c.key.
func (c *coder[K, V]) encodeKey(key K) error {
	out, null, err := c.keys.Encode(c.key[:0], key, false)
	if err != nil {
		return codecError(err, "store %q: the key can't be encoded", c.name)
	}
	if null {
		return codecError(&serde.NullError{What: "key", Type: reflect.TypeFor[K]().String()}, "store %q", c.name)
	}
	c.key = filled(out)
	return nil
}

// encodeValue gives a value's bytes, nil for null, which are valid until the next call.
func (c *coder[K, V]) encodeValue(v V, null bool) ([]byte, error) {
	out, null, err := c.values.Encode(c.val[:0], v, null)
	if err != nil {
		return nil, codecError(err, "store %q: the value can't be encoded", c.name)
	}
	if null {
		return nil, nil
	}
	c.val = filled(out)
	return c.val, nil
}

// dst is where a Get may put a value: the scratch buffer, unless the Go value would go on pointing into it.
func (c *coder[K, V]) dst() []byte {
	if c.aliases {
		return nil
	}
	return c.got[:0]
}

// decodeGot decodes what a Get has put into dst.
func (c *coder[K, V]) decodeGot(data []byte, ts int64) (Row[V], error) {
	if !c.aliases {
		c.got = data
	}
	return c.decode(data, ts)
}

// decodeShared decodes bytes of an iterator, which are valid only until it moves on.
func (c *coder[K, V]) decodeShared(data []byte, ts int64) (Row[V], error) {
	if c.aliases {
		data = append(make([]byte, 0, len(data)), data...)
	}
	return c.decode(data, ts)
}

func (c *coder[K, V]) decode(data []byte, ts int64) (Row[V], error) {
	data = filled(data)
	v, err := c.values.Decode(data)
	if err != nil {
		return noRow[V](), codecError(err, "store %q: a stored value of %d bytes can't be decoded", c.name, len(data))
	}
	c.last = data
	return Row[V]{Value: v, Null: c.values.IsNil(v), Timestamp: ts}, nil
}

// again decodes the value last decoded once more, for one who may change it in place.
func (c *coder[K, V]) again() (Row[V], error) { return c.decodeShared(c.last, NoTimestamp) }

// decodeKeyShared decodes a key of an iterator.
func (c *coder[K, V]) decodeKeyShared(data []byte) (K, error) {
	if serde.Aliases(c.keys.Serde) {
		data = append(make([]byte, 0, len(data)), data...)
	}
	k, err := c.keys.Decode(filled(data))
	if err != nil {
		return k, codecError(err, "store %q: a stored key of %d bytes can't be decoded", c.name, len(data))
	}
	return k, nil
}

// failed is an error of the store itself, if there is one.
func (c *coder[K, V]) failed(what string, err error) error {
	if err == nil || IsFatal(err) {
		return err
	}
	return fatalf("store %q: %s: %w", c.name, what, err)
}

func noRow[V any]() Row[V] { return Row[V]{Null: true, Timestamp: NoTimestamp} }

// filled turns an empty encoding into one that is not taken for null.
func filled(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
