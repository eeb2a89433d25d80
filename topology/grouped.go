package topology

import (
	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// GroupedStream is a stream whose records are grouped by key, to be aggregated.
type GroupedStream[K, V any] struct{ g *grouped[K, V] }

// grouped is the inside of GroupedStream.
type grouped[K, V any] struct {
	in          *stream[K, V]
	key         serde.Serde[K]
	value       serde.Serde[V]
	topicName   string        // given by the user
	repartition *logical.Node // shared by aggregations if the topic is named
}

// GroupByKey groups records by the key that they have.
//
// The option Name names the repartition topic if the key was changed before.
func (s *Stream[K, V]) GroupByKey[_ onUse](opts ...Option) *GroupedStream[K, V] {
	return &GroupedStream[K, V]{groupByKey(s.s, opts)}
}

func groupByKey[K, V any](s *stream[K, V], opts []Option) *grouped[K, V] {
	o := newSettings(opts, optName|serdeOptions)
	g := &grouped[K, V]{in: s, key: keySerde(o, s.key), value: valueSerde(o, s.value), topicName: o.userName}
	s.b.report(s.node.Name+" GroupByKey", o)
	return g
}

// GroupBy gives each record a new key and groups by that. Records go through a repartition topic, which the option Name names.
func (s *Stream[K, V]) GroupBy[K2 any](f func(K, V) K2, opts ...Option) *GroupedStream[K2, V] {
	return s.TryGroupBy(lift2(f), opts...)
}

// TryGroupBy is GroupBy with a function that may fail.
func (s *Stream[K, V]) TryGroupBy[K2 any](f func(K, V) (K2, error), opts ...Option) *GroupedStream[K2, V] {
	return &GroupedStream[K2, V]{groupBy(s.s, f, opts)}
}

func groupBy[K, V, K2 any](s *stream[K, V], f func(K, V) (K2, error), opts []Option) *grouped[K2, V] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-KEY-SELECT-", f == nil)
	in := rekey[K, V, K2](s, o, processors.SelectKey(f), s.value)
	return &grouped[K2, V]{in: in, key: in.key, value: in.value, topicName: o.userName}
}

// Count counts the records of each key. Records with a null key or value are left out and counted as dropped.
func (g *GroupedStream[K, V]) Count[_ onUse](opts ...Option) *Table[K, int64] {
	b := g.g.in.b
	o := newSettings(opts, aggregateOptions)
	if o.has(anyMaterialized) && !namesStore(o) {
		b.graph.NewStoreName(aggregatePrefix) // Kafka Streams takes a number here, too
	}
	return &Table[K, int64]{aggregateGrouped(g.g, processors.Counting[K, V](), aggregatePrefix, serde.Int64, o)}
}

// Reduce combines the values of each key: f gets the result so far and the next value. The first value is the first result.
func (g *GroupedStream[K, V]) Reduce[_ onUse](f func(sum, value V) V, opts ...Option) *Table[K, V] {
	return g.TryReduce(lift2(f), opts...)
}

// TryReduce is Reduce with a function that may fail.
func (g *GroupedStream[K, V]) TryReduce[_ onUse](f func(sum, value V) (V, error), opts ...Option) *Table[K, V] {
	o := newSettings(opts, aggregateOptions)
	o.needFunction(f == nil)
	return &Table[K, V]{aggregateGrouped(g.g, processors.Reducing[K](f, nil), reducePrefix, g.g.value, o)}
}

// Aggregate starts each key with what init gives and adds one value after the other.
func (g *GroupedStream[K, V]) Aggregate[A any](init func() A, add func(key K, value V, agg A) A, opts ...Option) *Table[K, A] {
	return g.TryAggregate(lift0(init), lift3(add), opts...)
}

// TryAggregate is Aggregate with functions that may fail.
func (g *GroupedStream[K, V]) TryAggregate[A any](init func() (A, error), add func(key K, value V, agg A) (A, error), opts ...Option) *Table[K, A] {
	o := newSettings(opts, aggregateOptions)
	o.needFunction(init == nil || add == nil)
	agg := processors.Aggregating(init, add, nil, nil)
	return &Table[K, A]{aggregateGrouped(g.g, agg, aggregatePrefix, inferred[V, A](g.g.value), o)}
}

const (
	aggregatePrefix  = "KSTREAM-AGGREGATE-"
	reducePrefix     = "KSTREAM-REDUCE-"
	aggregateOptions = optName | serdeOptions | keyValueOptions
	windowAggregates = optName | serdeOptions | windowOptions
)

// namesStore tells whether the options name the store.
func namesStore(s *settings) bool {
	return s.has(optStore) || s.has(optStoreAs) && s.storeAs.Name != ""
}

func (s *settings) needFunction(missing bool) {
	if missing {
		s.bad(plan.InvalidArgument, "the function is nil")
	}
}

// aggregateGrouped keeps one row for each key.
func aggregateGrouped[K, V, A any](g *grouped[K, V], agg processors.Aggregation[K, V, A], prefix string, value serde.Serde[A], s *settings) *table[K, A] {
	b := g.in.b
	m := b.keyValueStore(s, prefix, true)
	o := &operation{settings: s, b: b, name: b.graph.NameOr(s.userName, prefix)}
	key, value := keySerde(s, g.key), valueSerde(s, value)
	o.needStoreSerdes(needSerdes(key, value))
	proc := processors.NewAggregate(agg, kept(b, processors.Store[K, A]{Name: m.spec.Name, Key: key, Value: value}))
	parent, sources := g.repartitioned(m)
	node := logical.NewNode(o.name, &logical.Processor{Supplier: proc, Stores: []*state.Spec{m.spec}})
	node.Versioned = logical.VersionedIf(m.spec.Kind == state.Versioned)
	b.report(o.name, s)
	b.graph.Add(node, parent)
	return &table[K, A]{b: b, node: node, key: key, value: value, sources: sources, proc: proc, spec: m.spec, windows: g.in.windows}
}

// needStoreSerdes reports what a store can't be without.
func (o *operation) needStoreSerdes(err error) {
	if err != nil {
		o.unknownSerdes("rows can't be stored", err)
	}
}

// repartitioned is the node behind which all records of a key are together, with its sources. m is the store of the aggregation,
// which the topic is named after if the user has not named that.
func (g *grouped[K, V]) repartitioned(m materialized) (*logical.Node, []string) {
	if !g.in.rekeyed {
		return g.in.node, g.in.sources
	}
	base := g.topicName
	if base == "" {
		base = m.spec.Name
	}
	b := g.in.b
	node := b.graph.NewRepartition(base, g.topicName != "" || m.queryable, throughTopic(b, g.key, g.value, partitioning[K, V]{}))
	if g.repartition == nil || g.topicName == "" {
		g.repartition = node
	}
	b.graph.Add(g.repartition, g.in.node)
	return g.repartition, []string{g.repartition.Name}
}
