package processors_test

import (
	"fmt"
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// drain takes the write buffer off the store every so many records, as commits do.
func drain(b *testing.B, e *env, i int) {
	if i%1000 != 0 {
		return
	}
	g, err := e.db.Seal()
	if err != nil {
		b.Fatal(err)
	}
	if err := g.Apply(nil, nil); err != nil {
		b.Fatal(err)
	}
}

func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("key-%04d", i)
	}
	return all
}

// BenchmarkCount measures a count by key over an in-memory store, commits included.
func BenchmarkCount(b *testing.B) {
	e := newEnv(b, tableSpec("s"))
	sum := int64(0)
	sink := processors.Child{Name: "out", Next: processors.Next[string, processors.Change[int64]](func(r *processors.Record[string, processors.Change[int64]]) error {
		sum += r.Value.New
		return nil
	})}
	n := e.node("count", processors.NewAggregate(processors.Counting[string, string](), strings2("s", serde.Int64)), sink)
	e.start()
	benchmarkKeys(b, e, n)
}

// BenchmarkWindowCount measures a count in tumbling windows.
func BenchmarkWindowCount(b *testing.B) {
	e := newEnv(b, state.Spec{Name: "s", Kind: state.TimestampedWindow, RetentionMs: 100_000, WindowSizeMs: 1000, Logged: true})
	sum := int64(0)
	sink := processors.Child{Name: "out", Next: processors.Next[windowedKey, processors.Change[int64]](func(r *processors.Record[windowedKey, processors.Change[int64]]) error {
		sum += r.Value.New
		return nil
	})}
	n := e.node("count", processors.NewWindowAggregate(processors.Counting[string, string](),
		processors.TimeWindows{SizeMs: 1000, AdvanceMs: 1000}, processors.Emit{}, strings2("s", serde.Int64)), sink)
	e.start()
	benchmarkKeys(b, e, n)
}

// BenchmarkStreamTableJoin measures a join with rows that are there.
func BenchmarkStreamTableJoin(b *testing.B) {
	e := newEnv(b, tableSpec("rows"))
	rows := processors.NewTableSource(strings2("rows", serde.Int64), true)
	sum := int64(0)
	join := func(_ string, l *string, r *int64) (int64, error) { return int64(len(*l)) + *r, nil }
	each := processors.ForEach(func(_ string, v int64) error { sum += v; return nil })
	table := e.node("table", rows)
	n := e.node("join", processors.StreamTableJoin[string, string, int64, int64]{Table: rows.View(), Join: join}, e.node("each", each))
	e.start()
	for i, k := range keys(1000) {
		must(e, table, k, int64(i), 1)
	}
	benchmarkKeys(b, e, n)
}

func benchmarkKeys(b *testing.B, e *env, n processors.Child) {
	all := keys(1000)
	next := n.Next.(processors.Next[string, string])
	r := &processors.Record[string, string]{Value: "v"}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		r.Key, r.Timestamp = all[i%len(all)], int64(i/100)
		if err := next(r); err != nil {
			b.Fatal(err)
		}
		drain(b, e, i)
	}
}
