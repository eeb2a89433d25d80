package state

import (
	"bytes"
	"iter"

	"github.com/tributary-io/tributary/serde"
)

// Entry is an entry of a key-value store. Timestamp is 0 in plain stores.
type Entry[K, V any] struct {
	Key       K
	Value     V
	Timestamp int64
}

// KeyValueStore is a plain key-value store. Putting the nil of a nullable V deletes. One goroutine at a time.
type KeyValueStore[K, V any] struct {
	c     coder[K, V]
	bytes KeyValueBytes
}

// NewKeyValue gives the typed store of kind KeyValue with that name.
func NewKeyValue[K, V any](s Stores, name string, key serde.Codec[K], val serde.Codec[V]) (*KeyValueStore[K, V], error) {
	c, b, err := openKeyValue(s, name, KeyValue, key, val)
	if err != nil {
		return nil, err
	}
	return &KeyValueStore[K, V]{c: c, bytes: b}, nil
}

func openKeyValue[K, V any](s Stores, name string, kind Kind, key serde.Codec[K], val serde.Codec[V]) (coder[K, V], KeyValueBytes, error) {
	c, err := newCoder(name, key, val)
	if err != nil {
		return c, nil, err
	}
	if err := checkKind(s, name, kind); err != nil {
		return c, nil, err
	}
	b, err := s.KeyValueBytes(name)
	return c, b, err
}

// Bytes is the store beneath.
func (s *KeyValueStore[K, V]) Bytes() KeyValueBytes { return s.bytes }

// Get gives the value of key, if it has one.
func (s *KeyValueStore[K, V]) Get(key K) (v V, ok bool, err error) {
	v, _, ok, err = getKeyValue(&s.c, s.bytes, key)
	return v, ok, err
}

// Put sets the value of key.
func (s *KeyValueStore[K, V]) Put(key K, v V) error { return putKeyValue(&s.c, s.bytes, key, v, 0) }

// PutIfAbsent puts only if key has no value, else gives the value present and ok.
func (s *KeyValueStore[K, V]) PutIfAbsent(key K, v V) (old V, ok bool, err error) {
	old, _, ok, err = putIfAbsent(&s.c, s.bytes, key, v, 0)
	return old, ok, err
}

// PutAll sets the values of all entries; their timestamps don't count.
func (s *KeyValueStore[K, V]) PutAll(entries []Entry[K, V]) error {
	return putAll(&s.c, s.bytes, entries)
}

// Delete removes key and gives the value it had, if any.
func (s *KeyValueStore[K, V]) Delete(key K) (old V, ok bool, err error) {
	old, _, ok, err = deleteKeyValue(&s.c, s.bytes, key)
	return old, ok, err
}

// Range scans the keys from..to, inclusive, in ascending byte order; a nil bound is open.
func (s *KeyValueStore[K, V]) Range(from, to *K) iter.Seq2[Entry[K, V], error] {
	return scanKeyValue(&s.c, s.bytes.Range, from, to)
}

// ReverseRange is Range in descending order.
func (s *KeyValueStore[K, V]) ReverseRange(from, to *K) iter.Seq2[Entry[K, V], error] {
	return scanKeyValue(&s.c, s.bytes.ReverseRange, from, to)
}

// All scans the whole store in ascending byte order.
func (s *KeyValueStore[K, V]) All() iter.Seq2[Entry[K, V], error] { return s.Range(nil, nil) }

// ReverseAll scans the whole store in descending byte order.
func (s *KeyValueStore[K, V]) ReverseAll() iter.Seq2[Entry[K, V], error] {
	return s.ReverseRange(nil, nil)
}

// Prefix scans the keys whose bytes start with prefix.
func (s *KeyValueStore[K, V]) Prefix(prefix []byte) iter.Seq2[Entry[K, V], error] {
	return prefixKeyValue(&s.c, s.bytes, prefix)
}

