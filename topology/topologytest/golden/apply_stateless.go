package golden

import "github.com/tributary-io/tributary/topology"

// applyStateless adds operators of streams that keep no state.
func (b *build) applyStateless(op string, o *object) (known bool, err error) {
	switch op {
	case "map", "flatMap", "flatMapValues", "selectKey", "peek", "foreach", "split", "merge", "repartition", "to":
	default:
		return false, nil
	}
	s, err := as[streamNode](b, o, "from")
	if err != nil {
		return true, err
	}
	n, err := b.stateless(op, o, s)
	if n != nil && err == nil {
		b.put(o, n)
	}
	return true, err
}

func (b *build) stateless(op string, o *object, s streamNode) (node, error) {
	t, opts := s.types(), named(o)
	switch op {
	case "map":
		return b.mapBoth(o, s, opts)
	case "flatMap":
		f, err := parseFlat(o.str("fn"), t.key, t.value)
		if err != nil {
			return nil, err
		}
		return s.flatMap(f, opts), nil
	case "flatMapValues":
		f, err := parseFlatValues(o.str("fn"), t.value)
		if err != nil {
			return nil, err
		}
		return s.flatMapValues(f, opts), nil
	case "selectKey":
		m, err := parseSelector(o.str("selector"), t.key, t.value)
		if err != nil {
			return nil, err
		}
		return s.selectKey(m, opts), nil
	case "peek":
		label := b.observed(o)
		return s.peek(func(k, v any) { b.observe(label, k, v) }, opts), nil
	case "foreach":
		label := b.observed(o)
		s.forEach(func(k, v any) { b.observe(label, k, v) }, opts)
		return nil, nil
	case "split":
		return nil, b.split(o, s, opts)
	case "merge":
		return s.merge(b.node(o, "with"), opts)
	case "repartition":
		if o.has("partitions") {
			opts = append(opts, topology.Partitions(int(o.int("partitions"))))
		}
		return s.repartition(opts), nil
	}
	return nil, b.to(o, s, opts)
}

// observed gives the label under which an op shows what it sees.
func (b *build) observed(o *object) string {
	label := o.str("label")
	b.labels = append(b.labels, label)
	return label
}

func (b *build) mapBoth(o *object, s streamNode, opts options) (node, error) {
	t := s.types()
	key, err := parseSelector(o.strOr("key", "key"), t.key, t.value)
	if err != nil {
		return nil, err
	}
	var value typed
	if o.has("valueSelector") {
		value, err = parseSelector(o.str("valueSelector"), t.key, t.value)
	} else {
		value, err = parseMapper(o.strOr("mapper", "identity"), t.key, t.value)
	}
	if err != nil {
		return nil, err
	}
	return s.mapBoth(key, value, opts), nil
}

func (b *build) split(o *object, s streamNode, opts options) error {
	var branches []branch
	for _, x := range o.objs("branches") {
		p, err := parsePredicate(x.str("predicate"))
		if err != nil {
			return err
		}
		branches = append(branches, branch{x.str("id"), p, branchName(x)})
		x.finish()
	}
	var def *branch
	if o.has("default") {
		x := o.obj("default")
		def = &branch{id: x.str("id"), opts: branchName(x)}
		x.finish()
	}
	for id, n := range s.split(branches, def, opts) {
		b.nodes[id] = n
	}
	return nil
}

func branchName(o *object) options {
	if !o.has("name") {
		return nil
	}
	return options{topology.Name(o.str("name"))}
}

func (b *build) to(o *object, s streamNode, opts options) error {
	t := s.types()
	if !o.has("topicFrom") {
		b.noteOutput(o.str("topic"), t)
		s.to(o.str("topic"), opts)
		return nil
	}
	x := o.obj("topicFrom")
	m, err := parseSelector(x.str("selector"), t.key, t.value)
	if err != nil {
		return err
	}
	b.dynamic = &t
	s.toDynamic(x.str("prefix"), m, opts)
	x.finish()
	return nil
}

// applyProcessor adds user processors to streams.
func (b *build) applyProcessor(op string, o *object) (known bool, err error) {
	if op != "process" && op != "processValues" {
		return false, nil
	}
	s, err := as[streamNode](b, o, "from")
	if err != nil {
		return true, err
	}
	opts := append(named(o), b.storeDecls(o, "provideStores")...)
	k, err := parseKind(o.obj("processor"), s.types().key, s.types().value, b.stores)
	if err != nil {
		return true, err
	}
	if names := o.strs("stores"); len(names) > 0 {
		opts = append(opts, topology.Stores(names...))
	}
	if op == "process" {
		b.put(o, s.process(k, opts))
	} else {
		b.put(o, s.processValues(k, opts))
	}
	return true, nil
}
