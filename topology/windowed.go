package topology

import (
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
)

// WindowedTable is the table of a windowed aggregation: its keys are those of the groups, each within a window.
//
// It is a type of its own, not a Table[Window[K], V], since the compiler refuses methods that make larger types of their own.
// FlattenTable makes one of the other.
type WindowedTable[K, V any] struct{ t *table[Window[K], V] }

// FlattenTable is a windowed table with windows for keys, which has joins and everything else that tables have.
func FlattenTable[K, V any](t *WindowedTable[K, V]) *Table[Window[K], V] {
	return &Table[Window[K], V]{t.t}
}

// StoreName names the store that holds the table's rows, for queries; empty if the table has none of its own.
func (t *WindowedTable[K, V]) StoreName() string { return storeName(t.t) }

// Filter keeps the results for which keep is true.
func (t *WindowedTable[K, V]) Filter[_ onUse](keep func(Window[K], V) bool, opts ...Option) *WindowedTable[K, V] {
	return t.TryFilter(lift2(keep), opts...)
}

// TryFilter is Filter with a function that may fail.
func (t *WindowedTable[K, V]) TryFilter[_ onUse](keep func(Window[K], V) (bool, error), opts ...Option) *WindowedTable[K, V] {
	return &WindowedTable[K, V]{filterTable(t.t, keep, false, opts)}
}

// FilterNot keeps the results for which drop is false.
func (t *WindowedTable[K, V]) FilterNot[_ onUse](drop func(Window[K], V) bool, opts ...Option) *WindowedTable[K, V] {
	return t.TryFilterNot(lift2(drop), opts...)
}

// TryFilterNot is FilterNot with a function that may fail.
func (t *WindowedTable[K, V]) TryFilterNot[_ onUse](drop func(Window[K], V) (bool, error), opts ...Option) *WindowedTable[K, V] {
	return &WindowedTable[K, V]{filterTable(t.t, drop, true, opts)}
}

// MapValues makes a new value of each result's.
func (t *WindowedTable[K, V]) MapValues[V2 any](f func(V) V2, opts ...Option) *WindowedTable[K, V2] {
	return t.TryMapValues(ofValue[Window[K]](f), opts...)
}

// MapValuesWithKey is MapValues with a function that sees the key and its window.
func (t *WindowedTable[K, V]) MapValuesWithKey[V2 any](f func(Window[K], V) V2, opts ...Option) *WindowedTable[K, V2] {
	return t.TryMapValues(lift2(f), opts...)
}

// TryMapValues is MapValuesWithKey with a function that may fail.
func (t *WindowedTable[K, V]) TryMapValues[V2 any](f func(Window[K], V) (V2, error), opts ...Option) *WindowedTable[K, V2] {
	return &WindowedTable[K, V2]{mapTableValues(t.t, f, opts)}
}

// EmitFinal sends each window's result once, when the window and its grace are over: Suppress with UntilWindowCloses. Unlike
// EmitOnClose it keeps what it holds back in a buffer of its own.
func (t *WindowedTable[K, V]) EmitFinal[_ onUse](opts ...Option) *WindowedTable[K, V] {
	return t.Suppress(UntilWindowCloses(), opts...)
}

// Suppress holds results back; see UntilWindowCloses and UntilTimeLimit.
func (t *WindowedTable[K, V]) Suppress[_ onUse](how Suppression, opts ...Option) *WindowedTable[K, V] {
	return &WindowedTable[K, V]{suppress(t.t, how, opts)}
}

// GroupBy gives each result a new key and value, for an aggregation over the table.
func (t *WindowedTable[K, V]) GroupBy[K2, V2 any](f func(Window[K], V) (K2, V2), opts ...Option) *GroupedTable[K2, V2] {
	return t.TryGroupBy(liftMap(f), opts...)
}

// TryGroupBy is GroupBy with a function that may fail.
func (t *WindowedTable[K, V]) TryGroupBy[K2, V2 any](f func(Window[K], V) (K2, V2, error), opts ...Option) *GroupedTable[K2, V2] {
	return &GroupedTable[K2, V2]{groupTable(t.t, f, opts)}
}

