package processors

import "github.com/tributary-io/tributary/serde"

// VersionedSemantics is implemented by nodes that treat out-of-order updates of versioned tables specially (KIP-914): the topology
// tells them at Build whether the table they read is versioned.
type VersionedSemantics interface {
	UseVersionedSemantics(bool)
}

// TableSource turns records into the updates of a table and keeps its rows, if anyone needs them, in a store of kind
// TimestampedKeyValue, KeyValue or Versioned. It serves sources, Stream.ToTable and global tables.
type TableSource[K, V any] struct {
	unbuiltTable[K, V]
}

// NewTableSource makes a table source. store names its store whether there is one or not; materialized says that the user wants it.
func NewTableSource[K, V any](store Store[K, V], materialized bool) *TableSource[K, V] { return nil }

// Materialized reports whether the table has its store. Ask when the whole topology is known.
func (t *TableSource[K, V]) Materialized() bool { return false }

// Materialize gives the table its store.
func (t *TableSource[K, V]) Materialize() {}

// TableFilter passes the rows of a table for which keep is true.
type TableFilter[K, V any] struct {
	unbuiltTable[K, V]
}

// NewTableFilter makes a TableFilter. not inverts keep. store is nil where the result has no store of its own. Making it may enable
// old values in its parents.
func NewTableFilter[K, V any](parent Table[K, V], keep func(K, V) (bool, error), not bool, store *Store[K, V]) *TableFilter[K, V] {
	return nil
}

// UseVersionedSemantics implements VersionedSemantics.
func (t *TableFilter[K, V]) UseVersionedSemantics(on bool) {}

// NewTableMapValues makes a table with other values. f never sees a null.
func NewTableMapValues[K, V, V2 any](parent Table[K, V], f func(K, V) (V2, error), store *Store[K, V2]) Table[K, V2] {
	return nil
}

// ValueTransformer maps a table's values with access to stores. Transform's null arguments are nil pointers.
type ValueTransformer[K, V, V2 any] interface {
	Init(ctx BaseContext) error
	Transform(key K, value *V) (V2, error)
	Close() error
}

// NewTableTransformValues makes a table with values from a transformer, one for each task (and one for each view).
func NewTableTransformValues[K, V, V2 any](parent Table[K, V], newTransformer func() ValueTransformer[K, V, V2], store *Store[K, V2]) Table[K, V2] {
	return nil
}

// TableToStream makes a stream of a table's updates: Change[V] to V. A delete is a null.
func TableToStream[K, V any]() Supplier { return unbuilt() }

// TableRepartitionMap regroups a table for an aggregation: a record Change[V] of key K becomes records Change[V2] of key K2. It is a
// Supplier; the parent has to send old values.
type TableRepartitionMap[K, V, K2, V2 any] struct {
	Map func(K, V) (K2, V2, error)
	// Key tells whether two keys are equal: by their bytes.
	Key serde.Serde[K2]
}

// New implements Supplier.
func (m *TableRepartitionMap[K, V, K2, V2]) New(rt Runtime, children []Child) (Instance, error) {
	return Instance{}, errUnbuilt
}

// UseVersionedSemantics implements VersionedSemantics.
func (m *TableRepartitionMap[K, V, K2, V2]) UseVersionedSemantics(on bool) {}

// NewTablePassThrough merges tables that share one store: the end of a cogroup.
func NewTablePassThrough[K, V any](parents []Table[K, V], store Store[K, V]) Table[K, V] { return nil }

// NewWindowedPassThrough is NewTablePassThrough for time windows.
func NewWindowedPassThrough[K, V any](parents []Table[Windowed[K], V], store Store[K, V]) Table[Windowed[K], V] {
	return nil
}

// NewSessionPassThrough is NewTablePassThrough for session windows.
func NewSessionPassThrough[K, V any](parents []Table[Windowed[K], V], store Store[K, V]) Table[Windowed[K], V] {
	return nil
}

// ChangeSerde is the format in which the changes of a regrouped table travel (KIP-904).
func ChangeSerde[V any](value serde.Serde[V]) serde.Serde[Change[V]] { return nil }

// TimeWindowedSerde is Kafka Streams' format of keys in time windows: the key, then 8 bytes of the window's start. Decoding needs
// the size in ms, since the end isn't written; a size of 0 stands for unlimited windows.
func TimeWindowedSerde[K any](key serde.Serde[K], sizeMs int64) serde.Serde[Windowed[K]] { return nil }

// SessionWindowedSerde is Kafka Streams' format of keys in session windows: the key, then 8 bytes of end and 8 of start.
func SessionWindowedSerde[K any](key serde.Serde[K]) serde.Serde[Windowed[K]] { return nil }
