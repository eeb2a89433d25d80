package topology

import (
	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
)

// Table is a table that changes: a record is the new row of its key, or a delete if its value is null.
//
// A table that is computed from another one has no store of its own unless the option Store names it; joins and queries then compute
// its rows from the tables above. Functions never see a null value.
type Table[K, V any] struct{ t *table[K, V] }

// StoreName names the store that holds the table's rows, for queries; empty if the table has none of its own.
func (t *Table[K, V]) StoreName() string { return storeName(t.t) }

func storeName[K, V any](t *table[K, V]) string {
	if t.spec == nil {
		return ""
	}
	return t.spec.Name
}

// ToTable reads the stream as a table: each record is the new row of its key, a null value deletes it. If the key was changed before,
// records go through a repartition topic.
func (s *Stream[K, V]) ToTable[_ onUse](opts ...Option) *Table[K, V] {
	return &Table[K, V]{toTable(s.s, opts)}
}

// Filter keeps the rows for which keep is true.
func (t *Table[K, V]) Filter[_ onUse](keep func(K, V) bool, opts ...Option) *Table[K, V] {
	return t.TryFilter(lift2(keep), opts...)
}

// TryFilter is Filter with a function that may fail.
func (t *Table[K, V]) TryFilter[_ onUse](keep func(K, V) (bool, error), opts ...Option) *Table[K, V] {
	return &Table[K, V]{filterTable(t.t, keep, false, opts)}
}

// FilterNot keeps the rows for which drop is false.
func (t *Table[K, V]) FilterNot[_ onUse](drop func(K, V) bool, opts ...Option) *Table[K, V] {
	return t.TryFilterNot(lift2(drop), opts...)
}

// TryFilterNot is FilterNot with a function that may fail.
func (t *Table[K, V]) TryFilterNot[_ onUse](drop func(K, V) (bool, error), opts ...Option) *Table[K, V] {
	return &Table[K, V]{filterTable(t.t, drop, true, opts)}
}

// MapValues makes a new value of each row's.
func (t *Table[K, V]) MapValues[V2 any](f func(V) V2, opts ...Option) *Table[K, V2] {
	return t.TryMapValues(ofValue[K](f), opts...)
}

// MapValuesWithKey is MapValues with a function that sees the key.
func (t *Table[K, V]) MapValuesWithKey[V2 any](f func(K, V) V2, opts ...Option) *Table[K, V2] {
	return t.TryMapValues(lift2(f), opts...)
}

// TryMapValues is MapValuesWithKey with a function that may fail.
func (t *Table[K, V]) TryMapValues[V2 any](f func(K, V) (V2, error), opts ...Option) *Table[K, V2] {
	return &Table[K, V2]{mapTableValues(t.t, f, opts)}
}

// TransformValues makes a new value of each row's with access to stores, which the option Stores connects. newTransformer is called
// for each task, and once more for each join that computes rows through it.
func (t *Table[K, V]) TransformValues[V2 any](newTransformer func() processors.ValueTransformer[K, V, V2], opts ...Option) *Table[K, V2] {
	return &Table[K, V2]{transformTableValues(t.t, newTransformer, opts)}
}

// ToStream is the stream of the table's changes. A delete is a record with a null value: functions of values don't see it if V can't
// hold a null, sinks write it, and a function that makes a new key fails on it. See Changes for a stream whose values can hold it.
func (t *Table[K, V]) ToStream[_ onUse](opts ...Option) *Stream[K, V] {
	return &Stream[K, V]{streamOf(t.t, opts)}
}

// Suppress holds changes back; see UntilTimeLimit and UntilWindowCloses.
func (t *Table[K, V]) Suppress[_ onUse](how Suppression, opts ...Option) *Table[K, V] {
	return &Table[K, V]{suppress(t.t, how, opts)}
}

// Changes is the stream of a table's changes with pointers for values: nil for a delete. It is a function since a method of Table
// can't speak of a Table or Stream of *V.
func Changes[K, V any](t *Table[K, V], opts ...Option) *Stream[K, *V] {
	o := t.t.b.operator(opts, statelessOptions, "KTABLE-TOSTREAM-", false)
	var pointers serde.Serde[*V]
	if t.t.value != nil {
		pointers = serde.Ptr(t.t.value)
	}
	out := &stream[K, *V]{
		b: t.t.b, key: keySerde(o.settings, t.t.key), value: valueSerde(o.settings, pointers), sources: t.t.sources, windows: t.t.windows,
	}
	out.node = o.add(changesNothing, &logical.Processor{Supplier: processors.TableToPointers[K, V]()}, t.t.node)
	return &Stream[K, *V]{out}
}
