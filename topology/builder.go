package topology

import (
	"reflect"
	"slices"
	"time"

	"github.com/tributary-io/tributary/internal/callsite"
	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// Builder collects the streams, tables and operators of a topology. What is wrong is kept for Build, so that calls can be chained
// without looking at errors, and all of them are told at once.
//
// A Builder and what is made from it belong to one goroutine, and to one call of Build.
type Builder struct {
	app   string
	opts  builderOptions
	graph *logical.Graph
	nodes nodeDecls // of the Processor API
	built bool
	// position is where the user made it: of problems of the topology as a whole.
	position string
	// formats are how stores, by name, and internal topics, by full name, are written.
	formats map[string]Format
	// renderers show what stores have, given the topics that their serdes are bound to.
	renderers map[string]func(topic string) Renderer
}

// builderOptions are a topology's settings.
type builderOptions struct {
	logical.Options
	inMemory   bool
	onCommit   bool
	timestamps DefaultTimestamps
	emitEvery  time.Duration
}

// BuilderOption adjusts a whole topology.
type BuilderOption func(*Builder)

// NewBuilder starts a topology. The application id names the application's consumer group, its state directory and its internal
// topics.
func NewBuilder(applicationID string, opts ...BuilderOption) *Builder {
	b := &Builder{app: applicationID, graph: logical.NewGraph(), position: callsite.Declared()}
	for _, o := range opts {
		o(b)
	}
	return b
}

// StrictNames refuses generated names for stores, changelog and repartition topics and lake sinks (KIP-1111): such names shift when
// an operator is inserted before them, and what was kept under the old name is lost.
func StrictNames() BuilderOption { return func(b *Builder) { b.opts.StrictNames = true } }

// Optimization is a rewriting of the topology that Kafka Streams knows as topology.optimization.
type Optimization int

// The optimizations. They change the topology: switch them on or off only together with a reset of the application.
const (
	// ReuseSourceTopics restores tables from the topics that they are read from, instead of changelogs of their own.
	ReuseSourceTopics Optimization = 1 << iota
	// MergeRepartitions sends records once through a repartition topic that several operators below the same change of keys need.
	MergeRepartitions
	// SingleStoreSelfJoin stores a stream that is joined with itself once.
	SingleStoreSelfJoin
	// AllOptimizations is all of them.
	AllOptimizations = ReuseSourceTopics | MergeRepartitions | SingleStoreSelfJoin
)

// Optimize switches optimizations on.
func Optimize(which ...Optimization) BuilderOption {
	return func(b *Builder) {
		for _, o := range which {
			b.opts.ReuseSourceTopics = b.opts.ReuseSourceTopics || o&ReuseSourceTopics != 0
			b.opts.MergeRepartitions = b.opts.MergeRepartitions || o&MergeRepartitions != 0
			b.opts.SelfJoins = b.opts.SelfJoins || o&SingleStoreSelfJoin != 0
		}
	}
}

// InMemoryStores keeps the stores of operators in memory unless an option says otherwise.
func InMemoryStores() BuilderOption { return func(b *Builder) { b.opts.inMemory = true } }

// CoalesceUpdates makes EmitOnCommit the default of all operators that keep a table, as Kafka Streams does with its record cache.
func CoalesceUpdates() BuilderOption { return func(b *Builder) { b.opts.onCommit = true } }

// EmitEvery sets how often, in wall-clock time, results are looked for that wait for stream time: of windows that close, and of records
// without a match in left and outer joins of streams. The default is to look at each record, so that the same input always gives the
// same output at the same place; Kafka Streams looks once a second, which is less work where stream time moves slowly.
func EmitEvery(d time.Duration) BuilderOption { return func(b *Builder) { b.opts.emitEvery = d } }

// DefaultTimestamps finds the event time of a record in ms; see processors.TimestampExtractor for the arguments and the result.
type DefaultTimestamps func(raw *processors.RawRecord, partitionTime int64) (int64, error)

// TimestampsBy sets how sources without a Timestamps option find event times. Without it, a record's own timestamp is its event
// time, and a negative one is an error.
func TimestampsBy(f DefaultTimestamps) BuilderOption {
	return func(b *Builder) { b.opts.timestamps = f }
}

// Stream reads a topic as a stream of records. Null keys and values are errors unless K and V can hold them.
//
// The same topic can be read as a stream any number of times; it is read once.
func (b *Builder) Stream[K, V any](topic string, key serde.Serde[K], value serde.Serde[V], opts ...Option) *Stream[K, V] {
	return &Stream[K, V]{sourceStream(b, []string{topic}, "", key, value, opts)}
}

// Streams reads several topics as one stream.
func (b *Builder) Streams[K, V any](topics []string, key serde.Serde[K], value serde.Serde[V], opts ...Option) *Stream[K, V] {
	return &Stream[K, V]{sourceStream(b, topics, "", key, value, opts)}
}

// StreamPattern reads all topics whose whole name matches a regular expression, those that are created later included.
func (b *Builder) StreamPattern[K, V any](pattern string, key serde.Serde[K], value serde.Serde[V], opts ...Option) *Stream[K, V] {
	return &Stream[K, V]{sourceStream(b, nil, pattern, key, value, opts)}
}

// sourceOptions are what all sources take.
const sourceOptions = optName | optTimestamps | optReset | optIdle

func sourceStream[K, V any](b *Builder, topics []string, pattern string, key serde.Serde[K], value serde.Serde[V], opts []Option) *stream[K, V] {
	s := newSettings(opts, sourceOptions)
	name := b.graph.NameOr(s.userName, "KSTREAM-SOURCE-")
	checkSource(s, topics, pattern, key, value)
	source := &logical.Source{
		Topics: slices.Compact(slices.Sorted(slices.Values(topics))), Pattern: pattern, Reset: s.reset, Idle: s.idle,
		Supplier: processors.TopicSource[K, V]{Key: key, Value: value, Extractor: extractor[K, V](b, s), WallClock: s.wallClock()},
		Key:      reflect.TypeFor[K](), Value: reflect.TypeFor[V](),
	}
	b.report(name, s)
	node := b.graph.Add(logical.NewNode(name, source))
	return &stream[K, V]{b: b, node: node, key: key, value: value, sources: []string{name}}
}

// checkSource checks what every source needs. What a topic's name may be is checked at Build.
func checkSource[K, V any](s *settings, topics []string, pattern string, key serde.Serde[K], value serde.Serde[V]) {
	if len(topics) == 0 && pattern == "" {
		s.bad(plan.TopologyProblem, "no topic to read is named")
	}
	if key == nil {
		s.badSerde("the serde of the key is nil", plan.MissingSerde{What: "key", Type: reflect.TypeFor[K]()})
	} else {
		s.checkSerde("the serde of the key", serde.Check(key))
	}
	if value == nil {
		s.badSerde("the serde of the value is nil", plan.MissingSerde{What: "value", Type: reflect.TypeFor[V]()})
	} else {
		s.checkSerde("the serde of the value", serde.Check(value))
	}
}

// extractor is the source's own, else the topology's, else nil.
func extractor[K, V any](b *Builder, s *settings) processors.TimestampExtractor[K, V] {
	if s.wallClock() {
		return nil
	}
	if s.has(optTimestamps) {
		e, ok := s.timestamps.(processors.TimestampExtractor[K, V])
		if !ok || e == nil {
			s.bad(plan.InvalidArgument, "option Timestamps is nil or for other types: the source has %v and %v, this is a %T",
				reflect.TypeFor[K](), reflect.TypeFor[V](), s.timestamps)
		}
		return e
	}
	if f := b.opts.timestamps; f != nil {
		return func(_ *processors.Record[K, V], raw *processors.RawRecord, partitionTime int64) (int64, error) {
			return f(raw, partitionTime)
		}
	}
	return nil
}

// Table reads a topic as a table: the last value of each key is its row, a null value deletes it. The table keeps its rows in a
// store if a join, an old value or the option Store needs them.
func (b *Builder) Table[K, V any](topic string, key serde.Serde[K], value serde.Serde[V], opts ...Option) *Table[K, V] {
	s := newSettings(opts, sourceOptions|keyValueOptions)
	m := b.keyValueStore(s, topic+"-", true)
	sourceName, name, source := tableSource(b, s, topic, key, value)
	proc := processors.NewTableSource(kept(b, processors.Store[K, V]{Name: m.spec.Name, Key: key, Value: value}), m.queryable)
	node := logical.NewNode(name, &logical.TableSource{
		SourceName: sourceName, Topic: topic, Reset: s.reset, Idle: s.idle, Source: source, Table: proc, Store: m.spec,
	})
	node.Versioned = logical.VersionedIf(m.spec.Kind == state.Versioned)
	b.report(name, s)
	b.graph.Add(node)
	return &Table[K, V]{&table[K, V]{
		b: b, node: node, key: key, value: value, sources: []string{sourceName}, proc: proc, spec: m.spec,
	}}
}

// tableSource takes the names of a table's two nodes and makes the first of them.
func tableSource[K, V any](b *Builder, s *settings, topic string, key serde.Serde[K], value serde.Serde[V]) (sourceName, name string, source processors.SourceSupplier) {
	sourceName = b.graph.SuffixOr(s.userName, "-source", "KSTREAM-SOURCE-")
	name = b.graph.NameOr(s.userName, "KTABLE-SOURCE-")
	checkSource(s, []string{topic}, "", key, value)
	return sourceName, name, processors.TopicSource[K, V]{Key: key, Value: value, Extractor: extractor[K, V](b, s), WallClock: s.wallClock(), Table: true}
}

// GlobalTable reads a topic as a table that every instance holds in whole: a stream can be joined with it by any key, however the
// topic is partitioned.
func (b *Builder) GlobalTable[K, V any](topic string, key serde.Serde[K], value serde.Serde[V], opts ...Option) *GlobalTable[K, V] {
	s := newSettings(opts, optName|optTimestamps|keyValueOptions&^(optMaterialized|optNoLogging|changelogOptions))
	m := b.keyValueStore(s, topic+"-", false)
	m.spec.Logged, m.spec.Caching = false, false // nothing is below a global table, and nothing is committed for it
	if m.spec.Kind == state.Versioned {
		s.bad(plan.TopologyProblem, "a global table can't be versioned")
	}
	sourceName, name, source := tableSource(b, s, topic, key, value)
	proc := processors.NewTableSource(kept(b, processors.Store[K, V]{Name: m.spec.Name, Key: key, Value: value}), true)
	b.report(name, s)
	b.graph.Add(logical.NewNode(name, &logical.TableSource{
		SourceName: sourceName, Topic: topic, Source: source, Table: proc, Store: m.spec, Global: true,
	}))
	return &GlobalTable[K, V]{b: b, view: proc.View(), store: m.spec.Name}
}

// GlobalTable is a table that every instance holds in whole.
type GlobalTable[K, V any] struct {
	b     *Builder
	view  processors.ViewSupplier[K, V]
	store string
}

// StoreName names the table's store, for queries.
func (t *GlobalTable[K, V]) StoreName() string { return t.store }

// report records an operator's problems under its node's name.
func (b *Builder) report(node string, s *settings) {
	for _, p := range s.problems {
		p.Node = node
		b.graph.AddProblem(p)
	}
	s.problems = nil
}

// full gives an internal topic its full name.
func (b *Builder) full(topic string) string { return b.app + "-" + topic }
