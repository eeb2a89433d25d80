package topology

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/tributary-io/tributary/internal/callsite"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// nodeDecls are the nodes that the Processor API declares one by one, in that order.
type nodeDecls struct {
	writes []func(*plan.Builder)
	sends  map[string]nodeTypes // what each node sends
	// internal are the topics of AddRepartitionTopic, by the names that sources and sinks have for them.
	internal map[string]bool
}

// nodeTypes are the types of records that a node sends.
type nodeTypes struct{ key, value reflect.Type }

func (t nodeTypes) String() string { return fmt.Sprintf("%v and %v", t.key, t.value) }

func typesOf[K, V any]() nodeTypes { return nodeTypes{reflect.TypeFor[K](), reflect.TypeFor[V]()} }

func (n *nodeDecls) write(f func(*plan.Builder)) {
	position := callsite.Declared()
	n.writes = append(n.writes, func(pb *plan.Builder) { pb.At(position, func() { f(pb) }) })
}

// declareSends notes what a new node sends.
func (n *nodeDecls) declareSends(name string, t nodeTypes) {
	if n.sends == nil {
		n.sends = make(map[string]nodeTypes)
	}
	n.sends[name] = t
}

// checkTakes checks that the parents send what a node takes.
func (b *Builder) checkTakes(node string, parents []string, takes nodeTypes) {
	for _, p := range parents {
		if sends, ok := b.nodes.sends[p]; ok && sends != takes {
			b.nodes.write(func(pb *plan.Builder) {
				pb.Problem(plan.InvalidArgument, node, "the node takes %v, but its parent %s sends %v", takes, p, sends)
			})
		}
	}
}

// writeProblems passes on problems in the order of the declarations.
func (b *Builder) writeProblems(node string, s *settings) {
	problems := slices.Clone(s.problems)
	for i := range problems {
		problems[i].Node = node
	}
	b.nodes.write(func(pb *plan.Builder) { pb.AddProblems(problems...) })
}

// AddSource adds a source of the Processor API: a node with a name of your choice that reads topics. Options: Timestamps, Reset, AdvanceAfter, WaitFor.
func (b *Builder) AddSource[K, V any](name string, topics []string, key serde.Serde[K], value serde.Serde[V], opts ...Option) {
	addSource(b, plan.Source{Name: name, Topics: topics}, key, value, opts)
}

// AddSourcePattern adds a source that reads all topics whose whole name matches a regular expression.
func (b *Builder) AddSourcePattern[K, V any](name, pattern string, key serde.Serde[K], value serde.Serde[V], opts ...Option) {
	addSource(b, plan.Source{Name: name, Pattern: pattern}, key, value, opts)
}

func addSource[K, V any](b *Builder, source plan.Source, key serde.Serde[K], value serde.Serde[V], opts []Option) {
	s := newSettings(opts, optTimestamps|optReset|optIdle)
	checkSource(s, source.Topics, source.Pattern, key, value)
	source.Reset, source.Idle = s.reset, s.idle
	source.Supplier = processors.TopicSource[K, V]{Key: key, Value: value, Extractor: extractor[K, V](b, s), WallClock: s.wallClock()}
	b.writeProblems(source.Name, s)
	b.nodes.declareSends(source.Name, typesOf[K, V]())
	if len(source.Topics) == 0 && source.Pattern == "" {
		return // reported
	}
	b.nodes.write(func(pb *plan.Builder) { pb.AddSource(source) })
}

// AddProcessor adds a processor below its parents, which must send what it takes. Options: Provide.
func (b *Builder) AddProcessor[K, V, K2, V2 any](name string, newProcessor func() processors.Processor[K, V, K2, V2], parents []string, opts ...Option) {
	o := &operation{settings: newSettings(opts, optProvide), b: b, name: name}
	if newProcessor == nil {
		o.bad(plan.InvalidArgument, "the function that makes the processor is nil")
	}
	stores := o.provided()
	b.writeProblems(name, o.settings)
	b.checkTakes(name, parents, typesOf[K, V]())
	b.nodes.declareSends(name, typesOf[K2, V2]())
	b.nodes.write(func(pb *plan.Builder) {
		pb.AddProcessor(name, processors.Process(newProcessor), parents...)
		for _, spec := range stores {
			pb.AddStore(spec, name)
		}
	})
}

// AddSink adds a node that writes what its parents send to a topic. Options: PartitionBy, Multicast.
func (b *Builder) AddSink[K, V any](name, topic string, key serde.Serde[K], value serde.Serde[V], parents []string, opts ...Option) {
	addSink(b, name, processors.TopicSink[K, V]{Topic: topic, Key: key, Value: value}, parents, opts)
}

// AddDynamicSink adds a node that writes each record to the topic that choose names.
func (b *Builder) AddDynamicSink[K, V any](
	name string, choose func(*processors.Record[K, V]) (string, error), key serde.Serde[K], value serde.Serde[V],
	parents []string, opts ...Option,
) {
	if choose == nil {
		b.nodes.write(func(pb *plan.Builder) { pb.Problem(plan.InvalidArgument, name, "the function is nil") })
		return
	}
	addSink(b, name, processors.TopicSink[K, V]{TopicOf: choose, Key: key, Value: value}, parents, opts)
}

