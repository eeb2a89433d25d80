package topology

import (
	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// GroupedTable is a table whose rows are grouped by a new key, to be aggregated: a row that changes is taken out of its old group and
// put into its new one.
type GroupedTable[K, V any] struct{ g *groupedTable[K, V] }

type groupedTable[K, V any] struct {
	b           *Builder
	node        *logical.Node
	key         serde.Serde[K]
	value       serde.Serde[V]
	topicName   string // given by the user
	repartition *logical.Node
	through     *string // a full name of a topic that its rows go through
}

// GroupBy gives each row a new key and value, for an aggregation over the table. Rows go through a repartition topic, which the option
// Name names.
func (t *Table[K, V]) GroupBy[K2, V2 any](f func(K, V) (K2, V2), opts ...Option) *GroupedTable[K2, V2] {
	return t.TryGroupBy(liftMap(f), opts...)
}

// TryGroupBy is GroupBy with a function that may fail.
func (t *Table[K, V]) TryGroupBy[K2, V2 any](f func(K, V) (K2, V2, error), opts ...Option) *GroupedTable[K2, V2] {
	return &GroupedTable[K2, V2]{groupTable(t.t, f, opts)}
}

func groupTable[K, V, K2, V2 any](t *table[K, V], f func(K, V) (K2, V2, error), opts []Option) *groupedTable[K2, V2] {
	o := t.b.operator(opts, statelessOptions, "KTABLE-SELECT-", f == nil)
	g := &groupedTable[K2, V2]{
		b: t.b, topicName: o.userName,
		key: keySerde(o.settings, inferred[K, K2](t.key)), value: valueSerde(o.settings, inferred[V, V2](t.value)),
	}
	proc := &processors.TableRepartitionMap[K, V, K2, V2]{Map: f, Key: g.key}
	g.through = &proc.Topic
	g.node = logical.NewNode(o.name, &logical.Processor{Supplier: proc})
	g.node.UseVersioned = func(string) { proc.UseVersionedSemantics(true) }
	t.b.report(o.name, o.settings)
	t.b.graph.Add(g.node, t.node)
	t.proc.EnableOldValues(true)
	return g
}

// Count counts the rows of each group.
func (g *GroupedTable[K, V]) Count[_ onUse](opts ...Option) *Table[K, int64] {
	o := newSettings(opts, aggregateOptions)
	return &Table[K, int64]{aggregateTable(g.g, processors.Counting[K, V](), tableAggregatePrefix, serde.Int64, o)}
}

// Reduce combines the values of each group: add puts a row in, sub takes one out again.
func (g *GroupedTable[K, V]) Reduce[_ onUse](add, sub func(sum, value V) V, opts ...Option) *Table[K, V] {
	return g.TryReduce(lift2(add), lift2(sub), opts...)
}

// TryReduce is Reduce with functions that may fail.
func (g *GroupedTable[K, V]) TryReduce[_ onUse](add, sub func(sum, value V) (V, error), opts ...Option) *Table[K, V] {
	o := newSettings(opts, aggregateOptions)
	o.needFunction(add == nil || sub == nil)
	return &Table[K, V]{aggregateTable(g.g, processors.Reducing[K](add, sub), "KTABLE-REDUCE-", g.g.value, o)}
}

// Aggregate starts each group with what init gives; add puts a row in, sub takes one out again.
func (g *GroupedTable[K, V]) Aggregate[A any](init func() A, add, sub func(key K, value V, agg A) A, opts ...Option) *Table[K, A] {
	return g.TryAggregate(lift0(init), lift3(add), lift3(sub), opts...)
}

// TryAggregate is Aggregate with functions that may fail.
func (g *GroupedTable[K, V]) TryAggregate[A any](init func() (A, error), add, sub func(key K, value V, agg A) (A, error), opts ...Option) *Table[K, A] {
	o := newSettings(opts, aggregateOptions)
	o.needFunction(init == nil || add == nil || sub == nil)
	agg := processors.Aggregating(init, add, sub, nil)
	return &Table[K, A]{aggregateTable(g.g, agg, tableAggregatePrefix, inferred[V, A](g.g.value), o)}
}

const tableAggregatePrefix = "KTABLE-AGGREGATE-"

func aggregateTable[K, V, A any](g *groupedTable[K, V], agg processors.Aggregation[K, V, A], prefix string, value serde.Serde[A], s *settings) *table[K, A] {
	b := g.b
	m := b.keyValueStore(s, tableAggregatePrefix, true)
	sinkName := b.graph.SuffixOr(s.userName, "-sink", "KSTREAM-SINK-")
	sourceName := b.graph.SuffixOr(s.userName, "-source", "KSTREAM-SOURCE-")
	o := &operation{settings: s, b: b, name: b.graph.NameOr(s.userName, prefix)}
	key, value := keySerde(s, g.key), valueSerde(s, value)
	o.needStoreSerdes(needSerdes(key, value))
	g.addRepartition(sinkName, sourceName, m.spec.Name)
	proc := processors.NewTableAggregate(agg, kept(b, processors.Store[K, A]{Name: m.spec.Name, Key: key, Value: value}))
	node := logical.NewNode(o.name, &logical.Processor{Supplier: proc, Stores: []*state.Spec{m.spec}})
	node.Versioned = logical.VersionedIf(m.spec.Kind == state.Versioned)
	b.report(o.name, s)
	b.graph.Add(node, g.repartition)
	return &table[K, A]{b: b, node: node, key: key, value: value, sources: []string{g.repartition.Name}, proc: proc, spec: m.spec}
}

// addRepartition sends rows through a topic: the one that the user has named, or one for each aggregation, named after its store.
func (g *groupedTable[K, V]) addRepartition(sinkName, sourceName, store string) {
	if g.repartition == nil || g.topicName == "" {
		topic := g.topicName
		if topic == "" {
			topic = store
		}
		topic += "-repartition"
		*g.through = g.b.full(topic)
		g.repartition = logical.NewNode(sourceName, &logical.TableRepartition{
			SinkName: sinkName, Topic: topic, Typed: changesThroughTopic(g.b, g.key, g.value),
		})
	}
	g.b.graph.Add(g.repartition, g.node)
}

// changesThroughTopic is throughTopic for a table's changes.
func changesThroughTopic[K, V any](b *Builder, key serde.Serde[K], value serde.Serde[V]) logical.RepartitionTyped {
	return logical.RepartitionTyped{
		Ends: func(topic string, coordinates bool) (processors.Supplier, processors.SourceSupplier, error) {
			if err := needSerdes(key, value); err != nil {
				return nil, nil, err
			}
			noteFormat(b, topic, key, value)
			changes := processors.ChangeSerde(value)
			return processors.TopicSink[K, processors.Change[V]]{Topic: topic, Key: key, Value: changes, Coordinates: coordinates},
				processors.TopicSource[K, processors.Change[V]]{Key: key, Value: changes, Table: true}, nil
		},
		FullName: b.full,
	}
}
