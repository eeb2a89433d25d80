package golden

import (
	"time"

	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// groupedNode is something that can be aggregated: a grouped stream, with or without windows, or a grouped table.
type groupedNode interface {
	node
	// storeKind is the kind of store that the aggregate is kept in.
	storeKind() state.Kind
	count(b *build, opts options) node
	reduce(b *build, r reducer, opts options) (node, error)
	aggregate(b *build, a aggregator, opts options) (node, error)
}

// grouped is a grouped stream.
type grouped[K, V any] struct {
	g    *topology.GroupedStream[K, V]
	k    goType[K]
	v    goType[V]
	both topicTypes
}

func (g *grouped[K, V]) types() topicTypes { return g.both }

func (g *grouped[K, V]) storeKind() state.Kind { return state.TimestampedKeyValue }

func (s *stream[K, V]) groupByKey(opts options) node {
	return &grouped[K, V]{s.s.GroupByKey(append(opts, s.keyOption(), s.valueOption())...), s.k, s.v, s.types()}
}

func (s *stream[K, V]) groupBy(m typed, opts options) node {
	if m.stays() {
		return groupStreamTo(s, m, windowType, opts)
	}
	return groupStreamTo(s, m, anyType, opts)
}

func groupStreamTo[K, V, K2 any](s *stream[K, V], m typed, key goType[K2], opts options) node {
	opts = append(opts, topology.KeySerde(key.serde(m.out)), s.valueOption())
	return &grouped[K2, V]{s.s.GroupBy(s.keyBy(m, key), opts...), key, s.v, topicTypes{m.out, s.vt}}
}

// folds calls the functions of an aggregator with the Go types of keys, values and aggregates.
type folds[K, V, A any] struct {
	a   aggregator
	key goType[K]
	val goType[V]
	agg goType[A]
}

func (f folds[K, V, A]) init() A { return f.agg.in(f.a.init()) }

func (f folds[K, V, A]) add(k K, v V, g A) A {
	return f.agg.in(f.a.add(f.key.out(k), f.val.out(v), f.agg.out(g)))
}

func (f folds[K, V, A]) sub(k K, v V, g A) A {
	return f.agg.in(f.a.sub(f.key.out(k), f.val.out(v), f.agg.out(g)))
}

func (f folds[K, V, A]) merge(k K, x, y A) A {
	return f.agg.in(f.a.merge(f.key.out(k), f.agg.out(x), f.agg.out(y)))
}

// reducing calls a function of a reducer with the Go type of values.
func reducing[V any](f func(a, v any) any, t goType[V]) func(a, v V) V {
	return func(a, v V) V { return t.in(f(t.out(a), t.out(v))) }
}

func serdes[K, V any](opts options, k goType[K], kt Type, v goType[V], vt Type) options {
	return append(opts, topology.KeySerde(k.serde(kt)), topology.ValueSerde(v.serde(vt)))
}

func (g *grouped[K, V]) count(b *build, opts options) node {
	t := topicTypes{g.both.key, typeInt64}
	return newTable(b, g.g.Count(serdes(opts, g.k, t.key, int64Type, t.value)...), g.k, int64Type, t)
}

func (g *grouped[K, V]) reduce(b *build, r reducer, opts options) (node, error) {
	t := g.g.Reduce(reducing(r.add, g.v), serdes(opts, g.k, g.both.key, g.v, g.both.value)...)
	return newTable(b, t, g.k, g.v, g.both), nil
}

func (g *grouped[K, V]) aggregate(b *build, a aggregator, opts options) (node, error) {
	if a.out == typeInt64 {
		return aggregateTo(b, g, a, nullableInt64, opts), nil
	}
	return aggregateTo(b, g, a, anyType, opts), nil
}

func aggregateTo[K, V, A any](b *build, g *grouped[K, V], a aggregator, out goType[A], opts options) node {
	f := folds[K, V, A]{a, g.k, g.v, out}
	t := g.g.Aggregate(f.init, f.add, serdes(opts, g.k, g.both.key, out, a.out)...)
	return newTable(b, t, g.k, out, topicTypes{g.both.key, a.out})
}

// windowed is a stream grouped by key and window.
type windowed[K, V any] struct {
	g    *topology.WindowedGroups[K, V]
	k    goType[K]
	v    goType[V]
	both topicTypes // of keys without their windows, and of values
	key  Type       // of keys in windows
}

func (g *windowed[K, V]) types() topicTypes { return g.both }

func (g *windowed[K, V]) storeKind() state.Kind { return state.TimestampedWindow }

func (g *windowed[K, V]) count(b *build, opts options) node {
	t := g.g.Count(serdes(opts, g.k, g.both.key, int64Type, typeInt64)...)
	return newWindowTable(b, t, g.k, int64Type, topicTypes{g.key, typeInt64})
}

func (g *windowed[K, V]) reduce(b *build, r reducer, opts options) (node, error) {
	t := g.g.Reduce(reducing(r.add, g.v), serdes(opts, g.k, g.both.key, g.v, g.both.value)...)
	return newWindowTable(b, t, g.k, g.v, topicTypes{g.key, g.both.value}), nil
}

func (g *windowed[K, V]) aggregate(b *build, a aggregator, opts options) (node, error) {
	if a.out == typeInt64 {
		return aggregateWindowsTo(b, g, a, nullableInt64, opts), nil
	}
	return aggregateWindowsTo(b, g, a, anyType, opts), nil
}

func aggregateWindowsTo[K, V, A any](b *build, g *windowed[K, V], a aggregator, out goType[A], opts options) node {
	f := folds[K, V, A]{a, g.k, g.v, out}
	t := g.g.Aggregate(f.init, f.add, serdes(opts, g.k, g.both.key, out, a.out)...)
	return newWindowTable(b, t, g.k, out, topicTypes{g.key, a.out})
}

// sessions is a stream grouped by key and session.
type sessions[K, V any] struct {
	g    *topology.SessionGroups[K, V]
	k    goType[K]
	v    goType[V]
	both topicTypes
}

func (g *sessions[K, V]) types() topicTypes { return g.both }

func (g *sessions[K, V]) storeKind() state.Kind { return state.Session }

func (g *sessions[K, V]) count(b *build, opts options) node {
	t := g.g.Count(serdes(opts, g.k, g.both.key, int64Type, typeInt64)...)
	return newWindowTable(b, t, g.k, int64Type, topicTypes{g.both.key.sessionWindowed(), typeInt64})
}

func (g *sessions[K, V]) reduce(b *build, r reducer, opts options) (node, error) {
	t := g.g.Reduce(reducing(r.add, g.v), serdes(opts, g.k, g.both.key, g.v, g.both.value)...)
	return newWindowTable(b, t, g.k, g.v, topicTypes{g.both.key.sessionWindowed(), g.both.value}), nil
}

func (g *sessions[K, V]) aggregate(b *build, a aggregator, opts options) (node, error) {
	if a.out == typeInt64 {
		return aggregateSessionsTo(b, g, a, nullableInt64, opts), nil
	}
	return aggregateSessionsTo(b, g, a, anyType, opts), nil
}

func aggregateSessionsTo[K, V, A any](b *build, g *sessions[K, V], a aggregator, out goType[A], opts options) node {
	f := folds[K, V, A]{a, g.k, g.v, out}
	t := g.g.Aggregate(f.init, f.add, f.merge, serdes(opts, g.k, g.both.key, out, a.out)...)
	return newWindowTable(b, t, g.k, out, topicTypes{g.both.key.sessionWindowed(), a.out})
}

// windowSpec is a windows object of the format.
type windowSpec struct {
	session  bool
	windows  topology.Windows
	sessions topology.SessionWindows
	key      func(Type) Type // the type of keys within such windows
}

func parseWindows(o *object) windowSpec {
	grace := ms(o.int("grace"))
	defer o.finish()
	switch o.str("type") {
	case "tumbling", "hopping":
		size := o.int("size")
		w := windowSpec{windows: topology.Tumbling(ms(size)), key: func(t Type) Type { return t.timeWindowed(size) }}
		if o.has("advance") {
			w.windows = topology.Hopping(ms(size), ms(o.int("advance")))
		}
		if grace != 0 {
			w.windows = w.windows.Grace(grace)
		}
		return w
	case "sliding":
		diff := o.int("diff")
		return windowSpec{windows: topology.Sliding(ms(diff)).Grace(grace), key: func(t Type) Type { return t.timeWindowed(diff) }}
	case "session":
		return windowSpec{session: true, sessions: topology.Session(ms(o.int("gap"))).Grace(grace), key: Type.sessionWindowed}
	case "unlimited":
		start := time.UnixMilli(o.int("start"))
		return windowSpec{windows: topology.Unlimited(start), key: func(t Type) Type { return t.timeWindowed(maxInt64) }}
	}
	o.unsupported("windows of type %q", o.str("type"))
	return windowSpec{key: Type.plain}
}

const maxInt64 = 1<<63 - 1

// windowable is a grouped stream that can be cut into windows.
type windowable interface {
	windowedBy(w windowSpec, opts options) (node, error)
}

func (g *grouped[K, V]) windowedBy(w windowSpec, opts options) (node, error) {
	switch g := any(g).(type) {
	case *grouped[any, V]:
		return windowGroups(g, w, opts), nil
	case *grouped[topology.Window[any], V]:
		return windowGroups(g, w, opts), nil
	}
	return nil, unsupported("windows of windows of windows")
}

func windowGroups[K, V any](g *grouped[K, V], w windowSpec, opts options) node {
	if w.session {
		return &sessions[K, V]{g.g.Sessions(w.sessions, opts...), g.k, g.v, g.both}
	}
	return &windowed[K, V]{g.g.Windowed(w.windows, opts...), g.k, g.v, g.both, w.key(g.both.key)}
}

// applyGrouping adds groupings, windows and aggregations.
func (b *build) applyGrouping(op string, o *object) (known bool, err error) {
	switch op {
	case "groupByKey":
		s, err := as[streamNode](b, o, "from")
		if err == nil {
			b.put(o, s.groupByKey(named(o)))
		}
		return true, err
	case "groupBy":
		return true, b.groupBy(o)
	case "windowedBy":
		return true, b.windowedBy(o)
	case "count", "reduce", "aggregate":
		g, err := as[groupedNode](b, o, "from")
		if err != nil {
			return true, err
		}
		n, err := b.aggregate(op, o, g)
		if err == nil {
			b.put(o, n)
		}
		return true, err
	case "cogroup":
		return true, b.cogroup(o)
	}
	return false, nil
}

func (b *build) groupBy(o *object) error {
	from := b.node(o, "from")
	if from == nil {
		return nil // noted
	}
	t := from.types()
	key, err := parseSelector(o.str("selector"), t.key, t.value)
	if err != nil {
		return err
	}
	switch from := from.(type) {
	case streamNode:
		b.put(o, from.groupBy(key, named(o)))
		return nil
	case tableNode:
		value, err := parseMapper(o.strOr("mapper", "identity"), t.key, t.value)
		if err != nil {
			return err
		}
		b.put(o, from.groupBy(key, value, named(o)))
		return nil
	}
	return unsupported("groupBy of a %T", from)
}

func (b *build) windowedBy(o *object) error {
	g, err := as[windowable](b, o, "from")
	if err != nil {
		return err
	}
	var opts options
	switch o.strOr("emit", "onWindowUpdate") {
	case "onWindowClose":
		opts = append(opts, topology.EmitOnClose())
	case "onWindowUpdate":
	default:
		return unsupported("emit strategy %q", o.str("emit"))
	}
	n, err := g.windowedBy(parseWindows(o.obj("windows")), opts)
	if err == nil {
		b.put(o, n)
	}
	return err
}

func (b *build) aggregate(op string, o *object, g groupedNode) (node, error) {
	opts := append(named(o), b.materialized(o, g.storeKind())...)
	switch op {
	case "count":
		return g.count(b, opts), nil
	case "reduce":
		r, err := parseReducer(o.str("reducer"))
		if err != nil {
			return nil, err
		}
		return g.reduce(b, r, opts)
	}
	a, err := parseAggregator(o.str("aggregator"), g.types().value)
	if err != nil {
		return nil, err
	}
	return g.aggregate(b, a, opts)
}
