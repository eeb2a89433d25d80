package topology

import (
	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
)

// SessionGroups is a stream grouped by key and session, to be aggregated.
type SessionGroups[K, V any] struct {
	g       *grouped[K, V]
	windows SessionWindows
	onClose bool
}

// Sessions groups each key's records by sessions of activity. The option EmitOnClose sends each session's result once, when it closes.
func (g *GroupedStream[K, V]) Sessions[_ onUse](w SessionWindows, opts ...Option) *SessionGroups[K, V] {
	s := newSettings(opts, optEmitOnClose)
	w.check(s)
	g.g.in.b.report(g.g.in.node.Name+" Sessions", s)
	w.gap, w.grace = max(w.gap, 0), max(w.grace, 0) // what is wrong with them is told
	return &SessionGroups[K, V]{g: g.g, windows: w, onClose: s.has(optEmitOnClose)}
}

// Count counts the records of each session.
func (g *SessionGroups[K, V]) Count[_ onUse](opts ...Option) *WindowedTable[K, int64] {
	s := newSettings(opts, windowAggregates)
	if s.has(anyMaterialized) && !namesStore(s) {
		g.g.in.b.graph.NewStoreName(aggregatePrefix) // Kafka Streams takes a number here, too
	}
	return &WindowedTable[K, int64]{aggregateSessions(g, processors.Counting[K, V](), aggregatePrefix, serde.Int64, s)}
}

// Reduce combines the values of each session.
func (g *SessionGroups[K, V]) Reduce[_ onUse](f func(sum, value V) V, opts ...Option) *WindowedTable[K, V] {
	return g.TryReduce(lift2(f), opts...)
}

// TryReduce is Reduce with a function that may fail.
func (g *SessionGroups[K, V]) TryReduce[_ onUse](f func(sum, value V) (V, error), opts ...Option) *WindowedTable[K, V] {
	s := newSettings(opts, windowAggregates)
	s.needFunction(f == nil)
	return &WindowedTable[K, V]{aggregateSessions(g, processors.Reducing[K](f, nil), reducePrefix, g.g.value, s)}
}

// Aggregate starts each session with what init gives and adds one value after the other; merge puts two sessions together that a
// record has connected.
func (g *SessionGroups[K, V]) Aggregate[A any](init func() A, add func(key K, value V, agg A) A, merge func(key K, a, b A) A, opts ...Option) *WindowedTable[K, A] {
	return g.TryAggregate(lift0(init), lift3(add), lift3(merge), opts...)
}

// TryAggregate is Aggregate with functions that may fail.
func (g *SessionGroups[K, V]) TryAggregate[A any](
	init func() (A, error), add func(key K, value V, agg A) (A, error), merge func(key K, a, b A) (A, error), opts ...Option,
) *WindowedTable[K, A] {
	s := newSettings(opts, windowAggregates)
	s.needFunction(init == nil || add == nil || merge == nil)
	agg := processors.Aggregating(init, add, nil, merge)
	return &WindowedTable[K, A]{aggregateSessions(g, agg, aggregatePrefix, inferred[V, A](g.g.value), s)}
}

func aggregateSessions[K, V, A any](
	g *SessionGroups[K, V], agg processors.Aggregation[K, V, A], prefix string, value serde.Serde[A], s *settings,
) *table[Window[K], A] {
	b := g.g.in.b
	m := b.windowStore(s, prefix, g.windows.windowing(g.onClose))
	o := &operation{settings: s, b: b, name: b.graph.NameOr(s.userName, prefix)}
	key, value := keySerde(s, g.g.key), valueSerde(s, value)
	o.needStoreSerdes(needSerdes(key, value))
	store := kept(b, processors.Store[K, A]{Name: m.spec.Name, Key: key, Value: value})
	proc := processors.NewSessionAggregate(agg, g.windows.sessions(), b.emit(g.onClose), store)
	return addWindowed(o, g.g, m, proc, g.windows.windowGrace(), key, sessionWindowed(key), value)
}

// windowGrace counts the gap: a session closes that long after its end.
func (w SessionWindows) windowGrace() logical.WindowGrace {
	return logical.WindowGrace{Ms: addMs(w.gap.Milliseconds(), w.grace.Milliseconds())}
}

func sessionWindowed[K any](key serde.Serde[K]) serde.Serde[Window[K]] {
	if key == nil {
		return nil
	}
	return processors.SessionWindowedSerde(key)
}
