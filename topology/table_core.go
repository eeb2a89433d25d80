package topology

import (
	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// table is what Table and WindowedTable have in common; see stream for why its operators are functions.
type table[K, V any] struct {
	b       *Builder
	node    *logical.Node
	key     serde.Serde[K] // nil if unknown
	value   serde.Serde[V]
	sources []string
	proc    processors.Table[K, V]
	spec    *state.Spec // of its own store; nil if it has none
	windows *windowInfo[K]
}

// transformPrefix begins generated names of TransformValues.
const transformPrefix = "KTABLE-TRANSFORMVALUES-"

// derived takes the options of a table that is computed from another one; more are those that it takes beside the usual ones. It has a
// store of its own only if the user names it; with other options for a store, or with Materialized, Kafka Streams takes a number, except
// for TransformValues.
func (b *Builder) derived(opts []Option, more optionKind, prefix string, missing bool) (*operation, *state.Spec) {
	s := newSettings(opts, statelessOptions|keyValueOptions|more)
	var spec *state.Spec
	switch {
	case namesStore(s):
		spec = b.keyValueStore(s, prefix, true).spec
	case s.has(anyMaterialized) && prefix != transformPrefix:
		b.graph.NewStoreName(prefix)
	}
	o := &operation{settings: s, b: b, name: b.graph.NameOr(s.userName, prefix)}
	s.needFunction(missing)
	return o, spec
}

// storeOf is spec with serdes, as operators take it; nil without a spec.
func storeOf[K, V any](o *operation, spec *state.Spec, key serde.Serde[K], value serde.Serde[V]) *processors.Store[K, V] {
	if spec == nil {
		return nil
	}
	o.needStoreSerdes(needSerdes(key, value))
	store := kept(o.b, processors.Store[K, V]{Name: spec.Name, Key: key, Value: value})
	return &store
}

// addTable puts a table's node below t.
func addTable[K, V, V2 any](t *table[K, V], o *operation, node *logical.Node, out *table[K, V2]) *table[K, V2] {
	if out.spec != nil {
		node.Versioned = logical.VersionedIf(out.spec.Kind == state.Versioned)
	} else if o.has(anyMaterialized) {
		node.Versioned = logical.Unversioned
	}
	out.b, out.node, out.sources, out.windows = t.b, node, t.sources, t.windows
	t.b.report(o.name, o.settings)
	t.b.graph.Add(node, t.node)
	return out
}

func filterTable[K, V any](t *table[K, V], keep func(K, V) (bool, error), not bool, opts []Option) *table[K, V] {
	o, spec := t.b.derived(opts, 0, "KTABLE-FILTER-", keep == nil)
	out := &table[K, V]{key: keySerde(o.settings, t.key), value: valueSerde(o.settings, t.value), spec: spec}
	proc := processors.NewTableFilter(t.proc, keep, not, storeOf(o, spec, out.key, out.value))
	out.proc = proc
	node := logical.NewNode(o.name, &logical.Processor{Supplier: proc, Stores: specs(spec)})
	node.UseVersioned = func(string) { proc.UseVersionedSemantics(true) }
	return addTable(t, o, node, out)
}

func mapTableValues[K, V, V2 any](t *table[K, V], f func(K, V) (V2, error), opts []Option) *table[K, V2] {
	o, spec := t.b.derived(opts, 0, "KTABLE-MAPVALUES-", f == nil)
	out := &table[K, V2]{
		key: keySerde(o.settings, t.key), value: valueSerde(o.settings, inferred[V, V2](t.value)), spec: spec,
	}
	out.proc = processors.NewTableMapValues(t.proc, f, storeOf(o, spec, out.key, out.value))
	return addTable(t, o, logical.NewNode(o.name, &logical.Processor{Supplier: out.proc, Stores: specs(spec)}), out)
}

func transformTableValues[K, V, V2 any](t *table[K, V], newTransformer func() processors.ValueTransformer[K, V, V2], opts []Option) *table[K, V2] {
	o, spec := t.b.derived(opts, optStores, transformPrefix, newTransformer == nil)
	out := &table[K, V2]{
		key: keySerde(o.settings, t.key), value: valueSerde(o.settings, inferred[V, V2](t.value)), spec: spec,
	}
	out.proc = processors.NewTableTransformValues(t.proc, newTransformer, storeOf(o, spec, out.key, out.value))
	p := &logical.Processor{Supplier: out.proc, Stores: specs(spec), Connect: o.connected()}
	return addTable(t, o, logical.NewNode(o.name, p), out)
}

func specs(spec *state.Spec) []*state.Spec {
	if spec == nil {
		return nil
	}
	return []*state.Spec{spec}
}

func streamOf[K, V any](t *table[K, V], opts []Option) *stream[K, V] {
	o := t.b.operator(opts, statelessOptions, "KTABLE-TOSTREAM-", false)
	out := &stream[K, V]{
		b: t.b, key: keySerde(o.settings, t.key), value: valueSerde(o.settings, t.value), sources: t.sources, windows: t.windows,
	}
	out.node = o.add(changesNothing, &logical.Processor{Supplier: processors.TableToStream[K, V]()}, t.node)
	return out
}

// toTable reads a stream as a table.
func toTable[K, V any](s *stream[K, V], opts []Option) *table[K, V] {
	b := s.b
	o := b.operator(opts, statelessOptions|keyValueOptions, "KSTREAM-TOTABLE-", false)
	m := b.keyValueStore(o.settings, "KSTREAM-TOTABLE-", true)
	key, value := keySerde(o.settings, s.key), valueSerde(o.settings, s.value)
	out := &table[K, V]{b: b, key: key, value: value, sources: s.sources, spec: m.spec, windows: s.windows}
	parent := s.node
	if s.rekeyed {
		parent = b.graph.Add(b.graph.NewRepartition(o.name, o.userName != "", throughTopic(b, key, value, partitioning[K, V]{})), s.node)
		out.sources = []string{parent.Name}
	}
	proc := processors.NewTableSource(kept(b, processors.Store[K, V]{Name: m.spec.Name, Key: key, Value: value}), m.queryable)
	out.proc = proc
	name := o.name
	op := &logical.Processor{Supplier: proc, Stores: []*state.Spec{m.spec}, Materialized: proc.Materialized}
	op.Check = func(pb *plan.Builder) {
		if err := needSerdes(key, value); err != nil && proc.Materialized() {
			pb.AddProblems(plan.Problem{Kind: plan.InvalidArgument, Node: name, Message: "rows can't be stored", Err: err, Missing: plan.MissingIn(err)})
		}
	}
	out.node = logical.NewNode(name, op)
	out.node.Versioned = logical.VersionedIf(m.spec.Kind == state.Versioned)
	b.report(name, o.settings)
	b.graph.Add(out.node, parent)
	return out
}
