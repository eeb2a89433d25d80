package topology

import (
	"slices"
	"strconv"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// Cogrouped is several grouped streams that are aggregated into one table (KIP-150). It starts with Cogroup of a grouped stream, and
// each Cogroup adds another one with an aggregator of its own.
type Cogrouped[K, A any] struct{ c *cogrouped[K, A] }

type cogrouped[K, A any] struct {
	b      *Builder
	key    serde.Serde[K]
	inputs []cogroupInput[K, A]
	nodes  []*logical.Node // behind which each input's records are together; made by the first aggregation
}

// cogroupInput is one input without the type of its values.
type cogroupInput[K, A any] struct {
	group       any // the *grouped that it is
	rekeyed     bool
	sources     []string
	node        *logical.Node
	topicName   string
	repartition func(base string, named bool) *logical.Node

	table    func(init func() (A, error), store processors.Store[K, A]) processors.Table[K, A]
	windows  func(init func() (A, error), w Windows, e processors.Emit, store processors.Store[K, A]) processors.Table[Window[K], A]
	sessions func(init func() (A, error), merge func(K, A, A) (A, error), w SessionWindows, e processors.Emit, store processors.Store[K, A]) processors.Table[Window[K], A]
}

// Cogroup starts an aggregation of several grouped streams.
func (g *GroupedStream[K, V]) Cogroup[A any](add func(key K, value V, agg A) A) *Cogrouped[K, A] {
	return g.TryCogroup(lift3(add))
}

// TryCogroup is Cogroup with a function that may fail.
func (g *GroupedStream[K, V]) TryCogroup[A any](add func(key K, value V, agg A) (A, error)) *Cogrouped[K, A] {
	c := &cogrouped[K, A]{b: g.g.in.b, key: g.g.key}
	c.inputs = append(c.inputs, newCogroupInput(g.g, add))
	return &Cogrouped[K, A]{c}
}

// Cogroup adds another grouped stream, with the same keys and perhaps other values. A stream that is there already gets add in place of the
// aggregator that it had, as in Kafka Streams.
func (c *Cogrouped[K, A]) Cogroup[V any](g *GroupedStream[K, V], add func(key K, value V, agg A) A) *Cogrouped[K, A] {
	return c.TryCogroup(g, lift3(add))
}

// TryCogroup is Cogroup with a function that may fail.
func (c *Cogrouped[K, A]) TryCogroup[V any](g *GroupedStream[K, V], add func(key K, value V, agg A) (A, error)) *Cogrouped[K, A] {
	if g == nil || g.g.in.b != c.c.b {
		c.c.b.graph.Problem(plan.InvalidArgument, "Cogroup", "the grouped stream is nil or belongs to another Builder")
		return c
	}
	more := &cogrouped[K, A]{b: c.c.b, key: either(c.c.key, g.g.key)}
	more.inputs = append(more.inputs, c.c.inputs...)
	input := newCogroupInput(g.g, add)
	if i := slices.IndexFunc(more.inputs, func(in cogroupInput[K, A]) bool { return in.group == input.group }); i >= 0 {
		more.inputs[i] = input
	} else {
		more.inputs = append(more.inputs, input)
	}
	return &Cogrouped[K, A]{more}
}

func newCogroupInput[K, V, A any](g *grouped[K, V], add func(K, V, A) (A, error)) cogroupInput[K, A] {
	b := g.in.b
	if add == nil {
		b.graph.Problem(plan.InvalidArgument, g.in.node.Name+" Cogroup", "the function is nil")
	}
	aggregation := func(init func() (A, error), merge func(K, A, A) (A, error)) processors.Aggregation[K, V, A] {
		return processors.Aggregating(init, add, nil, merge)
	}
	return cogroupInput[K, A]{
		group: g, rekeyed: g.in.rekeyed, sources: g.in.sources, node: g.in.node, topicName: g.topicName,
		repartition: func(base string, named bool) *logical.Node {
			return b.graph.NewRepartition(base, named, throughTopic(b, g.key, g.value, partitioning[K, V]{}))
		},
		table: func(init func() (A, error), store processors.Store[K, A]) processors.Table[K, A] {
			return processors.NewAggregate(aggregation(init, nil), store)
		},
		windows: func(init func() (A, error), w Windows, e processors.Emit, store processors.Store[K, A]) processors.Table[Window[K], A] {
			return newWindowAggregate(aggregation(init, nil), w, e, store)
		},
		sessions: func(init func() (A, error), merge func(K, A, A) (A, error), w SessionWindows, e processors.Emit, store processors.Store[K, A]) processors.Table[Window[K], A] {
			return processors.NewSessionAggregate(aggregation(init, merge), w.sessions(), e, store)
		},
	}
}

// Aggregate starts each key with what init gives, and adds the values of all inputs.
func (c *Cogrouped[K, A]) Aggregate[_ onUse](init func() A, opts ...Option) *Table[K, A] {
	return c.TryAggregate(lift0(init), opts...)
}

// TryAggregate is Aggregate with a function that may fail.
func (c *Cogrouped[K, A]) TryAggregate[_ onUse](init func() (A, error), opts ...Option) *Table[K, A] {
	b := c.c.b
	s := newSettings(opts, aggregateOptions)
	s.needFunction(init == nil)
	m := b.keyValueStore(s, cogroupPrefix, true)
	o, store := startCogroup(c.c, s, m)
	parents := c.c.repartitioned(m)
	agg := &cogroupNodes{o: o, m: m, versioned: logical.VersionedIf(m.spec.Kind == state.Versioned)}
	var tables []processors.Table[K, A]
	for i, in := range c.c.inputs {
		t := in.table(init, store)
		tables = append(tables, t)
		agg.add(i, t, parents[i])
	}
	proc := processors.NewTablePassThrough(tables, store)
	return &Table[K, A]{&table[K, A]{
		b: b, node: agg.merge(proc), key: store.Key, value: store.Value, sources: c.c.sources(parents), proc: proc, spec: m.spec,
	}}
}

const cogroupPrefix = "COGROUPKSTREAM-AGGREGATE-"

func startCogroup[K, A any](c *cogrouped[K, A], s *settings, m materialized) (*operation, processors.Store[K, A]) {
	o := &operation{settings: s, b: c.b}
	fallback, _ := serde.Default[A]()
	store := kept(c.b, processors.Store[K, A]{Name: m.spec.Name, Key: keySerde(s, c.key), Value: valueSerde(s, fallback)})
	o.needStoreSerdes(needSerdes(store.Key, store.Value))
	return o, store
}

// repartitioned are the nodes behind which each input's records are together. Later aggregations share them, but take numbers.
func (c *cogrouped[K, A]) repartitioned(m materialized) []*logical.Node {
	first := c.nodes == nil
	for _, in := range c.inputs {
		node := in.node
		if in.rekeyed {
			base := in.topicName
			if base == "" {
				base = m.spec.Name
			}
			node = in.repartition(base, in.topicName != "" || m.queryable)
			if first {
				c.b.graph.Add(node, in.node)
			}
		}
		if first {
			c.nodes = append(c.nodes, node)
		}
	}
	c.b.graph.Copartition(c.sources(c.nodes))
	return c.nodes
}

func (c *cogrouped[K, A]) sources(nodes []*logical.Node) []string {
	var all []string
	for i, in := range c.inputs {
		if in.rekeyed {
			all = union(all, []string{nodes[i].Name})
		} else {
			all = union(all, in.sources)
		}
	}
	return all
}

// cogroupNodes adds the aggregation of each input, and the node that merges them.
type cogroupNodes struct {
	o         *operation
	m         materialized
	versioned logical.Versioning
	grace     *logical.WindowGrace
	nodes     []*logical.Node
}

func (c *cogroupNodes) add(i int, supplier processors.Supplier, parent *logical.Node) {
	g := c.o.b.graph
	name := g.SuffixOr(c.o.userName, "-cogroup-agg-"+strconv.Itoa(i), cogroupPrefix)
	node := logical.NewNode(name, &logical.Processor{Supplier: supplier, Stores: []*state.Spec{c.m.spec}})
	node.Versioned, node.Grace = c.versioned, c.grace
	c.nodes = append(c.nodes, g.Add(node, parent))
}

func (c *cogroupNodes) merge(supplier processors.Supplier) *logical.Node {
	g := c.o.b.graph
	c.o.name = g.SuffixOr(c.o.userName, "-cogroup-merge", "COGROUPKSTREAM-MERGE-")
	c.o.b.report(c.o.name, c.o.settings)
	return g.Add(logical.NewNode(c.o.name, &logical.Processor{Supplier: supplier}), c.nodes...)
}

// CogroupedWindows is a Cogrouped by windows of time.
type CogroupedWindows[K, A any] struct {
	c       *cogrouped[K, A]
	windows Windows
}

// Windowed aggregates each key's records by windows of time.
func (c *Cogrouped[K, A]) Windowed[_ onUse](w Windows) *CogroupedWindows[K, A] {
	s := &settings{}
	w.check(s)
	c.c.b.report("Cogroup Windowed", s)
	return &CogroupedWindows[K, A]{c.c, w}
}

// Aggregate starts each key and window with what init gives, and adds the values of all inputs.
func (c *CogroupedWindows[K, A]) Aggregate[_ onUse](init func() A, opts ...Option) *WindowedTable[K, A] {
	return c.TryAggregate(lift0(init), opts...)
}

// TryAggregate is Aggregate with a function that may fail.
func (c *CogroupedWindows[K, A]) TryAggregate[_ onUse](init func() (A, error), opts ...Option) *WindowedTable[K, A] {
	w := c.windows
	s := newSettings(opts, windowAggregates)
	s.needFunction(init == nil)
	m := c.c.b.windowStore(s, cogroupPrefix, w.windowing(false))
	grace := logical.WindowGrace{Ms: w.grace.Milliseconds(), Never: w.kind == unlimited}
	build := func(in cogroupInput[K, A], store processors.Store[K, A]) processors.Table[Window[K], A] {
		return in.windows(init, w, c.c.b.emit(false), store)
	}
	t := aggregateCogroup(c.c, s, m, grace, build, processors.NewWindowedPassThrough[K, A])
	t.key = timeWindowed(keySerde(s, c.c.key), w)
	return &WindowedTable[K, A]{t}
}

// CogroupedSessions is a Cogrouped by sessions.
type CogroupedSessions[K, A any] struct {
	c       *cogrouped[K, A]
	windows SessionWindows
}

// Sessions aggregates each key's records by sessions of activity.
func (c *Cogrouped[K, A]) Sessions[_ onUse](w SessionWindows) *CogroupedSessions[K, A] {
	s := &settings{}
	w.check(s)
	c.c.b.report("Cogroup Sessions", s)
	return &CogroupedSessions[K, A]{c.c, w}
}

// Aggregate starts each session with what init gives, and adds the values of all inputs; merge puts two sessions together.
func (c *CogroupedSessions[K, A]) Aggregate[_ onUse](init func() A, merge func(key K, a, b A) A, opts ...Option) *WindowedTable[K, A] {
	return c.TryAggregate(lift0(init), lift3(merge), opts...)
}

// TryAggregate is Aggregate with functions that may fail.
func (c *CogroupedSessions[K, A]) TryAggregate[_ onUse](init func() (A, error), merge func(key K, a, b A) (A, error), opts ...Option) *WindowedTable[K, A] {
	s := newSettings(opts, windowAggregates)
	s.needFunction(init == nil || merge == nil)
	m := c.c.b.windowStore(s, cogroupPrefix, c.windows.windowing(false))
	build := func(in cogroupInput[K, A], store processors.Store[K, A]) processors.Table[Window[K], A] {
		return in.sessions(init, merge, c.windows, c.c.b.emit(false), store)
	}
	t := aggregateCogroup(c.c, s, m, c.windows.windowGrace(), build, processors.NewSessionPassThrough[K, A])
	t.key = sessionWindowed(keySerde(s, c.c.key))
	return &WindowedTable[K, A]{t}
}

// aggregateCogroup adds a windowed cogroup. The key's serde is the caller's to set.
func aggregateCogroup[K, A any](
	c *cogrouped[K, A], s *settings, m materialized, grace logical.WindowGrace,
	build func(cogroupInput[K, A], processors.Store[K, A]) processors.Table[Window[K], A],
	passThrough func([]processors.Table[Window[K], A], processors.Store[K, A]) processors.Table[Window[K], A],
) *table[Window[K], A] {
	o, store := startCogroup(c, s, m)
	parents := c.repartitioned(m)
	agg := &cogroupNodes{o: o, m: m, grace: &grace}
	var tables []processors.Table[Window[K], A]
	for i, in := range c.inputs {
		t := build(in, store)
		tables = append(tables, t)
		agg.add(i, t, parents[i])
	}
	proc := passThrough(tables, store)
	return &table[Window[K], A]{
		b: c.b, node: agg.merge(proc), value: store.Value, sources: c.sources(parents), proc: proc, spec: m.spec,
		windows: windowsOf[K](),
	}
}
