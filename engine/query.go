package engine

import (
	"errors"
	"fmt"
	"iter"

	"github.com/tributary-io/tributary/engine/internal/scan"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// A query reads the committed state of a store's partitions that this instance has, from any goroutine, while the tasks go on: what a
// transaction that is still open has written isn't seen. Make one for a store and keep it: it holds nothing open. It can be made before
// the engine runs.
//
// What is asked by key fails with a *NotHereError if the key's partition isn't here now (see Engine.Locate). Scans over all keys show the
// partitions that are here, one after the other (see Engine.LocalPartitions).
type query[K, V any] struct {
	from  source
	store string
	key   serde.Codec[K]
	value serde.Codec[V]
}

// source is where a query reads: the store of an engine, or a View.
type source interface {
	// parts are the partitions that may have key; without one (nil), all that are here.
	parts(key []byte) ([]int32, error)
	// read calls f with the committed state of a partition. f must not call code of the user, and closes its iterators.
	read(partition int32, f func(state.Stores) error) error
}

// storeSource is a store of an engine.
type storeSource struct {
	e     *Engine
	store string
}

func (s storeSource) parts(key []byte) ([]int32, error) {
	p, err := s.e.place(s.store)
	if err != nil || key == nil {
		return s.e.here(p), err
	}
	at, err := p.partitionOf(key)
	return []int32{at}, err
}

func (s storeSource) read(partition int32, f func(state.Stores) error) error {
	p, err := s.e.place(s.store)
	if err != nil {
		return err
	}
	return s.e.read(p, partition, f)
}

func newQuery[K, V any](e *Engine, store string, key serde.Serde[K], value serde.Serde[V], kinds ...state.Kind) (query[K, V], error) {
	q := query[K, V]{from: storeSource{e, store}, store: store}
	_, err := e.place(store)
	var unknown *UnknownStoreError
	if errors.As(err, &unknown) {
		return q, err
	}
	if key == nil || value == nil {
		return q, fmt.Errorf("query store %s: a serde is nil", store)
	}
	s := e.plan.Stores[store]
	fits := false
	for _, k := range kinds {
		fits = fits || s.Spec.Kind == k
	}
	if !fits {
		return q, &state.LookupError{Store: store, Want: kinds[len(kinds)-1].String(), Got: s.Spec.Kind}
	}
	if err := topology.CheckStoreTypes[K, V](e.built, store); err != nil {
		return q, fmt.Errorf("query %w", err)
	}
	topic := s.Changelog // what the topology binds the store's serdes to
	if topic == "" {
		topic = e.plan.ApplicationID + "-" + store + "-changelog"
	}
	q.key, q.value = serde.NewCodec(serde.Bind(key, topic, true)), serde.NewCodec(serde.Bind(value, topic, false))
	return q, nil
}

// keyBytes encodes a key.
func (q query[K, V]) keyBytes(key K) ([]byte, error) {
	data, null, err := q.key.Encode(nil, key, false)
	switch {
	case err != nil:
		return nil, fmt.Errorf("query store %s: encode key: %w", q.store, err)
	case null:
		return nil, fmt.Errorf("query store %s: a key can't be null", q.store)
	case data == nil:
		data = []byte{}
	}
	return data, nil
}

// bound encodes a bound of a range; nil is open.
func (q query[K, V]) bound(key *K) ([]byte, error) {
	if key == nil {
		return nil, nil
	}
	return q.keyBytes(*key)
}

// at reads the partition of a key.
func (q query[K, V]) at(key K, f func(s state.Stores, key []byte) error) error {
	data, err := q.keyBytes(key)
	if err != nil {
		return err
	}
	parts, err := q.from.parts(data)
	if err != nil {
		return err
	}
	return q.from.read(parts[0], func(s state.Stores) error { return f(s, data) })
}

func (q query[K, V]) decode(data []byte) (V, error) {
	v, err := q.value.Decode(data)
	if err != nil {
		return v, fmt.Errorf("query store %s: decode value of %d bytes: %w", q.store, len(data), err)
	}
	return v, nil
}

func (q query[K, V]) decodeKey(data []byte) (K, error) {
	k, err := q.key.Decode(data)
	if err != nil {
		return k, fmt.Errorf("query store %s: decode key of %d bytes: %w", q.store, len(data), err)
	}
	return k, nil
}

// portionRows is how many rows are taken out of a key-value store at once.
const portionRows = 256

// rows yields what take finds, of one partition or of all that are here. Rows are taken out in portions before they are given to the
// caller, whose code must not run while a task is held open.
func rows[K, V, E any](q query[K, V], key *K, take func(stores state.Stores, key []byte, after *scan.Row) scan.Portion, build func(scan.Row) (E, error)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		var data []byte
		var err error
		if key != nil {
			if data, err = q.keyBytes(*key); err != nil {
				yield(none, err)
				return
			}
		}
		parts, err := q.from.parts(data)
		if err != nil {
			yield(none, err)
			return
		}
		for _, part := range parts {
			var after *scan.Row
			for more := true; more; {
				var got scan.Portion
				err := q.from.read(part, func(s state.Stores) error {
					got = take(s, data, after)
					return got.Err
				})
				if err != nil {
					yield(none, err)
					return
				}
				for i := range got.Rows {
					entry, err := build(got.Rows[i])
					if !yield(entry, err) || err != nil {
						return
					}
				}
				if more = got.More && len(got.Rows) > 0; more {
					after = &got.Rows[len(got.Rows)-1]
				}
			}
		}
	}
}

