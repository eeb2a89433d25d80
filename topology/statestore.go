package topology

import (
	"time"

	"github.com/tributary-io/tributary/internal/callsite"
	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// StateStore declares a store for user processors, with the Go types of its keys and values. A processor's Init opens the
// store by it:
//
//	counts := topology.KeyValueStore("counts", serde.String, serde.Int64)
//	...
//	store, err := processors.KeyValueStore(ctx, counts)
type StateStore[K, V any] struct {
	processors.Store[K, V]
	spec     *state.Spec
	problems []plan.Problem
}

// StoreDecl is a StateStore of any types.
type StoreDecl interface {
	declaration(b *Builder) (*state.Spec, []plan.Problem)
}

func (s *StateStore[K, V]) declaration(b *Builder) (*state.Spec, []plan.Problem) {
	noteFormat(b, s.Name, s.Key, s.Value)
	return s.spec, s.problems
}

// Spec tells what the store is.
func (s *StateStore[K, V]) Spec() state.Spec { return *s.spec }

// KeyValueStore declares a store of kind KeyValue. Options: InMemory, LRU, NoLogging, ChangelogConfig, ChangelogTopic, EmitOnCommit.
func KeyValueStore[K, V any](name string, key serde.Serde[K], value serde.Serde[V], opts ...Option) *StateStore[K, V] {
	return newStore(state.Spec{Name: name, Kind: state.KeyValue}, key, value, optLRU, opts)
}

// TimestampedKeyValueStore declares a key-value store that keeps a timestamp with each value.
func TimestampedKeyValueStore[K, V any](name string, key serde.Serde[K], value serde.Serde[V], opts ...Option) *StateStore[K, V] {
	return newStore(state.Spec{Name: name, Kind: state.TimestampedKeyValue}, key, value, optLRU, opts)
}

// WindowStore declares a store of windows of a size, which are kept for a retention of at least that.
func WindowStore[K, V any](name string, key serde.Serde[K], value serde.Serde[V], retention, size time.Duration, opts ...Option) *StateStore[K, V] {
	return newStore(windowSpec(name, state.Window, retention, size), key, value, 0, opts)
}

// TimestampedWindowStore declares a window store that keeps a timestamp with each value.
func TimestampedWindowStore[K, V any](name string, key serde.Serde[K], value serde.Serde[V], retention, size time.Duration, opts ...Option) *StateStore[K, V] {
	return newStore(windowSpec(name, state.TimestampedWindow, retention, size), key, value, 0, opts)
}

// DuplicatesStore declares a window store in which every put adds an entry, also to the same key and time.
func DuplicatesStore[K, V any](name string, key serde.Serde[K], value serde.Serde[V], retention, size time.Duration, opts ...Option) *StateStore[K, V] {
	spec := windowSpec(name, state.Window, retention, size)
	spec.RetainDuplicates = true
	return newStore(spec, key, value, 0, opts)
}

// SessionStore declares a store of sessions, which are kept for a retention.
func SessionStore[K, V any](name string, key serde.Serde[K], value serde.Serde[V], retention time.Duration, opts ...Option) *StateStore[K, V] {
	spec := state.Spec{Name: name, Kind: state.Session, RetentionMs: retention.Milliseconds()}
	return newStore(spec, key, value, 0, opts)
}

// VersionedStore declares a key-value store that keeps versions for a time (KIP-889). segment is the span of time that expires at
// once; 0 leaves it to the history.
func VersionedStore[K, V any](name string, key serde.Serde[K], value serde.Serde[V], history, segment time.Duration, opts ...Option) *StateStore[K, V] {
	spec := state.Spec{
		Name: name, Kind: state.Versioned, HistoryMs: history.Milliseconds(), SegmentIntervalMs: segment.Milliseconds(),
	}
	return newStore(spec, key, value, 0, opts)
}

func windowSpec(name string, kind state.Kind, retention, size time.Duration) state.Spec {
	return state.Spec{Name: name, Kind: kind, RetentionMs: retention.Milliseconds(), WindowSizeMs: size.Milliseconds()}
}

func newStore[K, V any](spec state.Spec, key serde.Serde[K], value serde.Serde[V], extra optionKind, opts []Option) *StateStore[K, V] {
	o := newSettings(opts, optStoreType|optNoLogging|changelogOptions|optEmitOnCommit|extra)
	spec.InMemory = o.inMemory
	spec.Logged = !o.has(optNoLogging)
	spec.TopicConfig, spec.ChangelogTopic = o.topicConfig, o.changelog
	spec.Caching, spec.Unsent = o.onCommit, true
	if o.has(optLRU) {
		spec.InMemory, spec.MaxEntries = true, o.maxEntries
		if o.maxEntries <= 0 {
			o.bad(plan.InvalidArgument, "option LRU: %d is no number of rows to keep", o.maxEntries)
			spec.MaxEntries = 1
		}
	}
	if spec.WindowSizeMs > spec.RetentionMs && spec.Kind != state.Session {
		o.bad(plan.InvalidArgument, "windows of %d ms must be kept at least that long, but the retention is %d ms",
			spec.WindowSizeMs, spec.RetentionMs)
	}
	if key == nil || value == nil {
		o.bad(plan.InvalidArgument, "a serde is nil")
	}
	for i := range o.problems {
		o.problems[i].Node, o.problems[i].Position = "store "+spec.Name, callsite.Declared()
	}
	return &StateStore[K, V]{
		Store: processors.Store[K, V]{Name: spec.Name, Key: key, Value: value}, spec: &spec, problems: o.problems,
	}
}

// declare takes a declaration and its problems.
func (b *Builder) declare(s StoreDecl) *state.Spec {
	if s == nil {
		b.graph.Problem(plan.InvalidArgument, "", "a store is nil")
		return nil
	}
	spec, problems := s.declaration(b)
	for _, p := range problems {
		b.graph.AddProblem(p)
	}
	return spec
}

// AddStateStore adds a store that processors of Process and ProcessValues connect to by its name (option Stores).
func (b *Builder) AddStateStore(s StoreDecl) {
	if spec := b.declare(s); spec != nil {
		b.graph.Add(logical.NewNode(spec.Name, &logical.Store{Spec: spec}))
	}
}

// AddGlobalStore adds a store that every instance fills from the whole of a topic with a processor of its own. All processors may
// read it without being connected. Options: Name, Timestamps.
func (b *Builder) AddGlobalStore[K, V, K2, V2 any](
	store StoreDecl, topic string, key serde.Serde[K], value serde.Serde[V],
	newProcessor func() processors.Processor[K, V, K2, V2], opts ...Option,
) {
	s := newSettings(opts, optName|optTimestamps)
	sourceName, name, source := tableSource(b, s, topic, key, value)
	if newProcessor == nil {
		s.bad(plan.InvalidArgument, "the function that makes the processor is nil")
	}
	b.report(name, s)
	spec := b.declare(store)
	if spec == nil {
		return
	}
	b.graph.Add(logical.NewNode(name, &logical.GlobalStore{Store: plan.GlobalStore{
		Spec: spec, Topic: topic, Source: sourceName, Processor: name, Read: source, Update: processors.Process(newProcessor),
	}}))
}
