package topology

import (
	"slices"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
)

// stream is what Stream and WindowedStream have in common. Its operators are functions, not methods: the compiler refuses types
// whose methods lead to ever larger instantiations of themselves.
type stream[K, V any] struct {
	b       *Builder
	node    *logical.Node
	key     serde.Serde[K] // nil if unknown
	value   serde.Serde[V]
	sources []string // the source nodes of its sub-topology
	// rekeyed says that a key may not be in the partition where its hash belongs: what needs that has to repartition first.
	rekeyed bool
	// joinTopic is the repartition that joins of this stream share.
	joinTopic *logical.Node
	// windows, if set, tells what the keys' windows are like.
	windows *windowInfo[K]
}

// windowInfo is what can't be told from the type of windowed keys.
type windowInfo[K any] struct {
	end func(K) int64
}

// operation is one operator being added: its settings, the node's name, and where it goes.
type operation struct {
	*settings
	b    *Builder
	name string
}

// operator starts an operator: it takes the node's name and checks that the user's function is there.
func (b *Builder) operator(opts []Option, allowed optionKind, prefix string, missing bool) *operation {
	s := newSettings(opts, allowed)
	o := &operation{settings: s, b: b, name: b.graph.NameOr(s.userName, prefix)}
	if missing {
		s.bad(plan.InvalidArgument, "the function is nil")
	}
	return o
}

// change says what a processor does to keys and values, for the merging of repartition topics.
type change int

const (
	changesNothing change = iota
	changesKeys
	changesValues
)

// add puts a processor below parents and reports the operator's problems.
func (o *operation) add(c change, p *logical.Processor, parents ...*logical.Node) *logical.Node {
	node := logical.NewNode(o.name, p)
	node.KeyChanging, node.ValueChanging = c == changesKeys, c == changesValues
	o.b.graph.Add(node, parents...)
	o.b.report(o.name, o.settings)
	return node
}

// same is a stream of the same keys and values below an operator.
func same[K, V any](s *stream[K, V], o *operation, c change, supplier processors.Supplier) *stream[K, V] {
	return revalued[K, V, V](s, o, c, supplier, s.value)
}

// revalued is a stream of the same keys with other values.
func revalued[K, V, V2 any](s *stream[K, V], o *operation, c change, supplier processors.Supplier, value serde.Serde[V2]) *stream[K, V2] {
	out := &stream[K, V2]{
		b: s.b, key: keySerde(o.settings, s.key), value: valueSerde(o.settings, value),
		sources: s.sources, rekeyed: s.rekeyed, windows: s.windows,
	}
	out.node = o.add(c, &logical.Processor{Supplier: supplier}, s.node)
	return out
}

// rekey is a stream of other keys.
func rekey[K, V, K2, V2 any](s *stream[K, V], o *operation, supplier processors.Supplier, value serde.Serde[V2]) *stream[K2, V2] {
	out := &stream[K2, V2]{
		b: s.b, key: keySerde(o.settings, inferred[K, K2](s.key)), value: valueSerde(o.settings, value),
		sources: s.sources, rekeyed: true,
	}
	out.node = o.add(changesKeys, &logical.Processor{Supplier: supplier}, s.node)
	return out
}

// statelessOptions are what operators without state take.
const statelessOptions = optName | serdeOptions

func filterStream[K, V any](s *stream[K, V], test func(K, V) (bool, error), not bool, opts []Option) *stream[K, V] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-FILTER-", test == nil)
	if not {
		return same(s, o, changesNothing, processors.FilterNot(test))
	}
	return same(s, o, changesNothing, processors.Filter(test))
}

func mapStream[K, V, K2, V2 any](s *stream[K, V], f func(K, V) (K2, V2, error), opts []Option) *stream[K2, V2] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-MAP-", f == nil)
	return rekey[K, V, K2](s, o, processors.Map(f), inferred[V, V2](s.value))
}

func mapStreamValues[K, V, V2 any](s *stream[K, V], f func(K, V) (V2, error), opts []Option) *stream[K, V2] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-MAPVALUES-", f == nil)
	return revalued(s, o, changesValues, processors.MapValues(f), inferred[V, V2](s.value))
}

func flatMapStream[K, V, K2, V2 any](s *stream[K, V], f func(K, V, func(K2, V2)) error, opts []Option) *stream[K2, V2] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-FLATMAP-", f == nil)
	return rekey[K, V, K2](s, o, processors.FlatMap(f), inferred[V, V2](s.value))
}

func flatMapStreamValues[K, V, V2 any](s *stream[K, V], f func(K, V, func(V2)) error, opts []Option) *stream[K, V2] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-FLATMAPVALUES-", f == nil)
	return revalued(s, o, changesValues, processors.FlatMapValues(f), inferred[V, V2](s.value))
}

func selectStreamKey[K, V, K2 any](s *stream[K, V], f func(K, V) (K2, error), opts []Option) *stream[K2, V] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-KEY-SELECT-", f == nil)
	return rekey[K, V, K2](s, o, processors.SelectKey(f), s.value)
}

func peekStream[K, V any](s *stream[K, V], f func(K, V) error, opts []Option) *stream[K, V] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-PEEK-", f == nil)
	return same(s, o, changesNothing, processors.Peek(f))
}

func forEachInStream[K, V any](s *stream[K, V], f func(K, V) error, opts []Option) {
	o := s.b.operator(opts, optName, "KSTREAM-FOREACH-", f == nil)
	o.add(changesNothing, &logical.Processor{Supplier: processors.ForEach(f)}, s.node)
}

func mergeStreams[K, V any](s, other *stream[K, V], opts []Option) *stream[K, V] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-MERGE-", false)
	out := &stream[K, V]{b: s.b, key: s.key, value: s.value, sources: s.sources, rekeyed: s.rekeyed, windows: s.windows}
	node := logical.NewNode(o.name, &logical.Processor{Supplier: processors.PassThrough[K, V]()})
	node.Merge = true
	parents := []*logical.Node{s.node}
	if o.together(other) {
		out.sources = union(s.sources, other.sources)
		out.rekeyed = s.rekeyed || other.rekeyed
		out.key, out.value = either(s.key, other.key), either(s.value, other.value)
		parents = append(parents, other.node)
	}
	out.key, out.value = keySerde(o.settings, out.key), valueSerde(o.settings, out.value)
	out.node = s.b.graph.Add(node, parents...)
	s.b.report(o.name, o.settings)
	return out
}

// together tells whether another stream can be used with this operator.
func (o *operation) together[K, V any](other *stream[K, V]) bool {
	if other == nil {
		o.bad(plan.InvalidArgument, "the other stream is nil")
		return false
	}
	return o.sameBuilder(other.b)
}

func (o *operation) sameBuilder(other *Builder) bool {
	if other != o.b {
		o.bad(plan.InvalidArgument, "the other side belongs to another Builder")
		return false
	}
	return true
}

func either[T any](a, b serde.Serde[T]) serde.Serde[T] {
	if a != nil {
		return a
	}
	return b
}

// union merges names of source nodes.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, name := range b {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
