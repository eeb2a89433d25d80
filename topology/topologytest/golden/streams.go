package golden

import (
	"slices"

	"github.com/tributary-io/tributary/topology"
)

// options are those of the library, as an operator collects them.
type options = []topology.Option

// node is what an id of a scenario names: a stream, a table, a grouping.
type node interface {
	// types are those of the keys and values.
	types() topicTypes
}

// streamNode is a stream of any Go types.
type streamNode interface {
	node
	filter(p predicate, not bool, opts options) node
	mapValues(m typed, opts options) node
	mapBoth(key, value typed, opts options) node
	flatMap(f flat, opts options) node
	flatMapValues(f flatValues, opts options) node
	selectKey(m typed, opts options) node
	peek(f func(k, v any), opts options) node
	forEach(f func(k, v any), opts options)
	split(branches []branch, def *branch, opts options) map[string]node
	merge(other node, opts options) (node, error)
	repartition(opts options) node
	toTable(b *build, opts options) node
	to(topic string, opts options)
	toDynamic(prefix string, m typed, opts options)
	process(k kind, opts options) node
	processValues(k kind, opts options) node
	groupByKey(opts options) node
	groupBy(m typed, opts options) node
	joinStream(j joinOp, other node, w topology.JoinWindows) (node, error)
	joinTable(j joinOp, right node) (node, error)
	joinGlobal(j joinOp, key typed, right node) (node, error)
}

// stream is a stream of the topology with the types of the scenario.
type stream[K, V any] struct {
	s      *topology.Stream[K, V]
	k      goType[K]
	v      goType[V]
	kt, vt Type
}

func (s *stream[K, V]) types() topicTypes { return topicTypes{s.kt, s.vt} }

// with is s after an operator that keeps the types.
func (s *stream[K, V]) with(t *topology.Stream[K, V]) *stream[K, V] {
	return &stream[K, V]{t, s.k, s.v, s.kt, s.vt}
}

// apply calls a function of the vocabulary.
func (s *stream[K, V]) apply(f function) func(K, V) any {
	return func(k K, v V) any { return f(s.k.out(k), s.v.out(v)) }
}

// keyBy makes keys with a selector.
func (s *stream[K, V]) keyBy[K2 any](m typed, key goType[K2]) func(K, V) K2 {
	return func(k K, v V) K2 { return key.in(m.f(s.k.out(k), s.v.out(v))) }
}

func (s *stream[K, V]) keyOption() topology.Option { return topology.KeySerde(s.k.serde(s.kt)) }

func (s *stream[K, V]) valueOption() topology.Option { return topology.ValueSerde(s.v.serde(s.vt)) }

func (s *stream[K, V]) test(p predicate) func(K, V) bool {
	return func(k K, v V) bool { return p(s.k.out(k), s.v.out(v)) }
}

// serdes adds the serdes of the stream to an operator that keeps its types.
func (s *stream[K, V]) serdes(opts options) options {
	return append(opts, s.keyOption(), s.valueOption())
}

func (s *stream[K, V]) filter(p predicate, not bool, opts options) node {
	opts = s.serdes(opts)
	if not {
		return s.with(s.s.FilterNot(s.test(p), opts...))
	}
	return s.with(s.s.Filter(s.test(p), opts...))
}

func (s *stream[K, V]) mapValues(m typed, opts options) node {
	if m.out == typeInt64 {
		return mapValuesTo(s, m, nullableInt64, opts)
	}
	return mapValuesTo(s, m, anyType, opts)
}

func mapValuesTo[K, V, V2 any](s *stream[K, V], m typed, out goType[V2], opts options) node {
	opts = append(opts, s.keyOption(), topology.ValueSerde(out.serde(m.out)))
	var t *topology.Stream[K, V2]
	if m.withKey {
		t = s.s.MapValuesWithKey(func(k K, v V) V2 { return out.in(m.f(s.k.out(k), s.v.out(v))) }, opts...)
	} else {
		t = s.s.MapValues(func(v V) V2 { return out.in(m.f(nil, s.v.out(v))) }, opts...)
	}
	return &stream[K, V2]{t, s.k, out, s.kt, m.out}
}

func (s *stream[K, V]) mapBoth(key, value typed, opts options) node {
	if key.stays() {
		return mapBy(s, key, value, windowType, opts)
	}
	return mapBy(s, key, value, anyType, opts)
}

func mapBy[K, V, K2 any](s *stream[K, V], key, value typed, k goType[K2], opts options) node {
	if value.out == typeInt64 {
		return mapTo(s, key, value, k, nullableInt64, opts)
	}
	return mapTo(s, key, value, k, anyType, opts)
}

func mapTo[K, V, K2, V2 any](s *stream[K, V], key, value typed, k2 goType[K2], out goType[V2], opts options) node {
	keyOf, valueOf := s.apply(key.f), s.apply(value.f)
	opts = append(opts, topology.KeySerde(k2.serde(key.out)), topology.ValueSerde(out.serde(value.out)))
	t := s.s.Map(func(k K, v V) (K2, V2) { return k2.in(keyOf(k, v)), out.in(valueOf(k, v)) }, opts...)
	return &stream[K2, V2]{t, k2, out, key.out, value.out}
}

func (s *stream[K, V]) flatMap(f flat, opts options) node {
	if f.key.isWindowed() {
		return flatMapBy(s, f, windowType, opts)
	}
	return flatMapBy(s, f, anyType, opts)
}

