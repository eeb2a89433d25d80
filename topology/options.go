package topology

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// Option adjusts one operator. An option that an operator has no use for, or one of the wrong type, is an error of Build.
type Option struct {
	kind  optionKind
	apply func(*settings)
}

// optionKind is a bit for each option, so that an operator can say which it takes.
type optionKind uint64

const (
	optName optionKind = 1 << iota
	optStore
	optKeySerde
	optValueSerde
	optOtherSerde
	optMaterialized
	optStoreType
	optRetention
	optNoLogging
	optTopicConfig
	optVersioned
	optLRU
	optStoreAs
	optEmitOnCommit
	optEmitOnClose
	optTimestamps
	optReset
	optIdle
	optPartitions
	optPartitioner
	optMulticast
	optGrace
	optStores
	optProvide
	optDropOlder
	optByID
	optChangelogTopic
	lastOption
)

// storeOptions are those that say how a table is kept: what Kafka Streams has in Materialized.
const (
	keyValueOptions = optStore | optMaterialized | optStoreType | optNoLogging | changelogOptions | optVersioned | optLRU | optStoreAs | optEmitOnCommit
	windowOptions   = optStore | optMaterialized | optStoreType | optNoLogging | changelogOptions | optRetention | optStoreAs | optEmitOnCommit
	// changelogOptions are those of a store's own changelog topic.
	changelogOptions = optTopicConfig | optChangelogTopic
	anyMaterialized  = keyValueOptions | windowOptions
	serdeOptions     = optKeySerde | optValueSerde
)

var optionNames = map[optionKind]string{
	optName: "Name", optStore: "Store", optKeySerde: "KeySerde", optValueSerde: "ValueSerde", optOtherSerde: "OtherValueSerde",
	optMaterialized: "Materialized", optStoreType: "InMemory or OnDisk", optRetention: "Retention", optNoLogging: "NoLogging",
	optTopicConfig: "ChangelogConfig", optVersioned: "Versioned", optLRU: "LRU", optStoreAs: "StoreAs",
	optEmitOnCommit: "EmitOnCommit or EmitOnUpdate", optEmitOnClose: "EmitOnClose", optTimestamps: "Timestamps", optReset: "Reset", optIdle: "AdvanceAfter or WaitFor",
	optPartitions: "Partitions", optPartitioner: "PartitionBy", optMulticast: "Multicast", optGrace: "JoinGrace", optStores: "Stores", optProvide: "Provide",
	optDropOlder: "DropOlder", optByID: "RepartitionByID", optChangelogTopic: "ChangelogTopic",
}

// givenSerde is a serde.Serde of some type, which is checked where it is used.
type givenSerde struct {
	serde any
	of    reflect.Type
}

func giveSerde[T any](s serde.Serde[T]) givenSerde { return givenSerde{s, reflect.TypeFor[T]()} }

// settings are the options of one operator, put together.
type settings struct {
	given    optionKind
	problems []plan.Problem // without their node

	userName string
	store    string

	key, value, other    givenSerde
	timestamps           any
	partition, multicast any

	inMemory    bool
	retention   time.Duration
	topicConfig map[string]string
	changelog   string
	history     time.Duration
	segment     time.Duration
	maxEntries  int
	storeAs     state.Spec
	onCommit    bool
	reset       plan.OffsetReset
	idle        plan.Idle
	partitions  int
	grace       time.Duration
	stores      []string
	provide     []StoreDecl
}

// newSettings puts opts together; allowed are the options that the operator takes.
func newSettings(opts []Option, allowed optionKind) *settings {
	s := &settings{}
	for _, o := range opts {
		if o.kind == 0 {
			s.bad(plan.InvalidArgument, "an option is empty: options are made by the functions of this package")
			continue
		}
		if o.kind&allowed == 0 {
			s.bad(plan.InvalidArgument, "the operator has no use for the option %s; it takes %s", optionNames[o.kind], allowed)
			continue
		}
		s.given |= o.kind
		o.apply(s)
	}
	s.checkName(optName, &s.userName)
	s.checkName(optStore, &s.store)
	s.checkName(optChangelogTopic, &s.changelog)
	return s
}