// ApproximateNumEntries is exact in memory and an estimate on disk; see KeyValueBytes.
func (s *KeyValueStore[K, V]) ApproximateNumEntries() (int64, error) {
	return s.bytes.ApproximateNumEntries()
}

// TimestampedKeyValueStore is a key-value store whose values carry a timestamp. One goroutine at a time.
type TimestampedKeyValueStore[K, V any] struct {
	c     coder[K, V]
	bytes KeyValueBytes
}

// NewTimestampedKeyValue gives the typed store of kind TimestampedKeyValue with that name. A plain one will do, too: its entries have the time -1,
// and the times that are put are lost, as in Kafka Streams, whose tables may lie in either; if updates are coalesced, lately used entries have their
// times until the process ends.
func NewTimestampedKeyValue[K, V any](s Stores, name string, key serde.Codec[K], val serde.Codec[V]) (*TimestampedKeyValueStore[K, V], error) {
	if spec, ok := s.Spec(name); ok && spec.Kind == KeyValue {
		c, b, err := openKeyValue(s, name, KeyValue, key, val)
		if err != nil {
			return nil, err
		}
		return &TimestampedKeyValueStore[K, V]{c: c, bytes: untimed{b, cached(b)}}, nil
	}
	c, b, err := openKeyValue(s, name, TimestampedKeyValue, key, val)
	if err != nil {
		return nil, err
	}
	return &TimestampedKeyValueStore[K, V]{c: c, bytes: b}, nil
}

// Bytes is the store beneath.
func (s *TimestampedKeyValueStore[K, V]) Bytes() KeyValueBytes { return s.bytes }

// Get gives the value and timestamp of key, if it has one.
func (s *TimestampedKeyValueStore[K, V]) Get(key K) (v V, ts int64, ok bool, err error) {
	return getKeyValue(&s.c, s.bytes, key)
}

// Put sets the value and timestamp of key.
func (s *TimestampedKeyValueStore[K, V]) Put(key K, v V, ts int64) error {
	return putKeyValue(&s.c, s.bytes, key, v, ts)
}

// PutIfAbsent puts only if key has no value, else gives the value present and ok.
func (s *TimestampedKeyValueStore[K, V]) PutIfAbsent(key K, v V, ts int64) (old V, oldTS int64, ok bool, err error) {
	return putIfAbsent(&s.c, s.bytes, key, v, ts)
}

// PutAll sets the values and timestamps of all entries.
func (s *TimestampedKeyValueStore[K, V]) PutAll(entries []Entry[K, V]) error {
	return putAll(&s.c, s.bytes, entries)
}

// Delete removes key and gives the value and timestamp it had, if any.
func (s *TimestampedKeyValueStore[K, V]) Delete(key K) (old V, oldTS int64, ok bool, err error) {
	return deleteKeyValue(&s.c, s.bytes, key)
}

// Range scans the keys from..to, inclusive, in ascending byte order; a nil bound is open.
func (s *TimestampedKeyValueStore[K, V]) Range(from, to *K) iter.Seq2[Entry[K, V], error] {
	return scanKeyValue(&s.c, s.bytes.Range, from, to)
}

// ReverseRange is Range in descending order.
func (s *TimestampedKeyValueStore[K, V]) ReverseRange(from, to *K) iter.Seq2[Entry[K, V], error] {
	return scanKeyValue(&s.c, s.bytes.ReverseRange, from, to)
}

// All scans the whole store in ascending byte order.
func (s *TimestampedKeyValueStore[K, V]) All() iter.Seq2[Entry[K, V], error] {
	return s.Range(nil, nil)
}

// ReverseAll scans the whole store in descending byte order.
func (s *TimestampedKeyValueStore[K, V]) ReverseAll() iter.Seq2[Entry[K, V], error] {
	return s.ReverseRange(nil, nil)
}

// Prefix scans the keys whose bytes start with prefix.
func (s *TimestampedKeyValueStore[K, V]) Prefix(prefix []byte) iter.Seq2[Entry[K, V], error] {
	return prefixKeyValue(&s.c, s.bytes, prefix)
}

