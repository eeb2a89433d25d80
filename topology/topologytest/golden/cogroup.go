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
	if inputs[0].agg.out == typeInt64 {
		n, err = cogroupTo(b, o, inputs, nullableInt64)
	} else {
		n, err = cogroupTo(b, o, inputs, anyType)
	}
	if err == nil {
		b.put(o, n)
	}
	return err
}

func cogroupTo[A any](b *build, o *object, inputs []cogroupInput, out goType[A]) (node, error) {
	var c *topology.Cogrouped[any, A]
	for _, in := range inputs {
		var ok bool
		if c, ok = addCogroup(c, in.group, in.agg, out); !ok {
			return nil, unsupported("a cogroup with a %T", in.group)
		}
	}
	first := folds[any, any, A]{a: inputs[0].agg, key: anyType, val: anyType, agg: out}
	types := topicTypes{inputs[0].group.types().key, first.a.out}
	kind := state.TimestampedKeyValue
	var w windowSpec
	if o.has("windows") {
		w = parseWindows(o.obj("windows"))
		kind = state.TimestampedWindow
		if w.session {
			kind = state.Session
		}
	}
	opts := serdes(append(named(o), b.materialized(o, kind)...), anyType, types.key, out, types.value)
	switch kind {
	case state.TimestampedKeyValue:
		return newTable(b, c.Aggregate(first.init, opts...), anyType, out, types), nil
	case state.Session:
		t := c.Sessions(w.sessions).Aggregate(first.init, first.merge, opts...)
		return newTable(b, topology.FlattenTable(t), windowType, out, topicTypes{w.key(types.key), types.value}), nil
	}
	t := c.Windowed(w.windows).Aggregate(first.init, opts...)
	return newTable(b, topology.FlattenTable(t), windowType, out, topicTypes{w.key(types.key), types.value}), nil
}

// addCogroup adds an input to a cogroup, and starts it with the first.
func addCogroup[A any](c *topology.Cogrouped[any, A], group node, a aggregator, out goType[A]) (*topology.Cogrouped[any, A], bool) {
	switch g := group.(type) {
	case *grouped[any, any]:
		return addCogroupOf(c, g, a, out), true
	case *grouped[any, *int64]:
		return addCogroupOf(c, g, a, out), true
	}
	return nil, false
}

func addCogroupOf[V, A any](c *topology.Cogrouped[any, A], g *grouped[any, V], a aggregator, out goType[A]) *topology.Cogrouped[any, A] {
	f := folds[any, V, A]{a, anyType, g.v, out}
	if c == nil {
		return g.g.Cogroup(f.add)
	}
	return c.Cogroup(g.g, f.add)
}
