package state

import (
	"iter"

	"github.com/tributary-io/tributary/serde"
)

// Version is a version of a key. ValidTo is exclusive, LatestVersion for the latest.
type Version[V any] struct {
	Value              V
	ValidFrom, ValidTo int64
}

// VersionedStore is a versioned key-value store; see VersionedBytes. One goroutine at a time.
type VersionedStore[K, V any] struct {
	c     coder[K, V]
	bytes VersionedBytes
}

// NewVersioned gives the typed store of kind Versioned with that name.
func NewVersioned[K, V any](s Stores, name string, key serde.Codec[K], val serde.Codec[V]) (*VersionedStore[K, V], error) {
	c, err := newCoder(name, key, val)
	if err != nil {
		return nil, err
	}
	if err := checkKind(s, name, Versioned); err != nil {
		return nil, err
	}
	b, err := s.VersionedBytes(name)
	if err != nil {
		return nil, err
	}
	return &VersionedStore[K, V]{c: c, bytes: b}, nil
}

// Bytes is the store beneath.
func (s *VersionedStore[K, V]) Bytes() VersionedBytes { return s.bytes }

// Put adds a version; the nil of a nullable V is a tombstone. It returns the time up to which the version is valid, LatestVersion
// or VersionNotPut.
func (s *VersionedStore[K, V]) Put(key K, v V, ts int64) (validTo int64, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return 0, err
	}
	data, err := s.c.encodeValue(v)
	if err != nil {
		return 0, err
	}
	return s.bytes.Put(k, data, ts)
}

// PutNull puts a tombstone and returns as Put does.
func (s *VersionedStore[K, V]) PutNull(key K, ts int64) (validTo int64, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return 0, err
	}
	return s.bytes.Put(k, nil, ts)
}

// Delete puts a tombstone and gives the version that was valid at ts before it, if any.
func (s *VersionedStore[K, V]) Delete(key K, ts int64) (old Version[V], ok bool, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return old, false, err
	}
	return s.decoded(s.bytes.Delete(k, ts, s.c.dst()))
}

// Get gives the latest version of key, if it has one.
func (s *VersionedStore[K, V]) Get(key K) (v Version[V], ok bool, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return v, false, err
	}
	return s.decoded(s.bytes.Get(k, s.c.dst()))
}

// GetAsOf gives the version of key valid at time asOf, if there is one.
func (s *VersionedStore[K, V]) GetAsOf(key K, asOf int64) (v Version[V], ok bool, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return v, false, err
	}
	return s.decoded(s.bytes.GetAsOf(k, asOf, s.c.dst()))
}

// History scans the versions of key whose validity meets from..to.
func (s *VersionedStore[K, V]) History(key K, from, to int64, dir Direction) iter.Seq2[Version[V], error] {
	return func(yield func(Version[V], error) bool) {
		k, err := s.c.encodeKey(key)
		if err != nil {
			yield(Version[V]{}, err)
			return
		}
		it, err := s.bytes.History(k, from, to, dir)
		walk(it, err, yield, func() (v Version[V], err error) {
			b := it.Version()
			v = Version[V]{ValidFrom: b.ValidFrom, ValidTo: b.ValidTo}
			v.Value, err = s.c.decodeShared(b.Value)
			return v, err
		})
	}
}

func (s *VersionedStore[K, V]) decoded(b BytesVersion, ok bool, err error) (v Version[V], _ bool, _ error) {
	if err != nil || !ok {
		return v, false, err
	}
	v.ValidFrom, v.ValidTo = b.ValidFrom, b.ValidTo
	v.Value, err = s.c.decodeGot(b.Value)
	return v, err == nil, err
}