func flatMapBy[K, V, K2 any](s *stream[K, V], f flat, key goType[K2], opts options) node {
	if f.value == typeInt64 {
		return flatMapTo(s, f, key, nullableInt64, opts)
	}
	return flatMapTo(s, f, key, anyType, opts)
}

func flatMapTo[K, V, K2, V2 any](s *stream[K, V], f flat, key goType[K2], out goType[V2], opts options) node {
	opts = append(opts, topology.KeySerde(key.serde(f.key)), topology.ValueSerde(out.serde(f.value)))
	t := s.s.FlatMap(func(k K, v V, emit func(K2, V2)) {
		for _, p := range f.f(s.k.out(k), s.v.out(v)) {
			emit(key.in(p.key), out.in(p.value))
		}
	}, opts...)
	return &stream[K2, V2]{t, key, out, f.key, f.value}
}

func (s *stream[K, V]) flatMapValues(f flatValues, opts options) node {
	if f.out == typeInt64 {
		return flatMapValuesTo(s, f, nullableInt64, opts)
	}
	return flatMapValuesTo(s, f, anyType, opts)
}

func flatMapValuesTo[K, V, V2 any](s *stream[K, V], f flatValues, out goType[V2], opts options) node {
	opts = append(opts, s.keyOption(), topology.ValueSerde(out.serde(f.out)))
	t := s.s.FlatMapValuesWithKey(func(k K, v V, emit func(V2)) {
		for _, x := range f.f(s.k.out(k), s.v.out(v)) {
			emit(out.in(x))
		}
	}, opts...)
	return &stream[K, V2]{t, s.k, out, s.kt, f.out}
}

func (s *stream[K, V]) selectKey(m typed, opts options) node {
	if m.stays() {
		return selectKeyTo(s, m, windowType, opts)
	}
	return selectKeyTo(s, m, anyType, opts)
}

func selectKeyTo[K, V, K2 any](s *stream[K, V], m typed, key goType[K2], opts options) node {
	opts = append(opts, topology.KeySerde(key.serde(m.out)), s.valueOption())
	return &stream[K2, V]{s.s.SelectKey(s.keyBy(m, key), opts...), key, s.v, m.out, s.vt}
}

func (s *stream[K, V]) action(f func(k, v any)) func(K, V) {
	return func(k K, v V) { f(s.k.out(k), s.v.out(v)) }
}

func (s *stream[K, V]) peek(f func(k, v any), opts options) node {
	return s.with(s.s.Peek(s.action(f), s.serdes(opts)...))
}

func (s *stream[K, V]) forEach(f func(k, v any), opts options) { s.s.ForEach(s.action(f), opts...) }

// branch is a branch of a split.
type branch struct {
	id   string
	when predicate
	opts options
}

func (s *stream[K, V]) split(branches []branch, def *branch, opts options) map[string]node {
	split, out := s.s.Split(opts...), map[string]node{}
	for _, b := range branches {
		out[b.id] = s.with(split.Branch(s.test(b.when), b.opts...))
	}
	if def != nil {
		out[def.id] = s.with(split.Default(def.opts...))
	}
	return out
}

func (s *stream[K, V]) merge(other node, opts options) (node, error) {
	o, ok := other.(*stream[K, V])
	if !ok {
		return nil, unsupported("a merge of %T with %T", s, other)
	}
	return s.with(s.s.Merge(o.s, s.serdes(opts)...)), nil
}

func (s *stream[K, V]) repartition(opts options) node {
	return s.with(s.s.Repartition(s.serdes(opts)...))
}

func (s *stream[K, V]) to(topic string, opts options) {
	s.s.To(topic, s.serdes(opts)...)
}

func (s *stream[K, V]) toDynamic(prefix string, m typed, opts options) {
	name := s.apply(m.f)
	s.s.ToDynamic(func(k K, v V) string { return prefix + text(name(k, v)) }, s.serdes(opts)...)
}

func (s *stream[K, V]) process(k kind, opts options) node {
	if k.key.isWindowed() {
		return processBy(s, k, windowType, opts)
	}
	return processBy(s, k, anyType, opts)
}

func processBy[K, V, K2 any](s *stream[K, V], k kind, key goType[K2], opts options) node {
	if k.value == typeInt64 {
		return processTo(s, k, key, nullableInt64, opts)
	}
	return processTo(s, k, key, anyType, opts)
}

func processTo[K, V, K2, V2 any](s *stream[K, V], k kind, key goType[K2], out goType[V2], opts options) node {
	opts = append(slices.Clip(opts), topology.KeySerde(key.serde(k.key)), topology.ValueSerde(out.serde(k.value)))
	t := s.s.Process(asProcessor(k, s.k, s.v, key, out), opts...)
	return &stream[K2, V2]{t, key, out, k.key, k.value}
}

func (s *stream[K, V]) processValues(k kind, opts options) node {
	if k.value == typeInt64 {
		return processValuesTo(s, k, nullableInt64, opts)
	}
	return processValuesTo(s, k, anyType, opts)
}

func processValuesTo[K, V, V2 any](s *stream[K, V], k kind, out goType[V2], opts options) node {
	opts = append(slices.Clip(opts), s.keyOption(), topology.ValueSerde(out.serde(k.value)))
	t := s.s.ProcessValues(asFixedKeyProcessor(k, s.k, s.v, out), opts...)
	return &stream[K, V2]{t, s.k, out, s.kt, k.value}
}
