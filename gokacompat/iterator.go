package gokacompat

import (
	"bytes"
	"maps"
	"slices"

	"github.com/lovoo/goka/storage"

	"github.com/tributary-io/tributary/state"
)

// Iterator implements storage.Storage.
func (s *pebbleStorage) Iterator() (storage.Iterator, error) { return s.iterate(nil, nil) }

// IteratorWithRange implements storage.Storage, as goka's own does: without a limit it goes over the keys that begin with start.
func (s *pebbleStorage) IteratorWithRange(start, limit []byte) (storage.Iterator, error) {
	if len(limit) == 0 {
		limit = afterPrefix(start)
	}
	return s.iterate(start, limit)
}

// afterPrefix is the first key behind all that begin with prefix; nil if there is none.
func afterPrefix(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}

// iterate takes a picture of the storage within [start, limit).
func (s *pebbleStorage) iterate(start, limit []byte) (storage.Iterator, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil, errNotOpen
	}
	view, err := s.db.View()
	if err != nil {
		return nil, err
	}
	it := &storageIterator{view: view, limit: bytes.Clone(limit), values: map[string][]byte{}}
	if it.rows, err = view.KeyValueBytes(storageName); err != nil {
		view.Close()
		return nil, err
	}
	for key, p := range s.newest {
		if k := []byte(key); bytes.Compare(k, start) >= 0 && !it.beyond(k) {
			it.values[key] = p.value
		}
	}
	it.keys = slices.Sorted(maps.Keys(it.values))
	if it.base, err = it.rows.Range(bytes.Clone(start), nil); err != nil {
		view.Close()
		return nil, err
	}
	it.baseOK = it.base.Next()
	return it, nil
}

// storageIterator merges committed rows with a copy of those that wait for their acknowledgement. Like goka's, one that is not yet at a pair, or
// at its end, has a nil key.
type storageIterator struct {
	view   *state.View
	rows   state.KeyValueBytes
	limit  []byte // exclusive; empty: none
	base   state.KeyValueIterator
	baseOK bool              // base stands at a row that is yet to come
	keys   []string          // of values, in order; those yet to come
	values map[string][]byte // nil: deleted

	key, value []byte
	err        error
	released   bool
}

var _ storage.Iterator = (*storageIterator)(nil)

func (it *storageIterator) beyond(key []byte) bool {
	return len(it.limit) > 0 && bytes.Compare(key, it.limit) >= 0
}

// Next implements storage.Iterator.
func (it *storageIterator) Next() bool {
	it.key, it.value = nil, nil
	for !it.released && it.err == nil {
		key, value, ok := it.take()
		if !ok {
			break
		}
		if value != nil {
			it.key, it.value = key, value
			return true
		}
	}
	return false
}

// take gives the next pair of either side; a nil value is a deleted one.
func (it *storageIterator) take() (key, value []byte, ok bool) {
	if it.baseOK && it.beyond(it.base.Key()) {
		it.baseOK = false
	}
	if !it.baseOK && len(it.keys) == 0 {
		if !it.released {
			it.err = it.base.Err()
		}
		return nil, nil, false
	}
	if len(it.keys) > 0 && (!it.baseOK || it.keys[0] <= string(it.base.Key())) {
		next := it.keys[0]
		it.keys = it.keys[1:]
		if it.baseOK && string(it.base.Key()) == next {
			it.baseOK = it.base.Next()
		}
		return []byte(next), it.values[next], true
	}
	key, value = bytes.Clone(it.base.Key()), filled(bytes.Clone(it.base.Value()))
	it.baseOK = it.base.Next()
	return key, value, true
}

// Err implements storage.Iterator.
func (it *storageIterator) Err() error { return it.err }

// Key implements storage.Iterator.
func (it *storageIterator) Key() []byte { return it.key }

// Value implements storage.Iterator.
func (it *storageIterator) Value() ([]byte, error) { return it.value, nil }

// Release implements storage.Iterator. It may be called again.
func (it *storageIterator) Release() {
	if it.released {
		return
	}
	it.released = true
	it.key, it.value = nil, nil
	if err := it.base.Close(); it.err == nil {
		it.err = err
	}
	it.view.Close()
}

// Seek implements storage.Iterator, as goka's LevelDB iterator does: it stands at the first pair whose key is not before the one given, which
// Key and Value show; Next goes on behind it.
func (it *storageIterator) Seek(key []byte) bool {
	if it.released {
		return false
	}
	if err := it.base.Close(); err != nil {
		it.err = err
		return false
	}
	base, err := it.rows.Range(bytes.Clone(key), nil)
	if err != nil {
		it.err = err
		return false
	}
	it.base, it.baseOK = base, base.Next()
	it.keys = slices.Sorted(maps.Keys(it.values))
	at, _ := slices.BinarySearch(it.keys, string(key))
	it.keys = it.keys[at:]
	return it.Next()
}
