package topology

import (
	"maps"
	"reflect"
	"strings"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// JoinStream joins the records of two streams that have the same key and are not farther apart than the windows say: one result for
// each pair. Both must have equally many partitions; if a key was changed before, its stream goes through a repartition topic.
//
// The option Name names the processors and the repartition topics, Store the stores.
func (s *Stream[K, V]) JoinStream[R, O any](other *Stream[K, R], f func(V, R) O, w JoinWindows, opts ...Option) *Stream[K, O] {
	return s.TryJoinStream(other, joinValues[K](f), w, opts...)
}

// JoinStreamWithKey is JoinStream with a function that sees the key.
func (s *Stream[K, V]) JoinStreamWithKey[R, O any](other *Stream[K, R], f func(K, V, R) O, w JoinWindows, opts ...Option) *Stream[K, O] {
	return s.TryJoinStream(other, lift3(f), w, opts...)
}

// TryJoinStream is JoinStreamWithKey with a function that may fail.
func (s *Stream[K, V]) TryJoinStream[R, O any](other *Stream[K, R], f func(K, V, R) (O, error), w JoinWindows, opts ...Option) *Stream[K, O] {
	return &Stream[K, O]{joinStreams(s.s, insideOf(other), joinBoth(f), processors.InnerJoin, w, opts)}
}

// LeftJoinStream is JoinStream with one result more, without a right side, for each left record that has no match when its window
// closes.
func (s *Stream[K, V]) LeftJoinStream[R, O any](other *Stream[K, R], f func(V, *R) O, w JoinWindows, opts ...Option) *Stream[K, O] {
	return s.TryLeftJoinStream(other, joinValues[K](f), w, opts...)
}

// LeftJoinStreamWithKey is LeftJoinStream with a function that sees the key.
func (s *Stream[K, V]) LeftJoinStreamWithKey[R, O any](other *Stream[K, R], f func(K, V, *R) O, w JoinWindows, opts ...Option) *Stream[K, O] {
	return s.TryLeftJoinStream(other, lift3(f), w, opts...)
}

// TryLeftJoinStream is LeftJoinStreamWithKey with a function that may fail.
func (s *Stream[K, V]) TryLeftJoinStream[R, O any](other *Stream[K, R], f func(K, V, *R) (O, error), w JoinWindows, opts ...Option) *Stream[K, O] {
	return &Stream[K, O]{joinStreams(s.s, insideOf(other), joinLeft(f), processors.LeftJoin, w, opts)}
}

// OuterJoinStream is JoinStream with one result more, without the other side, for each record of both sides that has no match when its
// window closes.
func (s *Stream[K, V]) OuterJoinStream[R, O any](other *Stream[K, R], f func(*V, *R) O, w JoinWindows, opts ...Option) *Stream[K, O] {
	return s.TryOuterJoinStream(other, joinValues[K](f), w, opts...)
}

// OuterJoinStreamWithKey is OuterJoinStream with a function that sees the key.
func (s *Stream[K, V]) OuterJoinStreamWithKey[R, O any](other *Stream[K, R], f func(K, *V, *R) O, w JoinWindows, opts ...Option) *Stream[K, O] {
	return s.TryOuterJoinStream(other, lift3(f), w, opts...)
}

// TryOuterJoinStream is OuterJoinStreamWithKey with a function that may fail.
func (s *Stream[K, V]) TryOuterJoinStream[R, O any](other *Stream[K, R], f func(K, *V, *R) (O, error), w JoinWindows, opts ...Option) *Stream[K, O] {
	return &Stream[K, O]{joinStreams(s.s, insideOf(other), joinOuter(f), processors.OuterJoin, w, opts)}
}

func insideOf[K, V any](s *Stream[K, V]) *stream[K, V] {
	if s == nil {
		return nil
	}
	return s.s
}

const streamJoinOptions = statelessOptions | optOtherSerde | optStore | optStoreType | optNoLogging | optTopicConfig

func joinStreams[K, V, R, O any](
	s *stream[K, V], other *stream[K, R], join processors.Joiner[K, V, R, O], kind processors.JoinKind, w JoinWindows, opts []Option,
) *stream[K, O] {
	b := s.b
	o := &operation{settings: newSettings(opts, streamJoinOptions), b: b, name: "JoinStream"}
	given := o.userName
	o.needFunction(join == nil)
	w.check(o.settings)
	out := &stream[K, O]{b: b, key: keySerde(o.settings, s.key)}
	if given != "" {
		o.name = given
	}
	if !o.together(other) {
		return orphan(o, out)
	}
	value, result := joinedValues[V, O](o.settings, s.value)
	otherValue := serdeOption(o.settings, optOtherSerde, o.other, other.value)
	left := repartitionForJoin(s, suffixed(given, "-left", s.node.Name), given != "", out.key, value)
	right := repartitionForJoin(other, suffixed(given, "-right", other.node.Name), given != "", out.key, otherValue)
	out.sources = union(left.sources, right.sources)
	b.graph.Copartition(out.sources)

	n := b.streamJoinNames(given, kind)
	o.name = n.merge
	o.needStoreSerdes(needSerdes(out.key, value))
	if err := needSerdes(out.key, otherValue); err != nil && otherValue == nil {
		o.needStoreSerdes(err)
	}
	stores := o.streamJoinStores(n, kind, w)
	sj := &processors.StreamJoin[K, V, R, O]{
		Kind: kind, BeforeMs: w.before.Milliseconds(), AfterMs: w.after.Milliseconds(), GraceMs: w.grace.Milliseconds(), Join: join,
		ThisStore:      kept(b, processors.Store[K, V]{Name: stores.this.Name, Key: out.key, Value: value}),
		OtherStore:     kept(b, processors.Store[K, R]{Name: stores.other.Name, Key: out.key, Value: otherValue}),
		Outer:          stores.outerName(),
		EmitIntervalMs: b.opts.emitEvery.Milliseconds(),
	}
	addWindow(b, n.thisWindow, sj.ThisWindow(), stores.this, left.node)
	addWindow(b, n.otherWindow, sj.OtherWindow(), stores.other, right.node)
	out.node = logical.NewNode(n.merge, &logical.StreamJoin{
		ThisWindow: n.thisWindow, OtherWindow: n.otherWindow,
		This:  logical.Part{Name: n.this, Supplier: sj.This(), Stores: stores.with(stores.other)},
		Other: logical.Part{Name: n.other, Supplier: sj.Other(), Stores: stores.with(stores.this)},
		Merge: logical.Part{Name: n.merge, Supplier: processors.PassThrough[K, O]()},
		Self:  logical.Part{Name: n.merge, Supplier: selfJoin(sj), Stores: specs(stores.this)},
	})
	out.node.NullKeyRelaxed = kind != processors.InnerJoin
	out.value = result
	b.report(n.merge, o.settings)
	b.graph.Add(out.node, left.node, right.node)
	return out
}

// joinedValues are the serdes of the left side's values and of the result's. The option ValueSerde is the left side's, as that of StreamJoined in
// Kafka Streams is, unless only the result is of its type.
func joinedValues[V, O any](s *settings, left serde.Serde[V]) (serde.Serde[V], serde.Serde[O]) {
	if r, ok := s.value.serde.(serde.Serde[O]); ok && s.value.of != reflect.TypeFor[V]() {
		s.checkSerde(optionNames[optValueSerde], serde.Check(r))
		return left, r
	}
	left = valueSerde(s, left)
	return left, inferred[V, O](left)
}

func suffixed(name, suffix, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name + suffix
}

func addWindow(b *Builder, name string, supplier processors.Supplier, store *state.Spec, parent *logical.Node) {
	part := logical.Part{Name: name, Supplier: supplier, Stores: specs(store)}
	b.graph.Add(logical.NewNode(name, &logical.Windowed{Part: part}), parent)
}

// selfJoin is the processor that joins a stream with itself; nil if the types tell that it is joined with another one.
func selfJoin[K, V, R, O any](j *processors.StreamJoin[K, V, R, O]) processors.Supplier {
	join, ok := any(j.Join).(processors.Joiner[K, V, V, O])
	if !ok {
		return nil
	}
	return processors.StreamSelfJoin[K, V, O]{
		BeforeMs: j.BeforeMs, AfterMs: j.AfterMs, GraceMs: j.GraceMs, Join: join, Store: j.ThisStore,
	}
}

// streamJoinNames are the names of a join's nodes, and those that its stores are named after.
type streamJoinNames struct {
	thisWindow, otherWindow, this, other, merge string
	thisStore, otherStore                       string // generated
	thisSuffix, otherSuffix                     string
	thisPrefix                                  string
}

func (b *Builder) streamJoinNames(given string, kind processors.JoinKind) streamJoinNames {
	n := streamJoinNames{thisSuffix: "-this-join", otherSuffix: "-other-join", thisPrefix: "KSTREAM-JOINTHIS-"}
	otherPrefix := "KSTREAM-JOINOTHER-"
	if kind == processors.OuterJoin {
		n.thisSuffix, n.thisPrefix = "-outer-this-join", "KSTREAM-OUTERTHIS-"
	}
	if kind != processors.InnerJoin {
		n.otherSuffix, otherPrefix = "-outer-other-join", "KSTREAM-OUTEROTHER-"
	}
	g := b.graph
	n.thisWindow = g.SuffixOr(given, "-this-windowed", "KSTREAM-WINDOWED-")
	n.otherWindow = g.SuffixOr(given, "-other-windowed", "KSTREAM-WINDOWED-")
	n.thisStore, n.otherStore = g.NewName(n.thisPrefix), g.NewName(otherPrefix)
	n.this, n.other = suffixed(given, n.thisSuffix, n.thisStore), suffixed(given, n.otherSuffix, n.otherStore)
	n.merge = g.SuffixOr(given, "-merge", "KSTREAM-MERGE-")
	return n
}

// streamJoinStores are the stores of both sides, and that of left and outer joins for records without a match.
type streamJoinStores struct{ this, other, outer *state.Spec }

// with is one side's store, and the shared one.
func (s streamJoinStores) with(side *state.Spec) []*state.Spec {
	if s.outer == nil {
		return []*state.Spec{side}
	}
	return []*state.Spec{side, s.outer}
}

func (s streamJoinStores) outerName() string {
	if s.outer == nil {
		return ""
	}
	return s.outer.Name
}

func (o *operation) streamJoinStores(n streamJoinNames, kind processors.JoinKind, w JoinWindows) streamJoinStores {
	base := o.store
	window := func(name string) *state.Spec {
		spec := &state.Spec{
			Name: name + "-store", Kind: state.Window, RetainDuplicates: true, LogHeaders: true, InMemory: o.b.inMemory(o.settings),
			WindowSizeMs: w.sizeMs(), RetentionMs: addMs(w.sizeMs(), w.grace.Milliseconds()), Logged: !o.has(optNoLogging),
			TopicConfig: maps.Clone(o.topicConfig),
		}
		if spec.TopicConfig == nil {
			spec.TopicConfig = make(map[string]string)
		}
		spec.TopicConfig["cleanup.policy"] = "delete" // entries of the same key must not be compacted away
		return spec
	}
	s := streamJoinStores{
		this:  window(suffixed(base, n.thisSuffix, n.thisStore)),
		other: window(suffixed(base, n.otherSuffix, n.otherStore)),
	}
	if kind != processors.InnerJoin {
		suffix := "-left-shared-join"
		if kind == processors.OuterJoin {
			suffix = "-outer-shared-join"
		}
		generated := "KSTREAM-OUTERSHARED-" + strings.TrimPrefix(n.thisStore, n.thisPrefix)
		s.outer = &state.Spec{
			Name: suffixed(base, suffix, generated) + "-store", Kind: state.JoinList, InMemory: o.b.inMemory(o.settings),
			Logged: !o.has(optNoLogging), TopicConfig: maps.Clone(o.topicConfig),
		}
	}
	if base == "" {
		o.noteImplicit(s.this, s.other, s.outer)
	}
	return s
}

func (o *operation) noteImplicit(stores ...*state.Spec) {
	for _, spec := range stores {
		if spec == nil {
			continue
		}
		implicit := logical.Implicit{Store: spec.Name}
		if spec.Logged {
			implicit.Changelog = spec.Name + "-changelog"
		}
		o.b.graph.AddImplicit(implicit)
	}
}
