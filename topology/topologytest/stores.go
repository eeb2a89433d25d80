package topologytest

import (
	"fmt"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// StoreNames names the topology's stores, global ones included, in order.
func (d *Driver) StoreNames() []string { return sortedNames(d.plan.Stores) }

// Stores finds the stores of the task that keeps a partition of the store of that name, for use with the typed facades of package state.
// The partition of a global store is 0. Reading shows what is uncommitted, too; what is written goes to the changelog with the next
// commit.
func (d *Driver) Stores(name string, partition int32) (state.Stores, error) {
	d.here().Helper()
	s := d.plan.Stores[name]
	if s == nil {
		return nil, d.report(fmt.Errorf("the topology has no store %q: it has %v", name, d.StoreNames()))
	}
	m := d.keeper(s, partition)
	if m == nil {
		return nil, d.report(fmt.Errorf("store %q has no partition %d", name, partition))
	}
	return m.db, d.report(d.commitPromptly()) // what is written by hand joins the next commit
}

func (d *Driver) keeper(s *plan.Store, partition int32) *member {
	for _, m := range d.members() {
		if m.db == nil || !s.Global && m.id.Partition != partition {
			continue
		}
		if _, ok := m.db.Spec(s.Spec.Name); ok {
			return m
		}
	}
	return nil
}

// StorePartitions is the number of partitions of a store: 1 in the driver mode and for a global store.
func (d *Driver) StorePartitions(name string) int32 {
	s, n := d.plan.Stores[name], int32(0)
	if s == nil {
		return 0
	}
	for d.keeper(s, n) != nil {
		n++
		if s.Global {
			break
		}
	}
	return n
}

// KeyValue opens one partition of a key-value store.
func KeyValue[K, V any](d *Driver, name string, partition int32, key serde.Serde[K], value serde.Serde[V]) (*state.KeyValueStore[K, V], error) {
	d.here().Helper()
	return openTyped(d, name, partition, state.NewKeyValue, key, value)
}

// TimestampedKeyValue opens one partition of a timestamped key-value store, which is what tables and aggregates are kept in.
func TimestampedKeyValue[K, V any](d *Driver, name string, partition int32, key serde.Serde[K], value serde.Serde[V]) (*state.TimestampedKeyValueStore[K, V], error) {
	d.here().Helper()
	return openTyped(d, name, partition, state.NewTimestampedKeyValue, key, value)
}

// Window opens one partition of a window store.
func Window[K, V any](d *Driver, name string, partition int32, key serde.Serde[K], value serde.Serde[V]) (*state.WindowStore[K, V], error) {
	d.here().Helper()
	return openTyped(d, name, partition, state.NewWindow, key, value)
}

// TimestampedWindow opens one partition of a timestamped window store, which is what windowed aggregates are kept in.
func TimestampedWindow[K, V any](d *Driver, name string, partition int32, key serde.Serde[K], value serde.Serde[V]) (*state.TimestampedWindowStore[K, V], error) {
	d.here().Helper()
	return openTyped(d, name, partition, state.NewTimestampedWindow, key, value)
}

// Session opens one partition of a session store.
func Session[K, V any](d *Driver, name string, partition int32, key serde.Serde[K], value serde.Serde[V]) (*state.SessionStore[K, V], error) {
	d.here().Helper()
	return openTyped(d, name, partition, state.NewSession, key, value)
}

// Versioned opens one partition of a versioned store.
func Versioned[K, V any](d *Driver, name string, partition int32, key serde.Serde[K], value serde.Serde[V]) (*state.VersionedStore[K, V], error) {
	d.here().Helper()
	return openTyped(d, name, partition, state.NewVersioned, key, value)
}

func openTyped[S, K, V any](d *Driver, name string, partition int32, open func(state.Stores, string, serde.Codec[K], serde.Codec[V]) (*S, error),
	key serde.Serde[K], value serde.Serde[V]) (*S, error) {
	d.here().Helper()
	stores, err := d.Stores(name, partition)
	if err != nil {
		return nil, err
	}
	if err := topology.CheckStoreTypes[K, V](d.built, name); err != nil {
		return nil, d.report(err)
	}
	s, err := open(stores, name, serde.NewCodec(key), serde.NewCodec(value))
	return s, d.report(err)
}

// Held counts what a store holds that has no typed facade: the changes that a suppression or the records that a join holds back, summed
// over its partitions.
func (d *Driver) Held(name string) (int64, error) {
	d.here().Helper()
	s := d.plan.Stores[name]
	if s == nil {
		return 0, d.report(fmt.Errorf("the topology has no store %q: it has %v", name, d.StoreNames()))
	}
	var sum int64
	for p := range d.StorePartitions(name) {
		n, err := held(d.keeper(s, p).db, name, s.Spec.Kind)
		if err != nil {
			return 0, d.report(fmt.Errorf("store %q, partition %d: %w", name, p, err))
		}
		sum += n
	}
	return sum, nil
}

func held(db *state.DB, name string, kind state.Kind) (int64, error) {
	switch kind {
	case state.SuppressBuffer:
		b, err := db.ChangeBuffer(name)
		if err != nil {
			return 0, err
		}
		return b.NumRecords(), nil
	case state.JoinBuffer:
		b, err := db.RecordBuffer(name)
		if err != nil {
			return 0, err
		}
		return b.NumRecords(), nil
	case state.JoinList:
		l, err := db.JoinList(name)
		if err != nil {
			return 0, err
		}
		it, err := l.All()
		return countEntries(it, err)
	case state.KeyValue, state.TimestampedKeyValue:
		kv, err := db.KeyValueBytes(name)
		if err != nil {
			return 0, err
		}
		it, err := kv.Range(nil, nil)
		return countEntries(it, err)
	}
	return 0, fmt.Errorf("what a store of kind %s holds is read through its typed facade", kind)
}

func countEntries(it state.KeyValueIterator, err error) (n int64, _ error) {
	if err != nil {
		return 0, err
	}
	for it.Next() {
		n++
	}
	return n, it.Close()
}
