package topology

import (
	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// JoinForeign joins each row with the row of another table whose key it names (KIP-213). A row whose foreign key is the nil of a
// nullable KR, or names no row, is left out. The tables may have differing numbers of partitions.
//
// Rows and answers travel through two internal topics, which the option Name names; Store names the result's store.
func (t *Table[K, V]) JoinForeign[KR, R, O any](other *Table[KR, R], key func(K, V) KR, f func(V, R) O, opts ...Option) *Table[K, O] {
	return t.TryJoinForeign(other, lift2(key), lift2(f), opts...)
}

// TryJoinForeign is JoinForeign with functions that may fail.
func (t *Table[K, V]) TryJoinForeign[KR, R, O any](
	other *Table[KR, R], key func(K, V) (KR, error), f func(V, R) (O, error), opts ...Option,
) *Table[K, O] {
	return &Table[K, O]{joinForeign(t.t, inner(other), key, joinBoth(ofSides[K](f)), false, opts)}
}

// LeftJoinForeign is JoinForeign with a row also for each row of t that has no match.
func (t *Table[K, V]) LeftJoinForeign[KR, R, O any](other *Table[KR, R], key func(K, V) KR, f func(V, *R) O, opts ...Option) *Table[K, O] {
	return t.TryLeftJoinForeign(other, lift2(key), lift2(f), opts...)
}

// TryLeftJoinForeign is LeftJoinForeign with functions that may fail.
func (t *Table[K, V]) TryLeftJoinForeign[KR, R, O any](
	other *Table[KR, R], key func(K, V) (KR, error), f func(V, *R) (O, error), opts ...Option,
) *Table[K, O] {
	return &Table[K, O]{joinForeign(t.t, inner(other), key, joinLeft(ofSides[K](f)), true, opts)}
}

// foreignNames are the names of the parts of a join by foreign key, in the order of their numbers.
type foreignNames struct {
	subscriptionTopic, send, subscriptionSink, subscriptionSource, subscriptionStore       string
	receive, answer, foreign, responseTopic, responseSink, responseSource, resolve, result string
}

func (b *Builder) foreignNames(given string) foreignNames {
	const fk = "KTABLE-FK-JOIN-"
	name := func(suffix, prefix string) string { return b.graph.SuffixOr(given, suffix, prefix) }
	return foreignNames{
		subscriptionTopic:  name("-subscription-registration", fk+"SUBSCRIPTION-REGISTRATION-") + "-topic",
		send:               name("-subscription-registration-processor", fk+"SUBSCRIPTION-REGISTRATION-"),
		subscriptionSink:   name("-subscription-registration-sink", "KTABLE-SINK-"),
		subscriptionSource: name("-subscription-registration-source", "KTABLE-SOURCE-"),
		subscriptionStore:  name("-subscription-store", fk+"SUBSCRIPTION-STATE-STORE-"),
		receive:            name("-subscription-receive", fk+"SUBSCRIPTION-PROCESSOR-"),
		answer:             name("-subscription-join-foreign", fk+"SUBSCRIPTION-PROCESSOR-"),
		foreign:            name("-foreign-join-subscription", fk+"SUBSCRIPTION-PROCESSOR-"),
		responseTopic:      name("-subscription-response", fk+"SUBSCRIPTION-RESPONSE-") + "-topic",
		responseSink:       name("-subscription-response-sink", "KTABLE-SINK-"),
		responseSource:     name("-subscription-response-source", "KTABLE-SOURCE-"),
		resolve:            name("-subscription-response-resolver", fk+"SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"),
		result:             name("-result", foreignOutputPrefix),
	}
}

const foreignOutputPrefix = "KTABLE-FK-JOIN-OUTPUT-"

func joinForeign[K, V, KR, R, O any](
	t *table[K, V], other *table[KR, R], key func(K, V) (KR, error), join processors.Joiner[K, V, R, O], left bool, opts []Option,
) *table[K, O] {
	b := t.b
	o := &operation{settings: newSettings(opts, statelessOptions|keyValueOptions), b: b}
	o.needFunction(key == nil || join == nil)
	out := &table[K, O]{b: b, key: keySerde(o.settings, t.key), value: valueSerde(o.settings, inferred[V, O](t.value)), windows: t.windows}
	given := o.userName
	names := b.foreignNames(given)
	o.name = names.result
	m := b.keyValueStore(o.settings, foreignOutputPrefix, true)
	out.spec = m.spec
	if !o.usable(other) {
		return orphanTable(o, out)
	}
	if given == "" {
		b.graph.AddImplicit(logical.Implicit{Store: names.subscriptionStore, Changelog: names.subscriptionStore + "-changelog"})
		b.graph.AddImplicit(logical.Implicit{Repartition: names.subscriptionTopic})
		b.graph.AddImplicit(logical.Implicit{Repartition: names.responseTopic})
	}
	o.needStoreSerdes(needSerdes(t.key, t.value))
	o.needStoreSerdes(needSerdes(other.key, other.value))
	o.needStoreSerdes(needSerdes(out.key, out.value))
	other.proc.EnableOldValues(true)
	t.proc.EnableOldValues(true)
	subscriptions := &state.Spec{
		Name: names.subscriptionStore, Kind: state.TimestampedKeyValue, InMemory: b.opts.inMemory, Logged: true, LogHeaders: true,
	}
	store := kept(b, processors.Store[K, O]{Name: m.spec.Name, Key: out.key, Value: out.value})
	f := foreignJoin[K, V, KR, R, O]{
		names: names, left: t, right: other, out: out, store: subscriptions, queryable: m.queryable,
		fk: &processors.ForeignKeyJoin[K, V, KR, R, O]{
			Left: left, LeftTable: t.proc, RightTable: other.proc, ForeignKey: key, Join: join,
			LeftKey: t.key, LeftValue: t.value, RightKey: other.key, RightValue: other.value,
			SubscriptionTopic: b.full(names.subscriptionTopic), ResponseTopic: b.full(names.responseTopic),
			SubscriptionStore: subscriptions.Name,
			Store:             &store,
		},
	}
	b.report(o.name, o.settings)
	f.add()
	return out
}

// foreignJoin puts the nodes of a join by foreign key into the graph.
type foreignJoin[K, V, KR, R, O any] struct {
	names     foreignNames
	left      *table[K, V]
	right     *table[KR, R]
	out       *table[K, O]
	fk        *processors.ForeignKeyJoin[K, V, KR, R, O]
	store     *state.Spec
	queryable bool

	leftVersioned, rightVersioned bool
}

func (f *foreignJoin[K, V, KR, R, O]) add() {
	n, b := f.names, f.out.b
	b.graph.AddInternalTopic(n.subscriptionTopic, plan.RepartitionTopic)
	b.graph.AddInternalTopic(n.responseTopic, plan.RepartitionTopic)

	send := logical.NewNode(n.send, &logical.Processor{Supplier: f.fk.Send()})
	send.UseVersioned = func(string) { f.useVersioned(&f.leftVersioned) }
	b.graph.Add(send, f.left.node)
	subscribed := f.throughSubscriptions(send)
	b.graph.Copartition(union(f.right.sources, []string{n.subscriptionSource}))

	receive := logical.NewNode(n.receive, &logical.Processor{Supplier: f.fk.Receive(), Stores: specs(f.store)})
	b.graph.Add(receive, subscribed)
	answer := logical.NewNode(n.answer, &logical.Processor{
		Supplier: f.fk.SubscriptionJoin(), Connect: f.right.proc.View().StoreNames(),
	})
	b.graph.Add(answer, receive)
	foreign := logical.NewNode(n.foreign, &logical.Processor{Supplier: f.fk.ForeignJoin(), Stores: specs(f.store)})
	foreign.UseVersioned = func(string) { f.useVersioned(&f.rightVersioned) }
	b.graph.Add(foreign, f.right.node)

	responded := f.throughResponses(answer, foreign)
	f.out.sources = union(f.left.sources, []string{n.responseSource})
	b.graph.Copartition(f.out.sources)

	resolve := logical.NewNode(n.resolve, &logical.Processor{
		Supplier: f.fk.Resolve(), Connect: f.left.proc.View().StoreNames(),
	})
	b.graph.Add(resolve, responded)
	f.addResult(resolve)
}

func (f *foreignJoin[K, V, KR, R, O]) useVersioned(side *bool) {
	*side = true
	f.fk.UseVersionedSemantics(f.leftVersioned, f.rightVersioned)
}

// throughSubscriptions sends subscriptions to where the right rows are.
func (f *foreignJoin[K, V, KR, R, O]) throughSubscriptions(send *logical.Node) *logical.Node {
	sink := f.fk.SubscriptionSink()
	source := processors.TopicSource[KR, processors.Subscription[K]]{
		Key: sink.Key, Value: sink.Value, Table: true, Extractor: extractor[KR, processors.Subscription[K]](f.out.b, &settings{}),
	}
	return f.throughTopic(f.names.subscriptionTopic, f.names.subscriptionSink, sink, f.names.subscriptionSource, source, send)
}

// throughResponses sends answers back to where the left rows are.
func (f *foreignJoin[K, V, KR, R, O]) throughResponses(parents ...*logical.Node) *logical.Node {
	values := processors.ResponseSerde(f.right.value)
	sink := processors.TopicSink[K, processors.Response[R]]{
		Topic: f.fk.ResponseTopic, Key: f.left.key, Value: values, Partitioner: processors.ResponsePartitioner[K, R],
	}
	source := processors.TopicSource[K, processors.Response[R]]{
		Key: f.left.key, Value: values, Table: true, Extractor: extractor[K, processors.Response[R]](f.out.b, &settings{}),
	}
	return f.throughTopic(f.names.responseTopic, f.names.responseSink, sink, f.names.responseSource, source, parents...)
}

func (f *foreignJoin[K, V, KR, R, O]) throughTopic(
	topic, sinkName string, sink processors.Supplier, sourceName string, source processors.SourceSupplier, parents ...*logical.Node,
) *logical.Node {
	g := f.out.b.graph
	sinkNode := g.Add(logical.NewNode(sinkName, &logical.Sink{Topic: topic, Supplier: sink}), parents...)
	return g.Add(logical.NewNode(sourceName, &logical.Source{Topics: []string{topic}, Supplier: source}), sinkNode)
}

// addResult keeps the joined rows, if anything needs them.
func (f *foreignJoin[K, V, KR, R, O]) addResult(parent *logical.Node) {
	proc := processors.NewTableSource(*f.fk.Store, f.queryable)
	f.out.proc = proc
	f.out.node = logical.NewNode(f.names.result, &logical.Processor{
		Supplier: proc, Stores: specs(f.out.spec), Materialized: proc.Materialized,
	})
	f.out.node.Versioned = logical.VersionedIf(f.out.spec.Kind == state.Versioned)
	f.out.b.graph.Add(f.out.node, parent)
}