func (s *settings) has(k optionKind) bool { return s.given&k != 0 }

func (s *settings) bad(kind plan.ProblemKind, format string, args ...any) {
	s.problems = append(s.problems, plan.Problem{Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// badSerde reports a serde that isn't there.
func (s *settings) badSerde(message string, missing plan.MissingSerde) {
	s.problems = append(s.problems, plan.Problem{Kind: plan.InvalidArgument, Message: message, Missing: []plan.MissingSerde{missing}})
}

// unknownSerdes reports what needSerdes has found; message says what can't be done.
func (s *settings) unknownSerdes(message string, err error) {
	s.problems = append(s.problems, plan.Problem{Kind: plan.InvalidArgument, Message: message, Err: err, Missing: plan.MissingIn(err)})
}

// checkName takes back a name that can't be used, so that one mistake is told once.
func (s *settings) checkName(option optionKind, name *string) {
	if !s.has(option) {
		return
	}
	if err := plan.CheckName(*name); err != nil {
		s.bad(plan.TopologyProblem, "option %s: %v", optionNames[option], err)
		s.given &^= option
		*name = ""
	}
}

func (k optionKind) String() string {
	var names []string
	for bit := optName; bit < lastOption; bit <<= 1 {
		if k&bit != 0 {
			names = append(names, optionNames[bit])
		}
	}
	if len(names) == 0 {
		return "no options"
	}
	return strings.Join(names, ", ")
}

// Name names the operator's processor, as Named, Consumed.withName, Grouped.withName, Joined.withName, StreamJoined.withName,
// TableJoined.as, Repartitioned.withName, Produced.withName and Suppressed.withName do in Kafka Streams. With GroupBy, GroupByKey,
// Repartition and joins the name goes into those of repartition topics as well: name what is durable.
func Name(name string) Option { return Option{optName, func(s *settings) { s.userName = name }} }

// Store names the operator's store, and so its changelog topic, as Materialized.as and StreamJoined.withStoreName do in Kafka
// Streams. It also makes a table that is computed from another one keep its rows.
func Store(name string) Option { return Option{optStore, func(s *settings) { s.store = name }} }

// KeySerde says how keys of the operator's result become bytes.
func KeySerde[K any](s serde.Serde[K]) Option {
	return Option{optKeySerde, func(o *settings) { o.key = giveSerde(s) }}
}

// ValueSerde says how values of the operator's result become bytes. Of a join of streams it may also be a serde of the left side's values, which
// the join's store needs; the Go type tells which of the two it is, and one of both's type is for both. So it is of a join with grace of a stream that
// doesn't know its values' serde.
func ValueSerde[V any](s serde.Serde[V]) Option {
	return Option{optValueSerde, func(o *settings) { o.value = giveSerde(s) }}
}

// OtherValueSerde says how values of the right side of a join of streams become bytes.
func OtherValueSerde[V any](s serde.Serde[V]) Option {
	return Option{optOtherSerde, func(o *settings) { o.other = giveSerde(s) }}
}

// Materialized stands for a Materialized without a name in Kafka Streams. It changes nothing but the numbers in generated names,
// where Kafka Streams takes one more for its overloads with Materialized: use it when an application that was written so is moved.
func Materialized() Option { return Option{optMaterialized, func(*settings) {}} }

// InMemory keeps the operator's store in memory. It is restored from its changelog at each start.
func InMemory() Option { return Option{optStoreType, func(s *settings) { s.inMemory = true }} }

// OnDisk keeps the operator's store on disk, where InMemoryStores is the topology's default.
func OnDisk() Option { return Option{optStoreType, func(s *settings) { s.inMemory = false }} }

// Retention says how long windows and sessions are kept, in stream time; at least their size and grace.
func Retention(d time.Duration) Option {
	return Option{optRetention, func(s *settings) { s.retention = d }}
}

// NoLogging does without a changelog: the operator's state is lost with the disk that it is on.
func NoLogging() Option { return Option{optNoLogging, func(*settings) {}} }

// ChangelogConfig sets configuration of the operator's changelog topic, such as "min.insync.replicas".
func ChangelogConfig(key, value string) Option {
	return Option{optTopicConfig, func(s *settings) {
		if s.topicConfig == nil {
			s.topicConfig = make(map[string]string)
		}
		s.topicConfig[key] = value
	}}
}

// ChangelogTopic keeps the changelog of the operator's store in the topic of that name, in place of <application id>-<store>-changelog: to
// take over a table topic that another system has written. The engine treats it as its own: it creates the topic where it is missing, and
// refuses one with another cleanup policy or number of partitions.
func ChangelogTopic(name string) Option {
	return Option{optChangelogTopic, func(s *settings) { s.changelog = name }}
}

// Versioned keeps versions of a table's rows for a time (KIP-889), so that joins can see them as of a record's time.
func Versioned(history time.Duration) Option {
	return Option{optVersioned, func(s *settings) { s.history, s.segment = history, 0 }}
}

// VersionedSegments is Versioned with the span of time that expires at once, which must be 1 ms at least.
func VersionedSegments(history, segment time.Duration) Option {
	return Option{optVersioned, func(s *settings) {
		if segment < time.Millisecond {
			s.bad(plan.InvalidArgument, "option VersionedSegments: segment %v must be at least 1 ms", segment)
		}
		s.history, s.segment = history, segment
	}}
}

// LRU keeps the operator's store in memory and at most n rows in it: those used last.
func LRU(n int) Option { return Option{optLRU, func(s *settings) { s.maxEntries = n }} }

// StoreAs gives the store itself, as Kafka Streams does with store suppliers. Spec.Logged, Spec.Caching and Spec.TopicConfig are
// ignored in favour of the options for these.
func StoreAs(spec state.Spec) Option {
	return Option{optStoreAs, func(s *settings) { s.storeAs = spec }}
}

// EmitOnCommit sends only the last update of each key between two commits: what Kafka Streams does with its record cache.
func EmitOnCommit() Option { return Option{optEmitOnCommit, func(s *settings) { s.onCommit = true }} }

// EmitOnUpdate sends each update, where EmitOnCommit is the topology's default.
func EmitOnUpdate() Option { return Option{optEmitOnCommit, func(s *settings) { s.onCommit = false }} }

// EmitOnClose sends each window's result once, when it closes (KIP-825).
func EmitOnClose() Option { return Option{optEmitOnClose, func(*settings) {}} }

// Timestamps finds the event time of a source's records; see processors.TimestampExtractor.
func Timestamps[K, V any](extract processors.TimestampExtractor[K, V]) Option {
	return Option{optTimestamps, func(s *settings) { s.timestamps = extract }}
}

// WallClock takes the time at which a source's record is read for its event time, as Kafka Streams' WallclockTimestampExtractor does. What
// is read again after a failure has another time then.
func WallClock() Option {
	return Option{optTimestamps, func(s *settings) { s.timestamps = wallClock{} }}
}

type wallClock struct{}

// wallClock tells whether the source has that option.
func (s *settings) wallClock() bool {
	_, ok := s.timestamps.(wallClock)
	return ok
}

// OffsetReset tells where a source starts without a committed offset.
type OffsetReset = plan.OffsetReset

// The offset reset policies for Reset.
const (
	Earliest = plan.ResetEarliest
	Latest   = plan.ResetLatest
	Fail     = plan.ResetNone // start only from a committed offset
)

// ByDuration is a policy for Reset: to start at the first record that is no older than d by its timestamp and the wall clock, at the end if
// there is none (KIP-1106). A negative d counts as 0.
func ByDuration(d time.Duration) OffsetReset { return plan.ResetByDuration(d) }

// Reset says where a source starts without a committed offset, in place of the engine's setting.
func Reset(r OffsetReset) Option { return Option{optReset, func(s *settings) { s.reset = r }} }

// Partitions sets the number of partitions of a repartition topic.
func Partitions(n int) Option { return Option{optPartitions, func(s *settings) { s.partitions = n }} }

// PartitionBy chooses the partition of each record that goes to a topic, in place of the hash of its key.
func PartitionBy[K, V any](p processors.Partitioner[K, V]) Option {
	return Option{optPartitioner, func(s *settings) { s.partition = p }}
}

// Multicast chooses the partitions, any number of them, of each record that goes to a topic (KIP-837). A record for which it chooses none is left
// out, and counted as dropped.
func Multicast[K, V any](m processors.Multicast[K, V]) Option {
	return Option{optMulticast, func(s *settings) { s.multicast = m }}
}

// JoinGrace makes a join of a stream with a versioned table wait, in stream time, for late updates of the table (KIP-923).
func JoinGrace(d time.Duration) Option { return Option{optGrace, func(s *settings) { s.grace = d }} }

// Stores connects stores, which were added by AddStateStore, to a user's processor.
func Stores(names ...string) Option {
	return Option{optStores, func(s *settings) { s.stores = append(s.stores, names...) }}
}

// Provide adds stores and connects them to the operator's processor. The same declaration may be provided to several processors,
// which then share the store.
func Provide(stores ...StoreDecl) Option {
	return Option{optProvide, func(s *settings) { s.provide = append(s.provide, stores...) }}
}

// serdeOption returns the serde given by an option, checked against the operator's type, or fallback.
func serdeOption[T any](s *settings, kind optionKind, given givenSerde, fallback serde.Serde[T]) serde.Serde[T] {
	if !s.has(kind) {
		return fallback
	}
	if given.serde == nil {
		s.bad(plan.InvalidArgument, "option %s: the serde is nil", optionNames[kind])
		return fallback
	}
	typed, ok := given.serde.(serde.Serde[T])
	if !ok {
		what := "value"
		if kind == optKeySerde {
			what = "key"
		}
		need := reflect.TypeFor[T]()
		s.badSerde(fmt.Sprintf("option %s is a serde for %v, but the %s's type is %v", optionNames[kind], given.of, what, need),
			plan.MissingSerde{What: what, Type: need})
		return fallback
	}
	s.checkSerde(optionNames[kind], serde.Check(typed))
	return typed
}

// checkSerde reports a mistake that a serde carries, such as a schema that its Go type doesn't fit.
func (s *settings) checkSerde(what string, err error) {
	if err != nil {
		s.bad(plan.InvalidArgument, "%s: %v", what, err)
	}
}

func keySerde[K any](s *settings, fallback serde.Serde[K]) serde.Serde[K] {
	return serdeOption(s, optKeySerde, s.key, fallback)
}

func valueSerde[V any](s *settings, fallback serde.Serde[V]) serde.Serde[V] {
	return serdeOption(s, optValueSerde, s.value, fallback)
}

// inferred is the serde of a type that an operator made of type From: the built-in one, else that of its input if the Go type is the
// same, or that of the keys in the input's windows. An interface may hold anything, so it inherits none.
func inferred[From, To any](from serde.Serde[From]) serde.Serde[To] {
	if s, ok := serde.Default[To](); ok {
		return s
	}
	if reflect.TypeFor[To]().Kind() == reflect.Interface {
		return nil
	}
	if same, ok := from.(serde.Serde[To]); ok {
		return same
	}
	return processors.KeyInWindow[To](from)
}

// partitioning is how the partitions of a sink's records are chosen; its zero value leaves it to the key.
type partitioning[K, V any] struct {
	one  processors.Partitioner[K, V]
	many processors.Multicast[K, V]
}

// givenPartitioning is what the options say.
func givenPartitioning[K, V any](s *settings) (p partitioning[K, V]) {
	if s.has(optPartitioner) && s.has(optMulticast) {
		s.bad(plan.InvalidArgument, "of the options PartitionBy and Multicast there can be one")
	}
	typed := func(name string, ok bool, given any) {
		if !ok {
			s.bad(plan.InvalidArgument, "option %s is nil or for other types: the operator needs one for %v and %v, this is a %T",
				name, reflect.TypeFor[K](), reflect.TypeFor[V](), given)
		}
	}
	if s.has(optPartitioner) {
		p.one, _ = s.partition.(processors.Partitioner[K, V])
		typed("PartitionBy", p.one != nil, s.partition)
	}
	if s.has(optMulticast) {
		p.many, _ = s.multicast.(processors.Multicast[K, V])
		typed("Multicast", p.many != nil, s.multicast)
	}
	return p
}
