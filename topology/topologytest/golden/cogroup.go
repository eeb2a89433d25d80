package golden

import (
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// cogroupInput is a grouped stream with its aggregator.
type cogroupInput struct {
	group node
	agg   aggregator
}

// cogroup adds a cogrouped aggregation. The initializer and the merger are those of the first input's aggregator.
func (b *build) cogroup(o *object) error {
	var inputs []cogroupInput
	for _, x := range o.objs("inputs") {
		g := b.node(x, "from")
		if g == nil {
			return nil // noted
		}
		a, err := parseAggregator(x.str("aggregator"), g.types().value)
		if err != nil {
			return err
		}
		x.finish()
		inputs = append(inputs, cogroupInput{g, a})
	}
	if len(inputs) == 0 {
		return unsupported("a cogroup of nothing")
	}
	var n node
	var err error
	if inputs[0].group.types().key.isWindowed() {
		n, err = cogroupBy(b, o, inputs, windowType)
	} else {
		n, err = cogroupBy(b, o, inputs, anyType)
	}
	if err == nil {
		b.put(o, n)
	}
	return err
}

func cogroupBy[K any](b *build, o *object, inputs []cogroupInput, key goType[K]) (node, error) {
	if inputs[0].agg.out == typeInt64 {
		return cogroupTo(b, o, inputs, key, nullableInt64)
	}
	return cogroupTo(b, o, inputs, key, anyType)
}

func cogroupTo[K, A any](b *build, o *object, inputs []cogroupInput, key goType[K], out goType[A]) (node, error) {
	var c *topology.Cogrouped[K, A]
	for _, in := range inputs {
		var ok bool
		if c, ok = addCogroup(c, in.group, in.agg, out); !ok {
			return nil, unsupported("a cogroup with a %T", in.group)
		}
	}
	if o.has("windows") {
		return cogroupWindows(b, o, inputs[0], c, key, out), nil
	}
	first := folds[K, any, A]{a: inputs[0].agg, key: key, val: anyType, agg: out}
	types := topicTypes{inputs[0].group.types().key, first.a.out}
	opts := serdes(append(named(o), b.materialized(o, state.TimestampedKeyValue)...), key, types.key, out, types.value)
	return newTable(b, c.Aggregate(first.init, opts...), key, out, types), nil
}

func cogroupWindows[K, A any](b *build, o *object, in cogroupInput, c *topology.Cogrouped[K, A], k goType[K], out goType[A]) node {
	w := parseWindows(o.obj("windows"))
	kind := state.TimestampedWindow
	if w.session {
		kind = state.Session
	}
	first := folds[K, any, A]{a: in.agg, key: k, val: anyType, agg: out}
	key := in.group.types().key
	types := topicTypes{w.key(key), first.a.out}
	opts := serdes(append(named(o), b.materialized(o, kind)...), k, key, out, types.value)
	if w.session {
		return newWindowTable(b, c.Sessions(w.sessions).Aggregate(first.init, first.merge, opts...), k, out, types)
	}
	return newWindowTable(b, c.Windowed(w.windows).Aggregate(first.init, opts...), k, out, types)
}

// addCogroup adds an input to a cogroup, and starts it with the first.
func addCogroup[K, A any](c *topology.Cogrouped[K, A], group node, a aggregator, out goType[A]) (*topology.Cogrouped[K, A], bool) {
	switch g := group.(type) {
	case *grouped[K, any]:
		return addCogroupOf(c, g, a, out), true
	case *grouped[K, *int64]:
		return addCogroupOf(c, g, a, out), true
	}
	return nil, false
}

func addCogroupOf[K, V, A any](c *topology.Cogrouped[K, A], g *grouped[K, V], a aggregator, out goType[A]) *topology.Cogrouped[K, A] {
	f := folds[K, V, A]{a, g.k, g.v, out}
	if c == nil {
		return g.g.Cogroup(f.add)
	}
	return c.Cogroup(g.g, f.add)
}