// KeyValueQuery reads a key-value store. See QueryKeyValue.
type KeyValueQuery[K, V any] struct{ q query[K, V] }

// QueryKeyValue makes a query of a store of kind KeyValue or TimestampedKeyValue, such as that of a table, a count or a global table. The
// serdes are those of the store: others are a *topology.StoreTypesError where their Go types differ. It reads committed state, from any goroutine.
func QueryKeyValue[K, V any](e *Engine, store string, key serde.Serde[K], value serde.Serde[V]) (*KeyValueQuery[K, V], error) {
	q, err := newQuery(e, store, key, value, state.KeyValue, state.TimestampedKeyValue)
	if err != nil {
		return nil, err
	}
	return &KeyValueQuery[K, V]{q}, nil
}

// Get gives the entry of key; ok is false if it has none. Timestamp is 0 in plain stores.
func (q *KeyValueQuery[K, V]) Get(key K) (entry state.Entry[K, V], ok bool, err error) {
	var data []byte
	err = q.q.at(key, func(s state.Stores, key []byte) error {
		kv, err := s.KeyValueBytes(q.q.store)
		if err != nil {
			return err
		}
		data, entry.Timestamp, ok, err = kv.Get(key, nil)
		return err
	})
	if err != nil || !ok {
		return state.Entry[K, V]{}, false, err
	}
	entry.Key = key
	entry.Value, err = q.q.decode(data)
	return entry, err == nil, err
}

// Range scans the keys from..to, inclusive, in ascending byte order within each partition that is here; a nil bound is open. It is taken
// out in portions of some hundred rows, each as committed at its moment.
func (q *KeyValueQuery[K, V]) Range(from, to *K) iter.Seq2[state.Entry[K, V], error] {
	f, err := q.q.bound(from)
	t, err2 := q.q.bound(to)
	if err := errors.Join(err, err2); err != nil {
		return func(yield func(state.Entry[K, V], error) bool) { yield(state.Entry[K, V]{}, err) }
	}
	return rows(q.q, nil, func(s state.Stores, _ []byte, after *scan.Row) scan.Portion {
		return scan.Range(s, q.q.store, f, t, after, portionRows)
	}, q.entry)
}

// All scans all keys; see Range.
func (q *KeyValueQuery[K, V]) All() iter.Seq2[state.Entry[K, V], error] { return q.Range(nil, nil) }

// Prefix scans the keys whose bytes begin with prefix; see Range.
func (q *KeyValueQuery[K, V]) Prefix(prefix []byte) iter.Seq2[state.Entry[K, V], error] {
	return rows(q.q, nil, func(s state.Stores, _ []byte, after *scan.Row) scan.Portion {
		return scan.Prefix(s, q.q.store, prefix, after, portionRows)
	}, q.entry)
}

func (q *KeyValueQuery[K, V]) entry(r scan.Row) (state.Entry[K, V], error) {
	k, err := q.q.decodeKey(r.Key)
	v, err2 := q.q.decode(r.Value)
	return state.Entry[K, V]{Key: k, Value: v, Timestamp: r.Timestamp}, errors.Join(err, err2)
}

// WindowQuery reads a window store. See QueryWindow. Times are in milliseconds since 1970.
type WindowQuery[K, V any] struct{ q query[K, V] }

// QueryWindow makes a query of a store of kind Window or TimestampedWindow, such as that of a windowed count.
func QueryWindow[K, V any](e *Engine, store string, key serde.Serde[K], value serde.Serde[V]) (*WindowQuery[K, V], error) {
	q, err := newQuery(e, store, key, value, state.Window, state.TimestampedWindow)
	if err != nil {
		return nil, err
	}
	return &WindowQuery[K, V]{q}, nil
}

// Get gives the entry of the window of key that starts at start.
func (q *WindowQuery[K, V]) Get(key K, start int64) (entry state.WindowEntry[K, V], ok bool, err error) {
	for entry, err := range q.Fetch(key, start, start) {
		return entry, err == nil, err
	}
	return entry, false, nil
}