// ToStream is the stream of the table's changes.
func (t *WindowedTable[K, V]) ToStream[_ onUse](opts ...Option) *WindowedStream[K, V] {
	return &WindowedStream[K, V]{streamOf(t.t, opts)}
}

// WindowedStream is a stream of windowed results. Map and SelectKey lead back to streams without windows; see WindowedTable for why
// it is a type of its own.
type WindowedStream[K, V any] struct{ s *stream[Window[K], V] }

// Flatten is a windowed stream with windows for keys, which has everything that streams have.
func Flatten[K, V any](s *WindowedStream[K, V]) *Stream[Window[K], V] {
	return &Stream[Window[K], V]{s.s}
}

// Filter keeps the records for which keep is true.
func (s *WindowedStream[K, V]) Filter[_ onUse](keep func(Window[K], V) bool, opts ...Option) *WindowedStream[K, V] {
	return s.TryFilter(lift2(keep), opts...)
}

// TryFilter is Filter with a function that may fail.
func (s *WindowedStream[K, V]) TryFilter[_ onUse](keep func(Window[K], V) (bool, error), opts ...Option) *WindowedStream[K, V] {
	return &WindowedStream[K, V]{filterStream(s.s, keep, false, opts)}
}

// FilterNot keeps the records for which drop is false.
func (s *WindowedStream[K, V]) FilterNot[_ onUse](drop func(Window[K], V) bool, opts ...Option) *WindowedStream[K, V] {
	return s.TryFilterNot(lift2(drop), opts...)
}

// TryFilterNot is FilterNot with a function that may fail.
func (s *WindowedStream[K, V]) TryFilterNot[_ onUse](drop func(Window[K], V) (bool, error), opts ...Option) *WindowedStream[K, V] {
	return &WindowedStream[K, V]{filterStream(s.s, drop, true, opts)}
}

// Map makes one new record of each.
func (s *WindowedStream[K, V]) Map[K2, V2 any](f func(Window[K], V) (K2, V2), opts ...Option) *Stream[K2, V2] {
	return s.TryMap(liftMap(f), opts...)
}

// TryMap is Map with a function that may fail.
func (s *WindowedStream[K, V]) TryMap[K2, V2 any](f func(Window[K], V) (K2, V2, error), opts ...Option) *Stream[K2, V2] {
	return &Stream[K2, V2]{mapStream(s.s, f, opts)}
}

// MapValues makes a new value of each record's value.
func (s *WindowedStream[K, V]) MapValues[V2 any](f func(V) V2, opts ...Option) *WindowedStream[K, V2] {
	return s.TryMapValues(ofValue[Window[K]](f), opts...)
}

// MapValuesWithKey is MapValues with a function that sees the key and its window.
func (s *WindowedStream[K, V]) MapValuesWithKey[V2 any](f func(Window[K], V) V2, opts ...Option) *WindowedStream[K, V2] {
	return s.TryMapValues(lift2(f), opts...)
}

// TryMapValues is MapValuesWithKey with a function that may fail.
func (s *WindowedStream[K, V]) TryMapValues[V2 any](f func(Window[K], V) (V2, error), opts ...Option) *WindowedStream[K, V2] {
	return &WindowedStream[K, V2]{mapStreamValues(s.s, f, opts)}
}

// FlatMap makes any number of records of each: those that f emits, in that order.
func (s *WindowedStream[K, V]) FlatMap[K2, V2 any](f func(k Window[K], v V, emit func(K2, V2)), opts ...Option) *Stream[K2, V2] {
	return s.TryFlatMap(liftEmit(f), opts...)
}

// TryFlatMap is FlatMap with a function that may fail; then nothing that it emitted goes on.
func (s *WindowedStream[K, V]) TryFlatMap[K2, V2 any](f func(k Window[K], v V, emit func(K2, V2)) error, opts ...Option) *Stream[K2, V2] {
	return &Stream[K2, V2]{flatMapStream(s.s, f, opts)}
}

