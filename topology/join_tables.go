package topology

import (
	"slices"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Join joins the rows of two tables that have the same key. Both must have equally many partitions.
func (t *Table[K, V]) Join[R, O any](other *Table[K, R], f func(V, R) O, opts ...Option) *Table[K, O] {
	return t.TryJoin(other, lift2(f), opts...)
}

// TryJoin is Join with a function that may fail.
func (t *Table[K, V]) TryJoin[R, O any](other *Table[K, R], f func(V, R) (O, error), opts ...Option) *Table[K, O] {
	return &Table[K, O]{joinTables(t.t, inner(other), joinBoth(ofSides[K](f)), processors.InnerJoin, opts)}
}

// LeftJoin is Join with a row also for each row of t that has no match.
func (t *Table[K, V]) LeftJoin[R, O any](other *Table[K, R], f func(V, *R) O, opts ...Option) *Table[K, O] {
	return t.TryLeftJoin(other, lift2(f), opts...)
}

// TryLeftJoin is LeftJoin with a function that may fail.
func (t *Table[K, V]) TryLeftJoin[R, O any](other *Table[K, R], f func(V, *R) (O, error), opts ...Option) *Table[K, O] {
	return &Table[K, O]{joinTables(t.t, inner(other), joinLeft(ofSides[K](f)), processors.LeftJoin, opts)}
}

// OuterJoin is Join with a row also for each row of both sides that has no match.
func (t *Table[K, V]) OuterJoin[R, O any](other *Table[K, R], f func(*V, *R) O, opts ...Option) *Table[K, O] {
	return t.TryOuterJoin(other, lift2(f), opts...)
}

// TryOuterJoin is OuterJoin with a function that may fail.
func (t *Table[K, V]) TryOuterJoin[R, O any](other *Table[K, R], f func(*V, *R) (O, error), opts ...Option) *Table[K, O] {
	return &Table[K, O]{joinTables(t.t, inner(other), joinOuter(ofSides[K](f)), processors.OuterJoin, opts)}
}

// joinTables makes a table that has a store of its own if the options speak of one.
func joinTables[K, V, R, O any](t *table[K, V], other *table[K, R], join processors.Joiner[K, V, R, O], kind processors.JoinKind, opts []Option) *table[K, O] {
	b := t.b
	s := newSettings(opts, statelessOptions|keyValueOptions)
	out := &table[K, O]{
		b: b, key: keySerde(s, t.key), value: valueSerde(s, inferred[V, O](t.value)), windows: t.windows,
	}
	if s.has(anyMaterialized) {
		out.spec = b.keyValueStore(s, "KTABLE-MERGE-", true).spec
	}
	o := &operation{settings: s, b: b, name: b.graph.NameOr(s.userName, "KTABLE-MERGE-")}
	o.needFunction(join == nil)
	if !o.usable(other) {
		return orphanTable(o, out)
	}
	out.sources = union(t.sources, other.sources)
	b.graph.Copartition(out.sources)
	j := processors.NewTableJoin(kind, t.proc, other.proc, join, storeOf(o, out.spec, out.key, out.value))
	out.proc = j.Merge
	out.node = logical.NewNode(o.name, &logical.TableJoin{
		Left: t.node.Name, Right: other.node.Name,
		This:  tableJoinSide(b.graph.SuffixOr(s.userName, "-join-this", "KTABLE-JOINTHIS-"), j.This),
		Other: tableJoinSide(b.graph.SuffixOr(s.userName, "-join-other", "KTABLE-JOINOTHER-"), j.Other),
		Merge: logical.Part{Name: o.name, Supplier: j.Merge, Stores: specs(out.spec)},
	})
	out.node.Versioned = logical.VersionedIf(out.spec != nil && out.spec.Kind == state.Versioned)
	out.node.UseVersioned = func(parent string) {
		if parent == t.node.Name {
			j.This.UseVersionedSemantics(true)
		}
		if parent == other.node.Name {
			j.Other.UseVersionedSemantics(true)
		}
	}
	b.report(o.name, s)
	b.graph.Add(out.node, t.node, other.node)
	return out
}

func tableJoinSide(name string, side processors.TableJoinSide) logical.Part {
	return logical.Part{Name: name, Supplier: side, Connect: slices.Clone(side.Stores())}
}

// orphanTable is the result of an operator that can't be added: what is below it is checked, but goes nowhere.
func orphanTable[K, V any](o *operation, out *table[K, V]) *table[K, V] {
	o.b.report(o.name, o.settings)
	out.node = logical.NewNode(o.name, nil)
	out.proc = processors.NewTableSource(processors.Store[K, V]{Name: o.name}, false)
	return out
}