// ApproximateNumEntries is exact in memory and an estimate on disk; see KeyValueBytes.
func (s *TimestampedKeyValueStore[K, V]) ApproximateNumEntries() (int64, error) {
	return s.bytes.ApproximateNumEntries()
}

func getKeyValue[K, V any](c *coder[K, V], b KeyValueBytes, key K) (v V, ts int64, ok bool, err error) {
	k, err := c.encodeKey(key)
	if err != nil {
		return v, 0, false, err
	}
	data, ts, ok, err := b.Get(k, c.dst())
	if err != nil || !ok {
		return v, 0, false, err
	}
	v, err = c.decodeGot(data)
	return v, ts, err == nil, err
}

func putKeyValue[K, V any](c *coder[K, V], b KeyValueBytes, key K, v V, ts int64) error {
	k, err := c.encodeKey(key)
	if err != nil {
		return err
	}
	data, err := c.encodeValue(v)
	if err != nil {
		return err
	}
	return b.Put(k, data, ts)
}

func putIfAbsent[K, V any](c *coder[K, V], b KeyValueBytes, key K, v V, ts int64) (old V, oldTS int64, ok bool, err error) {
	k, err := c.encodeKey(key)
	if err != nil {
		return old, 0, false, err
	}
	data, err := c.encodeValue(v)
	if err != nil {
		return old, 0, false, err
	}
	got, oldTS, ok, err := b.PutIfAbsent(k, data, ts, c.dst())
	if err != nil || !ok {
		return old, 0, false, err
	}
	old, err = c.decodeGot(got)
	return old, oldTS, err == nil, err
}

func putAll[K, V any](c *coder[K, V], b KeyValueBytes, entries []Entry[K, V]) error {
	encoded := make([]BytesEntry, len(entries))
	for i, e := range entries {
		k, err := c.encodeKey(e.Key)
		if err != nil {
			return err
		}
		v, err := c.encodeValue(e.Value)
		if err != nil {
			return err
		}
		encoded[i] = BytesEntry{Key: bytes.Clone(k), Value: bytes.Clone(v), Timestamp: e.Timestamp}
	}
	return b.PutAll(encoded)
}

func deleteKeyValue[K, V any](c *coder[K, V], b KeyValueBytes, key K) (old V, oldTS int64, ok bool, err error) {
	k, err := c.encodeKey(key)
	if err != nil {
		return old, 0, false, err
	}
	got, oldTS, ok, err := b.Delete(k, c.dst())
	if err != nil || !ok {
		return old, 0, false, err
	}
	old, err = c.decodeGot(got)
	return old, oldTS, err == nil, err
}

func scanKeyValue[K, V any](c *coder[K, V], open func(from, to []byte) (KeyValueIterator, error), from, to *K) iter.Seq2[Entry[K, V], error] {
	return func(yield func(Entry[K, V], error) bool) {
		f, t, err := c.encodeBounds(from, to)
		if err != nil {
			yield(Entry[K, V]{}, err)
			return
		}
		it, err := open(f, t)
		walkKeyValue(c, it, err, yield)
	}
}

func prefixKeyValue[K, V any](c *coder[K, V], b KeyValueBytes, prefix []byte) iter.Seq2[Entry[K, V], error] {
	return func(yield func(Entry[K, V], error) bool) {
		it, err := b.Prefix(prefix)
		walkKeyValue(c, it, err, yield)
	}
}

func walkKeyValue[K, V any](c *coder[K, V], it KeyValueIterator, err error, yield func(Entry[K, V], error) bool) {
	walk(it, err, yield, func() (e Entry[K, V], err error) {
		e = Entry[K, V]{Timestamp: it.Timestamp()}
		e.Key, e.Value, err = c.decodeRow(it.Key(), it.Value())
		return e, err
	})
}