// FlatMapValues makes any number of records of each, with its key and window and the values that f emits.
func (s *WindowedStream[K, V]) FlatMapValues[V2 any](f func(k Window[K], v V, emit func(V2)), opts ...Option) *WindowedStream[K, V2] {
	return s.TryFlatMapValues(liftEmit(f), opts...)
}

// TryFlatMapValues is FlatMapValues with a function that may fail; then nothing that it emitted goes on.
func (s *WindowedStream[K, V]) TryFlatMapValues[V2 any](f func(k Window[K], v V, emit func(V2)) error, opts ...Option) *WindowedStream[K, V2] {
	return &WindowedStream[K, V2]{flatMapStreamValues(s.s, f, opts)}
}

// SelectKey gives each record a new key.
func (s *WindowedStream[K, V]) SelectKey[K2 any](f func(Window[K], V) K2, opts ...Option) *Stream[K2, V] {
	return s.TrySelectKey(lift2(f), opts...)
}

// TrySelectKey is SelectKey with a function that may fail.
func (s *WindowedStream[K, V]) TrySelectKey[K2 any](f func(Window[K], V) (K2, error), opts ...Option) *Stream[K2, V] {
	return &Stream[K2, V]{selectStreamKey(s.s, f, opts)}
}

// GroupBy gives each record a new key and groups by that.
func (s *WindowedStream[K, V]) GroupBy[K2 any](f func(Window[K], V) K2, opts ...Option) *GroupedStream[K2, V] {
	return s.TryGroupBy(lift2(f), opts...)
}

// TryGroupBy is GroupBy with a function that may fail.
func (s *WindowedStream[K, V]) TryGroupBy[K2 any](f func(Window[K], V) (K2, error), opts ...Option) *GroupedStream[K2, V] {
	return &GroupedStream[K2, V]{groupBy(s.s, f, opts)}
}

// Peek calls f for each record that passes.
func (s *WindowedStream[K, V]) Peek[_ onUse](f func(Window[K], V), opts ...Option) *WindowedStream[K, V] {
	return s.TryPeek(liftAction(f), opts...)
}

// TryPeek is Peek with a function that may fail.
func (s *WindowedStream[K, V]) TryPeek[_ onUse](f func(Window[K], V) error, opts ...Option) *WindowedStream[K, V] {
	return &WindowedStream[K, V]{peekStream(s.s, f, opts)}
}

// ForEach calls f for each record, and ends the stream.
func (s *WindowedStream[K, V]) ForEach[_ onUse](f func(Window[K], V), opts ...Option) {
	s.TryForEach(liftAction(f), opts...)
}

// TryForEach is ForEach with a function that may fail.
func (s *WindowedStream[K, V]) TryForEach[_ onUse](f func(Window[K], V) error, opts ...Option) {
	forEachInStream(s.s, f, opts)
}

// Merge is the records of both streams.
func (s *WindowedStream[K, V]) Merge[_ onUse](other *WindowedStream[K, V], opts ...Option) *WindowedStream[K, V] {
	if other == nil {
		return &WindowedStream[K, V]{mergeStreams(s.s, nil, opts)}
	}
	return &WindowedStream[K, V]{mergeStreams(s.s, other.s, opts)}
}

// Process runs a processor of the user's.
func (s *WindowedStream[K, V]) Process[K2, V2 any](newProcessor func() processors.Processor[Window[K], V, K2, V2], opts ...Option) *Stream[K2, V2] {
	return &Stream[K2, V2]{processStream(s.s, newProcessor, opts)}
}

// To writes the stream to a topic. Keys are written as Kafka Streams writes them, and all windows of a key go to one partition.
func (s *WindowedStream[K, V]) To[_ onUse](topic string, opts ...Option) { streamTo(s.s, topic, opts) }

// ToLake lands the stream in a table, each record as a row.
func (s *WindowedStream[K, V]) ToLake[_ onUse](table sink.Sink, opts ...Option) {
	streamToLake(s.s, table, opts)
}
