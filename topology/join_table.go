package topology

import (
	"fmt"
	"reflect"
	"time"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// Join joins each record with the table's row of the same key; a record without one is left out. The two must have equally many
// partitions; if the stream's key was changed before, it goes through a repartition topic (see the option Name).
func (s *Stream[K, V]) Join[T, O any](t *Table[K, T], f func(V, T) O, opts ...Option) *Stream[K, O] {
	return s.TryJoin(t, joinValues[K](f), opts...)
}

// JoinWithKey is Join with a function that sees the key.
func (s *Stream[K, V]) JoinWithKey[T, O any](t *Table[K, T], f func(K, V, T) O, opts ...Option) *Stream[K, O] {
	return s.TryJoin(t, lift3(f), opts...)
}

// TryJoin is JoinWithKey with a function that may fail.
func (s *Stream[K, V]) TryJoin[T, O any](t *Table[K, T], f func(K, V, T) (O, error), opts ...Option) *Stream[K, O] {
	return &Stream[K, O]{joinTable(s.s, inner(t), joinBoth(f), false, opts)}
}

// LeftJoin joins each record with the table's row of the same key, or with nil if there is none.
func (s *Stream[K, V]) LeftJoin[T, O any](t *Table[K, T], f func(V, *T) O, opts ...Option) *Stream[K, O] {
	return s.TryLeftJoin(t, joinValues[K](f), opts...)
}

// LeftJoinWithKey is LeftJoin with a function that sees the key.
func (s *Stream[K, V]) LeftJoinWithKey[T, O any](t *Table[K, T], f func(K, V, *T) O, opts ...Option) *Stream[K, O] {
	return s.TryLeftJoin(t, lift3(f), opts...)
}

// TryLeftJoin is LeftJoinWithKey with a function that may fail.
func (s *Stream[K, V]) TryLeftJoin[T, O any](t *Table[K, T], f func(K, V, *T) (O, error), opts ...Option) *Stream[K, O] {
	return &Stream[K, O]{joinTable(s.s, inner(t), joinLeft(f), true, opts)}
}

// inner is the inside of a table, nil for nil.
func inner[K, V any](t *Table[K, V]) *table[K, V] {
	if t == nil {
		return nil
	}
	return t.t
}

// usable tells whether the other side of a join is there and belongs to the same Builder.
func (o *operation) usable[K, V any](t *table[K, V]) bool {
	if t == nil {
		o.bad(plan.InvalidArgument, "the table is nil")
		return false
	}
	return o.sameBuilder(t.b)
}

func joinTable[K, V, T, O any](s *stream[K, V], t *table[K, T], join processors.Joiner[K, V, T, O], left bool, opts []Option) *stream[K, O] {
	b := s.b
	o := &operation{settings: newSettings(opts, statelessOptions|optGrace|optNoLogging), b: b}
	given := o.userName
	base := given
	if base == "" {
		base = s.node.Name
	}
	in := repartitionForJoin(s, base, given != "", s.key, s.value)
	o.name = b.graph.NameOr(given, joinPrefix(left))
	o.needFunction(join == nil)
	buffered, result := bufferedValues[V, O](o.settings, s.value)
	out := &stream[K, O]{b: b, key: keySerde(o.settings, s.key), value: result, windows: s.windows}
	if !o.usable(t) {
		return orphan(o, out)
	}
	out.sources = union(in.sources, t.sources)
	b.graph.Copartition(out.sources)
	view := t.proc.View()
	op := &logical.Processor{Connect: view.StoreNames()}
	supplier := processors.StreamTableJoin[K, V, T, O]{Table: view, Join: join, Left: left}
	if o.has(optGrace) {
		supplier.GraceMs = o.grace.Milliseconds()
		supplier.Buffer = joinBuffer(o, given == "", op, in.key, buffered)
		checkJoinGrace(o, op, t.node.Versioned)
	}
	op.Supplier = supplier
	out.node = logical.NewNode(o.name, op)
	out.node.NullKeyRelaxed = left
	b.report(o.name, o.settings)
	b.graph.Add(out.node, in.node)
	return out
}

func joinPrefix(left bool) string {
	if left {
		return "KSTREAM-LEFTJOIN-"
	}
	return "KSTREAM-JOIN-"
}

// orphan is the result of an operator that can't be added: what is below it is checked, but goes nowhere.
func orphan[K, V any](o *operation, out *stream[K, V]) *stream[K, V] {
	o.b.report(o.name, o.settings)
	out.node = logical.NewNode(o.name, nil)
	return out
}

// joinBuffer declares the store that holds records back until their grace is over.
func joinBuffer[K, V any](o *operation, generated bool, op *logical.Processor, key serde.Serde[K], value serde.Serde[V]) processors.Store[K, V] {
	spec := &state.Spec{
		Name: o.name + "-Buffer", Kind: state.JoinBuffer, GraceMs: o.grace.Milliseconds(),
		Logged: !o.has(optNoLogging), InMemory: o.b.opts.inMemory,
	}
	if generated {
		o.b.graph.AddImplicit(logical.Implicit{Store: spec.Name, Changelog: spec.Name + "-changelog"})
	}
	o.needStoreSerdes(needSerdes(key, value))
	op.Stores = append(op.Stores, spec)
	return kept(o.b, processors.Store[K, V]{Name: spec.Name, Key: key, Value: value})
}

// bufferedValues are the serdes of the values that a join with grace holds back, and of the result's. The option ValueSerde is the result's; where the
// stream doesn't know its values' serde, it is theirs, as that of Joined in Kafka Streams is, and the result's only if that is of their type. Without
// grace the values' own serde is of no use here: a repartition in front is the stream's.
func bufferedValues[V, O any](s *settings, known serde.Serde[V]) (serde.Serde[V], serde.Serde[O]) {
	given, ok := s.value.serde.(serde.Serde[V])
	if result := reflect.TypeFor[O](); ok && !s.has(optGrace) && s.value.of != result {
		s.badSerde(fmt.Sprintf("option ValueSerde is a serde for %v, the stream's values, but that of a join is for its result, %v: a repartition before it has the serde that ValueSerde of the operator in front gives",
			s.value.of, result), plan.MissingSerde{What: "value", Type: result})
		return known, inferred[V, O](known)
	}
	if ok && known == nil && s.has(optGrace) {
		if s.value.of != reflect.TypeFor[O]() {
			s.checkSerde(optionNames[optValueSerde], serde.Check(given))
			return given, inferred[V, O](given)
		}
		known = given
	}
	return known, valueSerde(s, inferred[V, O](known))
}

// checkJoinGrace checks that the rows can be known as of a time that far back.
func checkJoinGrace(o *operation, op *logical.Processor, table logical.Versioning) {
	if o.grace < 0 {
		o.bad(plan.InvalidArgument, "the grace of a join can't be negative: %v", o.grace)
	}
	if table == logical.Unversioned {
		o.bad(plan.InvalidArgument, "a join with grace needs a versioned table: give the table the option Versioned")
		return
	}
	name, stores, grace := o.name, op.Connect, o.grace
	op.Check = func(pb *plan.Builder) { checkHistory(pb, name, stores, grace) }
}

func checkHistory(pb *plan.Builder, node string, stores []string, grace time.Duration) {
	for _, store := range stores {
		spec := pb.StoreSpec(store)
		switch {
		case spec == nil: // reported where it is missing
		case spec.Kind != state.Versioned:
			pb.Problem(plan.InvalidArgument, node, "a join with grace needs a versioned table: its store %s is not", store)
		case spec.HistoryMs < grace.Milliseconds():
			pb.Problem(plan.InvalidArgument, node, "the history of store %s, %d ms, is shorter than the grace of the join, %v",
				store, spec.HistoryMs, grace)
		}
	}
}

// JoinGlobal joins each record with the row of a global table that key names; a record without one is left out.
func (s *Stream[K, V]) JoinGlobal[GK, T, O any](t *GlobalTable[GK, T], key func(K, V) GK, f func(V, T) O, opts ...Option) *Stream[K, O] {
	return s.TryJoinGlobal(t, lift2(key), joinValues[K](f), opts...)
}

// JoinGlobalWithKey is JoinGlobal with a function that sees the stream's key.
func (s *Stream[K, V]) JoinGlobalWithKey[GK, T, O any](t *GlobalTable[GK, T], key func(K, V) GK, f func(K, V, T) O, opts ...Option) *Stream[K, O] {
	return s.TryJoinGlobal(t, lift2(key), lift3(f), opts...)
}

// TryJoinGlobal is JoinGlobalWithKey with functions that may fail.
func (s *Stream[K, V]) TryJoinGlobal[GK, T, O any](
	t *GlobalTable[GK, T], key func(K, V) (GK, error), f func(K, V, T) (O, error), opts ...Option,
) *Stream[K, O] {
	return &Stream[K, O]{joinGlobal(s.s, t, key, joinBoth(f), false, opts)}
}

// LeftJoinGlobal joins each record with the row of a global table that key names, or with nil if there is none.
func (s *Stream[K, V]) LeftJoinGlobal[GK, T, O any](t *GlobalTable[GK, T], key func(K, V) GK, f func(V, *T) O, opts ...Option) *Stream[K, O] {
	return s.TryLeftJoinGlobal(t, lift2(key), joinValues[K](f), opts...)
}

// LeftJoinGlobalWithKey is LeftJoinGlobal with a function that sees the stream's key.
func (s *Stream[K, V]) LeftJoinGlobalWithKey[GK, T, O any](t *GlobalTable[GK, T], key func(K, V) GK, f func(K, V, *T) O, opts ...Option) *Stream[K, O] {
	return s.TryLeftJoinGlobal(t, lift2(key), lift3(f), opts...)
}

// TryLeftJoinGlobal is LeftJoinGlobalWithKey with functions that may fail.
func (s *Stream[K, V]) TryLeftJoinGlobal[GK, T, O any](
	t *GlobalTable[GK, T], key func(K, V) (GK, error), f func(K, V, *T) (O, error), opts ...Option,
) *Stream[K, O] {
	return &Stream[K, O]{joinGlobal(s.s, t, key, joinLeft(f), true, opts)}
}

func joinGlobal[K, V, GK, T, O any](
	s *stream[K, V], t *GlobalTable[GK, T], key func(K, V) (GK, error), join processors.Joiner[K, V, T, O], left bool, opts []Option,
) *stream[K, O] {
	o := s.b.operator(opts, statelessOptions, "KSTREAM-LEFTJOIN-", key == nil || join == nil) // the prefix of inner joins, too
	out := &stream[K, O]{
		b: s.b, key: keySerde(o.settings, s.key), value: valueSerde(o.settings, inferred[V, O](s.value)),
		sources: s.sources, rekeyed: s.rekeyed, windows: s.windows,
	}
	if t == nil {
		o.bad(plan.InvalidArgument, "the global table is nil")
		return orphan(o, out)
	}
	if !o.sameBuilder(t.b) {
		return orphan(o, out)
	}
	out.node = logical.NewNode(o.name, &logical.Processor{
		Supplier: processors.GlobalTableJoin[K, V, GK, T, O]{Table: t.view, Select: key, Join: join, Left: left},
	})
	out.node.NullKeyRelaxed = left
	s.b.report(o.name, o.settings)
	s.b.graph.Add(out.node, s.node)
	return out
}
