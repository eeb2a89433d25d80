package golden

import (
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// tableNode is a table of any Go types.
type tableNode interface {
	node
	filter(b *build, p predicate, not bool, opts options) node
	mapValues(b *build, m typed, opts options) node
	toStream(opts options) streamNode
	groupBy(key, value typed, opts options) node
	suppress(b *build, how topology.Suppression, opts options) node
	join(b *build, j joinOp, other node) (node, error)
	joinForeign(b *build, j joinOp, key typed, other node) (node, error)
}

// table is a table of the topology with the types of the scenario. Keys of windowed results are windows.
type table[K, V any] struct {
	t    *topology.Table[K, V]
	k    goType[K]
	v    goType[V]
	both topicTypes
}

func (t *table[K, V]) types() topicTypes { return t.both }

// newTable makes the node, and notes the types of the table's store.
func newTable[K, V any](b *build, t *topology.Table[K, V], k goType[K], v goType[V], types topicTypes) *table[K, V] {
	b.noteStore(t.StoreName(), types)
	return &table[K, V]{t, k, v, types}
}

// newWindowTable makes the node of a windowed aggregation, whose store has the windows apart from the keys.
func newWindowTable[K, V any](b *build, t *topology.WindowedTable[K, V], k goType[K], v goType[V], types topicTypes) *table[topology.Window[K], V] {
	b.noteStore(t.StoreName(), topicTypes{types.key.plain(), types.value})
	return &table[topology.Window[K], V]{topology.FlattenTable(t), inWindows(k), v, types}
}

func (b *build) noteStore(name string, types topicTypes) {
	if name != "" {
		b.stores[name] = storeTypes{types.key, types.value, b.untimed[name]}
	}
}

func (t *table[K, V]) filter(b *build, p predicate, not bool, opts options) node {
	test := func(k K, v V) bool { return p(t.k.out(k), t.v.out(v)) }
	opts = serdes(opts, t.k, t.both.key, t.v, t.both.value)
	if not {
		return newTable(b, t.t.FilterNot(test, opts...), t.k, t.v, t.both)
	}
	return newTable(b, t.t.Filter(test, opts...), t.k, t.v, t.both)
}

func (t *table[K, V]) mapValues(b *build, m typed, opts options) node {
	if m.out == typeInt64 {
		return mapTableTo(b, t, m, nullableInt64, opts)
	}
	return mapTableTo(b, t, m, anyType, opts)
}

func mapTableTo[K, V, V2 any](b *build, t *table[K, V], m typed, out goType[V2], opts options) node {
	types := topicTypes{t.both.key, m.out}
	f := func(k K, v V) V2 { return out.in(m.f(t.k.out(k), t.v.out(v))) }
	return newTable(b, t.t.MapValuesWithKey(f, serdes(opts, t.k, types.key, out, types.value)...), t.k, out, types)
}

// toStream gives a stream whose values can be null.
func (t *table[K, V]) toStream(opts options) streamNode {
	if counts, ok := any(t.t).(*topology.Table[K, int64]); ok {
		return &stream[K, *int64]{topology.Changes(counts, opts...), t.k, nullableInt64, t.both.key, t.both.value}
	}
	return &stream[K, V]{t.t.ToStream(opts...), t.k, t.v, t.both.key, t.both.value}
}

func (t *table[K, V]) groupBy(key, value typed, opts options) node {
	if key.stays() {
		return groupTableBy(t, key, value, windowType, opts)
	}
	return groupTableBy(t, key, value, anyType, opts)
}

func groupTableBy[K, V, K2 any](t *table[K, V], key, value typed, k goType[K2], opts options) node {
	if value.out == typeInt64 {
		return groupTableTo(t, key, value, k, nullableInt64, opts)
	}
	return groupTableTo(t, key, value, k, anyType, opts)
}

func groupTableTo[K, V, K2, V2 any](t *table[K, V], key, value typed, k2 goType[K2], out goType[V2], opts options) node {
	f := func(k K, v V) (K2, V2) {
		kk, vv := t.k.out(k), t.v.out(v)
		return k2.in(key.f(kk, vv)), out.in(value.f(kk, vv))
	}
	types := topicTypes{key.out, value.out}
	return &groupedTable[K2, V2]{t.t.GroupBy(f, serdes(opts, k2, types.key, out, types.value)...), k2, out, types}
}

func (t *table[K, V]) suppress(b *build, how topology.Suppression, opts options) node {
	return newTable(b, t.t.Suppress(how, serdes(opts, t.k, t.both.key, t.v, t.both.value)...), t.k, t.v, t.both)
}

// groupedTable is a grouped table.
type groupedTable[K, V any] struct {
	g    *topology.GroupedTable[K, V]
	k    goType[K]
	v    goType[V]
	both topicTypes
}

func (g *groupedTable[K, V]) types() topicTypes { return g.both }

func (g *groupedTable[K, V]) storeKind() state.Kind { return state.TimestampedKeyValue }

func (g *groupedTable[K, V]) count(b *build, opts options) node {
	t := topicTypes{g.both.key, typeInt64}
	return newTable(b, g.g.Count(serdes(opts, g.k, t.key, int64Type, t.value)...), g.k, int64Type, t)
}

func (g *groupedTable[K, V]) reduce(b *build, r reducer, opts options) (node, error) {
	if r.sub == nil {
		return nil, unsupported("a reducer that can't take values out again, for a table")
	}
	opts = serdes(opts, g.k, g.both.key, g.v, g.both.value)
	return newTable(b, g.g.Reduce(reducing(r.add, g.v), reducing(r.sub, g.v), opts...), g.k, g.v, g.both), nil
}

func (g *groupedTable[K, V]) aggregate(b *build, a aggregator, opts options) (node, error) {
	if a.sub == nil {
		return nil, unsupported("an aggregator that can't take values out again, for a table")
	}
	if a.out == typeInt64 {
		return aggregateTableTo(b, g, a, nullableInt64, opts), nil
	}
	return aggregateTableTo(b, g, a, anyType, opts), nil
}

func aggregateTableTo[K, V, A any](b *build, g *groupedTable[K, V], a aggregator, out goType[A], opts options) node {
	f := folds[K, V, A]{a, g.k, g.v, out}
	t := g.g.Aggregate(f.init, f.add, f.sub, serdes(opts, g.k, g.both.key, out, a.out)...)
	return newTable(b, t, g.k, out, topicTypes{g.both.key, a.out})
}

// toTable reads a stream as a table.
func (s *stream[K, V]) toTable(b *build, opts options) node {
	t := s.s.ToTable(s.serdes(opts)...)
	return newTable(b, t, s.k, s.v, s.types())
}

// applyTable adds operators of tables, and those that streams and tables both have.
func (b *build) applyTable(op string, o *object) (known bool, err error) {
	switch op {
	case "filter", "filterNot":
		return true, b.filter(o, op == "filterNot")
	case "mapValues":
		return true, b.mapValues(o)
	case "toTable":
		s, err := as[streamNode](b, o, "from")
		if err == nil {
			b.put(o, s.toTable(b, append(named(o), b.materialized(o, state.TimestampedKeyValue)...)))
		}
		return true, err
	case "toStream":
		return true, b.toStream(o)
	case "suppress":
		t, err := as[tableNode](b, o, "from")
		if err == nil {
			how, opts := suppression(o.obj("suppress"))
			b.put(o, t.suppress(b, how, append(named(o), opts...)))
		}
		return true, err
	}
	return false, nil
}

// derived are the options of a table that is materialized only if the op says so.
func (b *build) derived(o *object) options {
	opts := named(o)
	if o.has("materialized") {
		opts = append(opts, b.materialized(o, state.TimestampedKeyValue)...)
	}
	return opts
}

func (b *build) filter(o *object, not bool) error {
	p, err := parsePredicate(o.str("predicate"))
	if err != nil {
		return err
	}
	switch from := b.node(o, "from").(type) {
	case streamNode:
		b.put(o, from.filter(p, not, named(o)))
	case tableNode:
		b.put(o, from.filter(b, p, not, b.derived(o)))
	default:
		return unsupported("a filter of a %T", from)
	}
	return nil
}

func (b *build) mapValues(o *object) error {
	from := b.node(o, "from")
	if from == nil {
		return nil // noted
	}
	m, err := parseMapper(o.str("mapper"), from.types().key, from.types().value)
	if err != nil {
		return err
	}
	switch from := from.(type) {
	case streamNode:
		b.put(o, from.mapValues(m, named(o)))
	case tableNode:
		b.put(o, from.mapValues(b, m, b.derived(o)))
	default:
		return unsupported("mapValues of a %T", from)
	}
	return nil
}

// toStream with a selector is toStream followed by selectKey, in Kafka Streams too.
func (b *build) toStream(o *object) error {
	t, err := as[tableNode](b, o, "from")
	if err != nil {
		return err
	}
	s := t.toStream(named(o))
	if !o.has("selector") {
		b.put(o, s)
		return nil
	}
	m, err := parseSelector(o.str("selector"), s.types().key, s.types().value)
	if err != nil {
		return err
	}
	b.put(o, s.selectKey(m, nil))
	return nil
}

func suppression(o *object) (topology.Suppression, options) {
	defer o.finish()
	var how topology.Suppression
	switch o.str("until") {
	case "windowCloses":
		how = topology.UntilWindowCloses()
	case "timeLimit":
		how = topology.UntilTimeLimit(ms(o.int("ms")))
	default:
		o.unsupported("suppression until %q", o.str("until"))
	}
	if o.has("maxRecords") {
		how = how.MaxRecords(o.int("maxRecords"))
	}
	if o.has("maxBytes") {
		how = how.MaxBytes(o.int("maxBytes"))
	}
	switch o.str("full") {
	case "emitEarly":
		how = how.EmitEarlyWhenFull()
	case "shutDown":
		how = how.ShutDownWhenFull()
	}
	if !o.boolOr("logging", true) {
		return how, options{topology.NoLogging()}
	}
	return how, nil
}
