package golden

import (
	"slices"

	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// joinOp is a join of the format.
type joinOp struct {
	kind  string // inner, left or outer
	join  join
	grace bool // of a stream with a table
	opts  options
}

// side gives the pointer-taking form of a joiner: nil is a side that is missing.
func sides[K, L, R, O any](j joinOp, k goType[K], l goType[L], r goType[R], o goType[O]) func(K, *L, *R) O {
	return func(key K, left *L, right *R) O { return o.in(j.join.f(k.out(key), l.pointed(left), r.pointed(right))) }
}

// applyJoin adds joins.
func (b *build) applyJoin(op string, o *object) (known bool, err error) {
	switch op {
	case "streamStreamJoin", "streamTableJoin", "streamGlobalTableJoin", "tableTableJoin", "foreignKeyJoin":
	default:
		return false, nil
	}
	left, right := b.node(o, "left"), b.node(o, "right")
	if left == nil || right == nil {
		return true, nil // noted
	}
	j := joinOp{kind: o.str("kind"), opts: named(o)}
	if j.join, err = parseJoiner(o.str("joiner"), left.types().value, right.types().value); err != nil {
		return true, err
	}
	if j.kind != "inner" && j.kind != "left" && (j.kind != "outer" || op != "streamStreamJoin" && op != "tableTableJoin") {
		return true, unsupported("%s of kind %q", op, j.kind)
	}
	n, err := b.join(op, o, j, left, right)
	if err == nil {
		b.put(o, n)
	}
	return true, err
}

func (b *build) join(op string, o *object, j joinOp, left, right node) (node, error) {
	switch left := left.(type) {
	case streamNode:
		switch op {
		case "streamStreamJoin":
			return b.joinStreams(o, j, left, right)
		case "streamTableJoin":
			if o.has("grace") {
				j.opts, j.grace = append(j.opts, topology.JoinGrace(ms(o.int("grace")))), true
			}
			return left.joinTable(j, right)
		case "streamGlobalTableJoin":
			key, err := parseSelector(o.str("selector"), left.types().key, left.types().value)
			if err != nil {
				return nil, err
			}
			return left.joinGlobal(j, key, right)
		}
	case tableNode:
		switch op {
		case "tableTableJoin":
			if o.has("materialized") {
				j.opts = append(j.opts, b.materialized(o, state.TimestampedKeyValue)...)
			}
			return left.join(b, j, right)
		case "foreignKeyJoin":
			key, err := parseSelector(o.str("selector"), left.types().key, left.types().value)
			if err != nil {
				return nil, err
			}
			j.opts = append(j.opts, b.materialized(o, state.TimestampedKeyValue)...)
			return left.joinForeign(b, j, key, right)
		}
	}
	return nil, unsupported("%s of a %T", op, left)
}

// joinStreams reads the rest of a join of streams, and notes the types of its stores.
func (b *build) joinStreams(o *object, j joinOp, left streamNode, right node) (node, error) {
	w := joinWindows(o.obj("windows"))
	stores := joinedStores{left: typesOfStore(left.types()), right: typesOfStore(right.types())}
	if o.has("named") {
		stores.base = o.str("named")
	}
	if o.has("storeName") {
		j.opts = append(j.opts, topology.Store(o.str("storeName")))
		stores.base = o.str("storeName")
	} else if o.has("named") {
		stores.base = "" // the name is not the stores'
	}
	j.opts = append(j.opts, storeType(o)...)
	if !o.boolOr("logging", true) {
		j.opts = append(j.opts, topology.NoLogging())
	}
	b.joins = append(b.joins, stores)
	return left.joinStream(j, right, w)
}

func joinWindows(o *object) topology.JoinWindows {
	defer o.finish()
	w := topology.JoinWithin(ms(o.int("before")))
	if grace := o.int("grace"); grace != 0 {
		w = w.Grace(ms(grace))
	}
	if o.int("after") != o.int("before") {
		w = w.After(ms(o.int("after")))
	}
	return w
}

func (s *stream[K, V]) joinStream(j joinOp, other node, w topology.JoinWindows) (node, error) {
	switch other := other.(type) {
	case *stream[K, any]:
		return joinStreamWith(s, other, j, w), nil
	case *stream[K, *int64]:
		return joinStreamWith(s, other, j, w), nil
	}
	return nil, unsupported("a join of %T with %T", s, other)
}

func joinStreamWith[K, V, R any](s *stream[K, V], other *stream[K, R], j joinOp, w topology.JoinWindows) node {
	return joinStreamTo(s, other, j, w, anyType)
}

func joinStreamTo[K, V, R, O any](s *stream[K, V], other *stream[K, R], j joinOp, w topology.JoinWindows, out goType[O]) node {
	f := sides(j, s.k, s.v, other.v, out)
	opts := append(slices.Clip(j.opts), s.keyOption(), s.valueOption(), topology.OtherValueSerde(other.v.serde(other.vt)))
	var t *topology.Stream[K, O]
	switch j.kind {
	case "inner":
		t = s.s.JoinStreamWithKey(other.s, func(k K, l V, r R) O { return f(k, &l, &r) }, w, opts...)
	case "left":
		t = s.s.LeftJoinStreamWithKey(other.s, func(k K, l V, r *R) O { return f(k, &l, r) }, w, opts...)
	default:
		t = s.s.OuterJoinStreamWithKey(other.s, f, w, opts...)
	}
	return &stream[K, O]{t, s.k, out, s.kt, j.join.out}
}

func (s *stream[K, V]) joinTable(j joinOp, right node) (node, error) {
	switch right := right.(type) {
	case *table[K, any]:
		return joinTableWith(s, right, j), nil
	case *table[K, int64]:
		return joinTableWith(s, right, j), nil
	case *table[K, *int64]:
		return joinTableWith(s, right, j), nil
	}
	return nil, unsupported("a join of %T with %T", s, right)
}

func joinTableWith[K, V, R any](s *stream[K, V], right *table[K, R], j joinOp) node {
	return joinTableTo(s, right, j, anyType)
}

func joinTableTo[K, V, R, O any](s *stream[K, V], right *table[K, R], j joinOp, out goType[O]) node {
	f := sides(j, s.k, s.v, right.v, out)
	opts := append(slices.Clip(j.opts), s.keyOption())
	if own, ok := any(s).(*stream[K, any]); ok && j.grace {
		opts = append(opts, own.valueOption()) // for the buffer: the stream needn't know its own
	} else {
		opts = append(opts, topology.ValueSerde(out.serde(j.join.out)))
	}
	var t *topology.Stream[K, O]
	if j.kind == "left" {
		t = s.s.LeftJoinWithKey(right.t, func(k K, l V, r *R) O { return f(k, &l, r) }, opts...)
	} else {
		t = s.s.JoinWithKey(right.t, func(k K, l V, r R) O { return f(k, &l, &r) }, opts...)
	}
	return &stream[K, O]{t, s.k, out, s.kt, j.join.out}
}

func (s *stream[K, V]) joinGlobal(j joinOp, key typed, right node) (node, error) {
	g, ok := right.(*globalNode)
	if !ok {
		return nil, unsupported("a join of %T with %T", s, right)
	}
	return joinGlobalTo(s, g, key, j, anyType), nil
}

func joinGlobalTo[K, V, O any](s *stream[K, V], right *globalNode, key typed, j joinOp, out goType[O]) node {
	f := sides(j, s.k, s.v, anyType, out)
	opts := append(slices.Clip(j.opts), s.keyOption(), topology.ValueSerde(out.serde(j.join.out)))
	var t *topology.Stream[K, O]
	if j.kind == "left" {
		t = s.s.LeftJoinGlobalWithKey(right.t, s.apply(key.f), func(k K, l V, r *any) O { return f(k, &l, r) }, opts...)
	} else {
		t = s.s.JoinGlobalWithKey(right.t, s.apply(key.f), func(k K, l V, r any) O { return f(k, &l, &r) }, opts...)
	}
	return &stream[K, O]{t, s.k, out, s.kt, j.join.out}
}

func (t *table[K, V]) join(b *build, j joinOp, other node) (node, error) {
	switch other := other.(type) {
	case *table[K, any]:
		return joinTablesWith(b, t, other, j), nil
	case *table[K, int64]:
		return joinTablesWith(b, t, other, j), nil
	case *table[K, *int64]:
		return joinTablesWith(b, t, other, j), nil
	}
	return nil, unsupported("a join of %T with %T", t, other)
}

func joinTablesWith[K, V, R any](b *build, t *table[K, V], other *table[K, R], j joinOp) node {
	return joinTablesTo(b, t, other, j, anyType)
}

func joinTablesTo[K, V, R, O any](b *build, t *table[K, V], other *table[K, R], j joinOp, out goType[O]) node {
	f := sides(j, t.k, t.v, other.v, out)
	var none K
	opts := serdes(slices.Clip(j.opts), t.k, t.both.key, out, j.join.out)
	var joined *topology.Table[K, O]
	switch j.kind {
	case "inner":
		joined = t.t.Join(other.t, func(l V, r R) O { return f(none, &l, &r) }, opts...)
	case "left":
		joined = t.t.LeftJoin(other.t, func(l V, r *R) O { return f(none, &l, r) }, opts...)
	default:
		joined = t.t.OuterJoin(other.t, func(l *V, r *R) O { return f(none, l, r) }, opts...)
	}
	return newTable(b, joined, t.k, out, topicTypes{t.both.key, j.join.out})
}

func (t *table[K, V]) joinForeign(b *build, j joinOp, key typed, other node) (node, error) {
	switch other := other.(type) {
	case *table[any, any]:
		return joinForeignWith(b, t, other, key, j), nil
	case *table[any, int64]:
		return joinForeignWith(b, t, other, key, j), nil
	case *table[any, *int64]:
		return joinForeignWith(b, t, other, key, j), nil
	case *table[topology.Window[any], any]:
		return joinForeignWith(b, t, other, key, j), nil
	case *table[topology.Window[any], int64]:
		return joinForeignWith(b, t, other, key, j), nil
	case *table[topology.Window[any], *int64]:
		return joinForeignWith(b, t, other, key, j), nil
	}
	return nil, unsupported("a foreign key join of %T with %T", t, other)
}

func joinForeignWith[K, V, K2, R any](b *build, t *table[K, V], other *table[K2, R], key typed, j joinOp) node {
	return joinForeignTo(b, t, other, key, j, anyType)
}

func joinForeignTo[K, V, K2, R, O any](b *build, t *table[K, V], other *table[K2, R], key typed, j joinOp, out goType[O]) node {
	f := sides(j, t.k, t.v, other.v, out)
	var none K
	opts := serdes(slices.Clip(j.opts), t.k, t.both.key, out, j.join.out)
	foreign := func(k K, v V) K2 { return other.k.in(key.f(t.k.out(k), t.v.out(v))) }
	var joined *topology.Table[K, O]
	if j.kind == "left" {
		joined = t.t.LeftJoinForeign(other.t, foreign, func(l V, r *R) O { return f(none, &l, r) }, opts...)
	} else {
		joined = t.t.JoinForeign(other.t, foreign, func(l V, r R) O { return f(none, &l, &r) }, opts...)
	}
	return newTable(b, joined, t.k, out, topicTypes{t.both.key, j.join.out})
}
