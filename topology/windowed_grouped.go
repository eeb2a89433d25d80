package topology

import (
	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// WindowedGroups is a stream grouped by key and window, to be aggregated.
type WindowedGroups[K, V any] struct {
	g       *grouped[K, V]
	windows Windows
	onClose bool
}

// Windowed groups each key's records by windows of time. The option EmitOnClose sends each window's result once, when it closes.
//
// A record with a null key, and one that comes after its window has closed, is left out and counted as dropped.
func (g *GroupedStream[K, V]) Windowed[_ onUse](w Windows, opts ...Option) *WindowedGroups[K, V] {
	s := newSettings(opts, optEmitOnClose)
	w.check(s)
	b := g.g.in.b
	b.report(g.g.in.node.Name+" Windowed", s)
	w.size, w.grace = max(w.size, 0), max(w.grace, 0) // what is wrong with them is told
	return &WindowedGroups[K, V]{g: g.g, windows: w, onClose: s.has(optEmitOnClose)}
}

// Count counts the records of each key and window.
func (g *WindowedGroups[K, V]) Count[_ onUse](opts ...Option) *WindowedTable[K, int64] {
	s := newSettings(opts, windowAggregates)
	if s.has(anyMaterialized) && !namesStore(s) && g.windows.kind != sliding {
		g.g.in.b.graph.NewStoreName(aggregatePrefix) // Kafka Streams takes a number here, too
	}
	return &WindowedTable[K, int64]{aggregateWindows(g.g, g.windows, g.onClose, processors.Counting[K, V](), aggregatePrefix, serde.Int64, s)}
}

// Reduce combines the values of each key and window.
func (g *WindowedGroups[K, V]) Reduce[_ onUse](f func(sum, value V) V, opts ...Option) *WindowedTable[K, V] {
	return g.TryReduce(lift2(f), opts...)
}

// TryReduce is Reduce with a function that may fail.
func (g *WindowedGroups[K, V]) TryReduce[_ onUse](f func(sum, value V) (V, error), opts ...Option) *WindowedTable[K, V] {
	s := newSettings(opts, windowAggregates)
	s.needFunction(f == nil)
	return &WindowedTable[K, V]{aggregateWindows(g.g, g.windows, g.onClose, processors.Reducing[K](f, nil), reducePrefix, g.g.value, s)}
}

// Aggregate starts each key and window with what init gives and adds one value after the other.
func (g *WindowedGroups[K, V]) Aggregate[A any](init func() A, add func(key K, value V, agg A) A, opts ...Option) *WindowedTable[K, A] {
	return g.TryAggregate(lift0(init), lift3(add), opts...)
}

// TryAggregate is Aggregate with functions that may fail.
func (g *WindowedGroups[K, V]) TryAggregate[A any](init func() (A, error), add func(key K, value V, agg A) (A, error), opts ...Option) *WindowedTable[K, A] {
	s := newSettings(opts, windowAggregates)
	s.needFunction(init == nil || add == nil)
	agg := processors.Aggregating(init, add, nil, nil)
	return &WindowedTable[K, A]{aggregateWindows(g.g, g.windows, g.onClose, agg, aggregatePrefix, inferred[V, A](g.g.value), s)}
}

// emit says when results are sent.
func (b *Builder) emit(onClose bool) processors.Emit {
	return processors.Emit{OnClose: onClose, IntervalMs: b.opts.emitEvery.Milliseconds()}
}

func aggregateWindows[K, V, A any](
	g *grouped[K, V], w Windows, onClose bool, agg processors.Aggregation[K, V, A], prefix string, value serde.Serde[A], s *settings,
) *table[Window[K], A] {
	b := g.in.b
	m := b.windowStore(s, prefix, w.windowing(onClose))
	o := &operation{settings: s, b: b, name: b.graph.NameOr(s.userName, prefix)}
	key, value := keySerde(s, g.key), valueSerde(s, value)
	o.needStoreSerdes(needSerdes(key, value))
	store := kept(b, processors.Store[K, A]{Name: m.spec.Name, Key: key, Value: value})
	proc := newWindowAggregate(agg, w, b.emit(onClose), store)
	grace := logical.WindowGrace{Ms: w.grace.Milliseconds(), Never: w.kind == unlimited}
	return addWindowed(o, g, m, proc, grace, key, timeWindowed(key, w), value)
}

func newWindowAggregate[K, V, A any](
	agg processors.Aggregation[K, V, A], w Windows, e processors.Emit, store processors.Store[K, A],
) processors.Table[Window[K], A] {
	if w.kind == sliding {
		return processors.NewSlidingAggregate(agg, w.slidingWindows(), e, store)
	}
	return processors.NewWindowAggregate(agg, w.timeWindows(), e, store)
}

// timeWindowed is the serde of keys in time windows, if that of the key is known.
func timeWindowed[K any](key serde.Serde[K], w Windows) serde.Serde[Window[K]] {
	if key == nil {
		return nil
	}
	if w.kind == unlimited {
		return processors.TimeWindowedSerde(key, 0)
	}
	return processors.TimeWindowedSerde(key, w.sizeMs())
}

// addWindowed adds a windowed aggregation to the graph.
func addWindowed[K, V, A any](
	o *operation, g *grouped[K, V], m materialized, proc processors.Table[Window[K], A], grace logical.WindowGrace,
	key serde.Serde[K], windowed serde.Serde[Window[K]], value serde.Serde[A],
) *table[Window[K], A] {
	parent, sources := g.repartitioned(m)
	node := logical.NewNode(o.name, &logical.Processor{Supplier: proc, Stores: []*state.Spec{m.spec}})
	node.Versioned, node.Grace = logical.Unversioned, &grace
	o.b.report(o.name, o.settings)
	o.b.graph.Add(node, parent)
	return &table[Window[K], A]{
		b: o.b, node: node, key: windowed, value: value, sources: sources, proc: proc, spec: m.spec, windows: windowsOf[K](),
	}
}