func addSink[K, V any](b *Builder, name string, sink processors.TopicSink[K, V], parents []string, opts []Option) {
	s := newSettings(opts, optPartitioner|optMulticast)
	partition := givenPartitioning[K, V](s)
	sink.Partitioner, sink.Multicast = partition.one, partition.many
	if sink.Key == nil || sink.Value == nil {
		s.bad(plan.InvalidArgument, "a serde is nil")
	}
	b.writeProblems(name, s)
	b.checkTakes(name, parents, typesOf[K, V]())
	b.nodes.write(func(pb *plan.Builder) {
		if sink.TopicOf != nil {
			pb.AddDynamicSink(name, sink, parents...)
			return
		}
		to := sink
		if b.nodes.internal[sink.Topic] {
			to.Topic = b.full(sink.Topic)
		}
		pb.AddSink(name, sink.Topic, to, parents...)
	})
}

// AddRepartitionTopic declares a topic between parts of the application, for AddSink and AddSource to name: in full it is called
// <application id>-<name>. The engine creates it, with as many partitions as the topics that it is co-partitioned with, else as the widest
// input of what writes to it, and deletes what has been processed. Options: Partitions.
func (b *Builder) AddRepartitionTopic(name string, opts ...Option) {
	s := newSettings(opts, optPartitions)
	if s.has(optPartitions) && s.partitions <= 0 {
		s.bad(plan.InvalidArgument, "option Partitions: a topic can't have %d partitions", s.partitions)
	}
	if err := plan.CheckName(name); err != nil {
		s.bad(plan.InvalidArgument, "not a topic: %v", err)
	}
	b.writeProblems(name, s)
	if b.nodes.internal == nil {
		b.nodes.internal = make(map[string]bool)
	}
	b.nodes.internal[name] = true
	b.nodes.write(func(pb *plan.Builder) { pb.AddInternalTopic(name, plan.RepartitionTopic, int32(s.partitions)) })
}

// CopartitionSources demands that the topics of sources have equally many partitions, as processors need that look for one key in all of
// them. It is checked at the start.
func (b *Builder) CopartitionSources(sources ...string) {
	b.nodes.write(func(pb *plan.Builder) { pb.Copartition(sources...) })
}

// AddStore adds a store of the Processor API and connects processors to it.
func (b *Builder) AddStore(s StoreDecl, processors ...string) {
	if spec := b.declare(s); spec != nil {
		b.nodes.write(func(pb *plan.Builder) { pb.AddStore(spec, processors...) })
	}
}

// ConnectStores gives a processor of the Processor API access to stores.
func (b *Builder) ConnectStores(processor string, stores ...string) {
	b.nodes.write(func(pb *plan.Builder) { pb.Connect(processor, stores...) })
}

// AddGlobalProcessorStore is AddGlobalStore with names for the source and the processor. Options: Timestamps.
func (b *Builder) AddGlobalProcessorStore[K, V, K2, V2 any](
	store StoreDecl, source, topic string, key serde.Serde[K], value serde.Serde[V],
	name string, newProcessor func() processors.Processor[K, V, K2, V2], opts ...Option,
) {
	read, update, spec := storeFiller(b, store, source, topic, key, value, name, newProcessor, opts)
	if spec == nil {
		return
	}
	b.nodes.write(func(pb *plan.Builder) {
		pb.AddGlobalStore(plan.GlobalStore{Spec: spec, Topic: topic, Source: source, Processor: name, Read: read, Update: update})
	})
}

// AddReadOnlyStore adds a store that is filled from a topic, which is also what it is restored from; other processors that connect to
// it should only read. Options: Timestamps.
func (b *Builder) AddReadOnlyStore[K, V, K2, V2 any](
	store StoreDecl, source, topic string, key serde.Serde[K], value serde.Serde[V],
	name string, newProcessor func() processors.Processor[K, V, K2, V2], opts ...Option,
) {
	read, update, spec := storeFiller(b, store, source, topic, key, value, name, newProcessor, opts)
	if spec == nil {
		return
	}
	b.nodes.write(func(pb *plan.Builder) {
		pb.AddSource(plan.Source{Name: source, Topics: []string{topic}, Reset: Earliest, Supplier: read})
		pb.AddProcessor(name, update, source)
		pb.AddStore(spec, name)
		pb.UseAsChangelog(spec.Name, topic)
	})
}

// storeFiller makes the two nodes that fill a store from a topic.
func storeFiller[K, V, K2, V2 any](
	b *Builder, store StoreDecl, source, topic string, key serde.Serde[K], value serde.Serde[V],
	name string, newProcessor func() processors.Processor[K, V, K2, V2], opts []Option,
) (processors.SourceSupplier, processors.Supplier, *state.Spec) {
	s := newSettings(opts, optTimestamps)
	checkSource(s, []string{topic}, "", key, value)
	if newProcessor == nil {
		s.bad(plan.InvalidArgument, "the function that makes the processor is nil")
	}
	read := processors.TopicSource[K, V]{Key: key, Value: value, Extractor: extractor[K, V](b, s), WallClock: s.wallClock(), Table: true}
	b.writeProblems(name, s)
	b.nodes.declareSends(source, typesOf[K, V]())
	b.nodes.declareSends(name, typesOf[K2, V2]())
	return read, processors.Process(newProcessor), b.declare(store)
}