// Fetch gives the windows of key that start within from..to, inclusive, by start. All are taken out of the store at once.
func (q *WindowQuery[K, V]) Fetch(key K, from, to int64) iter.Seq2[state.WindowEntry[K, V], error] {
	return rows(q.q, &key, func(s state.Stores, key []byte, _ *scan.Row) scan.Portion {
		return scan.Windows(s, q.q.store, key, from, to, scan.Unlimited)
	}, q.entry)
}

// FetchAll gives the windows of all keys that start within from..to, in the order that the store has (see state.WindowBytes). Those of a
// partition are taken out of the store at once: choose a span of time that fits into memory.
func (q *WindowQuery[K, V]) FetchAll(from, to int64) iter.Seq2[state.WindowEntry[K, V], error] {
	return rows(q.q, nil, func(s state.Stores, _ []byte, _ *scan.Row) scan.Portion {
		return scan.Windows(s, q.q.store, nil, from, to, scan.Unlimited)
	}, q.entry)
}

func (q *WindowQuery[K, V]) entry(r scan.Row) (state.WindowEntry[K, V], error) {
	k, err := q.q.decodeKey(r.Key)
	v, err2 := q.q.decode(r.Value)
	return state.WindowEntry[K, V]{Key: k, Start: r.Start, Value: v, Timestamp: r.Timestamp}, errors.Join(err, err2)
}

// SessionQuery reads a session store. See QuerySession. Times are in milliseconds since 1970.
type SessionQuery[K, V any] struct{ q query[K, V] }

// QuerySession makes a query of a store of kind Session.
func QuerySession[K, V any](e *Engine, store string, key serde.Serde[K], value serde.Serde[V]) (*SessionQuery[K, V], error) {
	q, err := newQuery(e, store, key, value, state.Session)
	if err != nil {
		return nil, err
	}
	return &SessionQuery[K, V]{q}, nil
}

// Fetch gives all sessions of key.
func (q *SessionQuery[K, V]) Fetch(key K) iter.Seq2[state.SessionEntry[K, V], error] {
	return q.Find(key, 0, scan.MaxTime)
}

// Find gives the sessions of key that end at or after earliestEnd and start at or before latestStart.
func (q *SessionQuery[K, V]) Find(key K, earliestEnd, latestStart int64) iter.Seq2[state.SessionEntry[K, V], error] {
	return rows(q.q, &key, func(s state.Stores, key []byte, _ *scan.Row) scan.Portion {
		return scan.Sessions(s, q.q.store, key, earliestEnd, latestStart, scan.Unlimited)
	}, func(r scan.Row) (state.SessionEntry[K, V], error) {
		k, err := q.q.decodeKey(r.Key)
		v, err2 := q.q.decode(r.Value)
		return state.SessionEntry[K, V]{Key: k, Start: r.Start, End: r.End, Value: v}, errors.Join(err, err2)
	})
}

// VersionedQuery reads a versioned store (KIP-889). See QueryVersioned. Times are in milliseconds since 1970.
type VersionedQuery[K, V any] struct{ q query[K, V] }

// QueryVersioned makes a query of a store of kind Versioned.
func QueryVersioned[K, V any](e *Engine, store string, key serde.Serde[K], value serde.Serde[V]) (*VersionedQuery[K, V], error) {
	q, err := newQuery(e, store, key, value, state.Versioned)
	if err != nil {
		return nil, err
	}
	return &VersionedQuery[K, V]{q}, nil
}

// Get gives the latest version of key, if it has one.
func (q *VersionedQuery[K, V]) Get(key K) (state.Version[V], bool, error) {
	return q.GetAsOf(key, scan.MaxTime)
}

// GetAsOf gives the version of key that is valid at time asOf, if there is one and the history still has it.
func (q *VersionedQuery[K, V]) GetAsOf(key K, asOf int64) (version state.Version[V], ok bool, err error) {
	var got scan.Portion
	err = q.q.at(key, func(s state.Stores, key []byte) error {
		got = scan.Version(s, q.q.store, key, asOf)
		return got.Err
	})
	if err != nil || len(got.Rows) == 0 {
		return version, false, err
	}
	version, err = q.version(got.Rows[0])
	return version, err == nil, err
}

// History gives the versions of key whose validity meets from..to, the oldest first.
func (q *VersionedQuery[K, V]) History(key K, from, to int64) iter.Seq2[state.Version[V], error] {
	return rows(q.q, &key, func(s state.Stores, key []byte, _ *scan.Row) scan.Portion {
		return scan.History(s, q.q.store, key, from, to, scan.Unlimited)
	}, q.version)
}

func (q *VersionedQuery[K, V]) version(r scan.Row) (state.Version[V], error) {
	v, err := q.q.decode(r.Value)
	return state.Version[V]{Value: v, ValidFrom: r.Start, ValidTo: r.End}, err
}
