package topology

import (
	"maps"
	"math"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/state"
)

// materialized is a store that an operator may have.
type materialized struct {
	spec *state.Spec
	// queryable says that the user named the store, and so wants it whether an operator needs it or not.
	queryable bool
}

// keyValueStore declares the store of a table from the operator's options. Without a name it takes one with the prefix.
func (b *Builder) keyValueStore(s *settings, prefix string, logged bool) materialized {
	spec := &state.Spec{Kind: state.TimestampedKeyValue, InMemory: b.inMemory(s)}
	switch {
	case s.has(optStoreAs):
		*spec = s.storeAs
		switch spec.Kind {
		case state.KeyValue, state.TimestampedKeyValue, state.Versioned:
		default:
			s.bad(plan.InvalidArgument, "option StoreAs: a %s store can't hold a table", spec.Kind)
		}
	case s.has(optVersioned):
		spec.Kind, spec.InMemory = state.Versioned, false
		spec.HistoryMs, spec.SegmentIntervalMs = s.history.Milliseconds(), s.segment.Milliseconds()
		if s.history < 0 {
			s.bad(plan.InvalidArgument, "option Versioned: history %v can't be negative", s.history)
		}
		b.needName(s, "Versioned")
	case s.has(optLRU):
		spec.InMemory, spec.MaxEntries = true, s.maxEntries
		if s.maxEntries <= 0 {
			s.bad(plan.InvalidArgument, "option LRU: %d is no number of rows to keep", s.maxEntries)
			spec.MaxEntries = 1
		}
		b.needName(s, "LRU")
	}
	return b.finishStore(s, spec, prefix, logged && !s.has(optNoLogging))
}

// needName refuses a store that Kafka Streams makes by a supplier, which has a name of its own.
func (b *Builder) needName(s *settings, option string) {
	if !s.has(optStore) {
		s.bad(plan.InvalidArgument, "option %s needs option Store: such a store must be named", option)
	}
}

// windowing is what the store of a windowed aggregation depends on, in ms.
type windowing struct {
	kind    state.Kind
	size    int64
	least   int64 // of the retention
	onClose bool
	sliding bool
}

// windowStore declares the store of a windowed aggregation.
func (b *Builder) windowStore(s *settings, prefix string, w windowing) materialized {
	spec := &state.Spec{Kind: w.kind, InMemory: b.inMemory(s), WindowSizeMs: w.size, RetentionMs: w.least}
	if s.has(optRetention) {
		spec.RetentionMs = s.retention.Milliseconds()
	}
	spec.TimeOrdered = w.onClose && !spec.InMemory
	if s.has(optStoreAs) {
		*spec = s.storeAs
		if spec.Kind != w.kind && !(w.kind == state.TimestampedWindow && spec.Kind == state.Window) {
			s.bad(plan.InvalidArgument, "option StoreAs: a %s store can't hold the results, it has to be a %s store", spec.Kind, w.kind)
		}
	}
	if spec.RetentionMs < w.least && !(s.has(optStoreAs) && w.size == math.MaxInt64) { // unlimited windows begin together, so none expires
		s.bad(plan.InvalidArgument, "results must be kept for the window's size and grace at least: for %d ms, but the retention is %d ms",
			w.least, spec.RetentionMs)
	}
	m := b.finishStore(s, spec, prefix, !s.has(optNoLogging))
	if w.onClose && (w.sliding || spec.Kind != state.Window) {
		// Results come once anyway. Of a plain store they have times only as long as its rows are cached; Kafka Streams doesn't do that for sliding windows.
		m.spec.Caching = false
	}
	return m
}

func (b *Builder) inMemory(s *settings) bool {
	if s.has(optStoreType) {
		return s.inMemory
	}
	return b.opts.inMemory
}

// finishStore names the store and sets what all kinds have.
func (b *Builder) finishStore(s *settings, spec *state.Spec, prefix string, logged bool) materialized {
	if s.has(optStore) {
		spec.Name = s.store
	}
	m := materialized{spec: spec, queryable: spec.Name != ""}
	spec.Logged = logged
	spec.TopicConfig, spec.ChangelogTopic = maps.Clone(s.topicConfig), s.changelog
	spec.Caching = b.opts.onCommit
	if s.has(optEmitOnCommit) {
		spec.Caching = s.onCommit
	}
	if spec.Kind == state.Versioned {
		spec.Caching = false
	}
	if !m.queryable {
		spec.Name = b.graph.NewStoreName(prefix)
		implicit := logical.Implicit{Store: spec.Name}
		if logged && spec.ChangelogTopic == "" {
			implicit.Changelog = spec.Name + "-changelog"
		}
		b.graph.AddImplicit(implicit)
	}
	return m
}

// addMs adds durations in ms without overflow.
func addMs(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
