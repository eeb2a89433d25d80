package processors_test

import (
	"errors"
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

type stringChange = processors.Change[string]

func versionedSpec(name string) state.Spec {
	return state.Spec{Name: name, Kind: state.Versioned, HistoryMs: 1000, Logged: true}
}

func remove(e *env, n processors.Child, key string, ts int64) {
	e.t.Helper()
	if err := pipeRecord(e, n, &processors.Record[string, string]{Key: key, ValueNull: true, Timestamp: ts}); err != nil {
		e.t.Fatal(err)
	}
}

func TestTableSourceWithoutStore(t *testing.T) {
	e := newEnv(t)
	source := processors.NewTableSource(strings2("rows", serde.String), false)
	if source.EnableOldValues(false) || source.Materialized() {
		t.Error("nobody forced the table to have a store")
	}
	var out tap[string, stringChange]
	n := e.node("source", source, out.child("out"))
	e.start()
	must(e, n, "a", "1", 1)
	remove(e, n, "a", 2)
	if err := pipeRecord(e, n, &processors.Record[string, string]{KeyNull: true, Value: "x"}); err != nil {
		t.Fatal(err)
	}
	want(t, out.take(), "a=1<null@1; a=null<null@2")
	if e.drops[processors.DroppedNullKey] != 1 {
		t.Errorf("drops %v", e.drops)
	}
}

func TestTableSourceTakesLateUpdatesUnlessVersioned(t *testing.T) {
	for _, spec := range []state.Spec{tableSpec("rows"), versionedSpec("rows")} {
		e := newEnv(t, spec)
		source := processors.NewTableSource(strings2("rows", serde.String), true)
		source.EnableOldValues(false)
		var out tap[string, stringChange]
		n := e.node("source", source, out.child("out"))
		e.start()
		must(e, n, "a", "1", 10)
		must(e, n, "a", "0", 5)
		remove(e, n, "a", 2000)
		must(e, n, "a", "x", 6) // older than the history
		if spec.Kind == state.Versioned {
			want(t, out.take(), "a=1<null@10; a=0<1!@5; a=null<1@2000")
			if e.drops[processors.DroppedExpired] != 1 {
				t.Errorf("drops %v", e.drops)
			}
		} else {
			want(t, out.take(), "a=1<null@10; a=0<1@5; a=null<0@2000; a=x<null@6")
		}
	}
}

func filterA(_, v string) (bool, error) { return v[0] == 'a', nil }

func TestTableFilter(t *testing.T) {
	steps := func(e *env, n processors.Child) {
		must(e, n, "k", "b1", 1)
		must(e, n, "k", "a1", 2)
		must(e, n, "k", "b2", 3)
		remove(e, n, "k", 4)
	}
	t.Run("without old values every miss is a delete", func(t *testing.T) {
		e := newEnv(t)
		source := processors.NewTableSource(strings2("rows", serde.String), false)
		filter := processors.NewTableFilter(source, filterA, false, nil)
		var out tap[string, stringChange]
		n := e.node("source", source, e.node("filter", filter, out.child("out")))
		e.start()
		steps(e, n)
		want(t, out.take(), "k=null<null@1; k=a1<null@2; k=null<null@3; k=null<null@4")
	})
	t.Run("with the source's store misses are silent", func(t *testing.T) {
		e := newEnv(t, tableSpec("rows"))
		source := processors.NewTableSource(strings2("rows", serde.String), true)
		filter := processors.NewTableFilter(source, filterA, false, nil)
		var out tap[string, stringChange]
		n := e.node("source", source, e.node("filter", filter, out.child("out")))
		view := viewOf(t, e, filter.View())
		e.start()
		steps(e, n)
		want(t, out.take(), "k=a1<null@2; k=null<a1@3")
		must(e, n, "k", "a2", 5)
		must(e, n, "l", "b", 6)
		want(t, rowsOf(t, view(), "k", "l"), "k=a2@5; l=null")
	})
	t.Run("with a store of its own", func(t *testing.T) {
		e := newEnv(t, tableSpec("own"))
		source := processors.NewTableSource(strings2("rows", serde.String), false)
		own := strings2("own", serde.String)
		filter := processors.NewTableFilter(source, filterA, true, &own)
		if !filter.EnableOldValues(false) || source.Materialized() {
			t.Error("a table with its own store sends old values without its parent's")
		}
		var out tap[string, stringChange]
		n := e.node("source", source, e.node("filter", filter, out.child("out")))
		view := viewOf(t, e, filter.View())
		e.start()
		steps(e, n)
		want(t, out.take(), "k=b1<null@1; k=null<b1@2; k=b2<null@3; k=null<b2@4")
		must(e, n, "k", "b9", 5)
		want(t, rowsOf(t, view(), "k"), "k=b9@5")
	})
}

// viewOf opens a view when the nodes are started.
func viewOf[K, V any](t testing.TB, e *env, s processors.ViewSupplier[K, V]) func() processors.View[K, V] {
	var v processors.View[K, V]
	e.inits = append(e.inits, func() (err error) {
		v, err = s.Open(&rt{env: e, name: "view"})
		return err
	})
	return func() processors.View[K, V] { return v }
}

func rowsOf[V any](t testing.TB, v processors.View[string, V], keys ...string) (got []string) {
	t.Helper()
	for _, k := range keys {
		row, err := v.Get(k)
		if err != nil {
			t.Fatal(err)
		}
		if row.Null {
			got = append(got, k+"=null")
			continue
		}
		got = append(got, show(&processors.Record[string, V]{Key: k, Value: row.Value, Timestamp: row.Timestamp}))
	}
	return got
}

func TestTableMapValuesAndItsViews(t *testing.T) {
	for _, owned := range []bool{false, true} {
		e := newEnv(t, tableSpec("rows"), tableSpec("own"))
		source := processors.NewTableSource(strings2("rows", serde.String), true)
		var store *processors.Store[string, int64]
		if owned {
			s := strings2("own", serde.Int64)
			store = &s
		}
		lengths := processors.NewTableMapValues(source, func(_, v string) (int64, error) { return int64(len(v)), nil }, store)
		even := processors.NewTableFilter(lengths, func(_ string, v int64) (bool, error) { return v%2 == 0, nil }, false, nil)
		if !even.EnableOldValues(false) {
			t.Fatal("the chain has a store")
		}
		var out tap[string, processors.Change[int64]]
		n := e.node("source", source, e.node("lengths", lengths, e.node("even", even, out.child("out"))))
		view := viewOf(t, e, even.View())
		e.start()
		must(e, n, "k", "ab", 1)
		must(e, n, "k", "abc", 2)
		must(e, n, "k", "abcd", 3)
		remove(e, n, "k", 4)
		want(t, out.take(), "k=2<null@1; k=null<2@2; k=4<null@3; k=null<4@4")
		must(e, n, "k", "abcdef", 5)
		must(e, n, "l", "a", 6)
		want(t, rowsOf(t, view(), "k", "l", "m"), "k=6@5; l=null; m=null")
	}
}

// appender is a ValueTransformer that appends the row of the same key in another store.
type appender struct {
	other interface {
		Get(string) (string, bool, error)
	}
	closed *int
}

func (a *appender) Init(ctx processors.BaseContext) (err error) {
	a.other, err = processors.KeyValueStore(ctx, strings2("other", serde.String))
	return err
}

func (a *appender) Transform(key string, v *string) (*string, error) {
	if v == nil {
		return ptr("none"), nil
	}
	other, _, err := a.other.Get(key)
	return ptr(*v + other), err
}

func (a *appender) Close() error { *a.closed++; return nil }

func TestTableTransformValues(t *testing.T) {
	e := newEnv(t, tableSpec("rows"), state.Spec{Name: "other", Kind: state.KeyValue, Logged: true})
	source := processors.NewTableSource(strings2("rows", serde.String), true)
	closed := 0
	table := processors.NewTableTransformValues(source, func() processors.ValueTransformer[string, string, *string] {
		return &appender{closed: &closed}
	}, nil)
	table.EnableOldValues(true)
	var out tap[string, processors.Change[*string]]
	n := e.node("source", source, e.node("transform", table, out.child("out")))
	view := viewOf(t, e, table.View())
	join := processors.StreamTableJoin[string, string, *string, string]{Table: table.View(), Join: func(_ string, l *string, r **string) (string, error) {
		return *l + **r, nil
	}}
	var joined tap[string, string]
	stream := e.node("join", join, joined.child("out"))
	e.start()
	kv, err := e.db.KeyValueBytes("other")
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Put([]byte("k"), []byte("+"), 0); err != nil {
		t.Fatal(err)
	}
	must(e, n, "k", "v", 1)
	remove(e, n, "k", 2)
	want(t, out.take(), "k=v+<none@1; k=none<v+@2")
	must(e, n, "k", "w", 3)
	want(t, rowsOf(t, view(), "k"), "k=w+@3")
	must(e, stream, "k", "l", 4)
	want(t, joined.take(), "k=lw+@4")
	for _, c := range e.closers {
		if err := c(); err != nil {
			t.Error(err)
		}
	}
	if closed != 2 { // the node's, and that of the join's view
		t.Errorf("%d transformers closed", closed)
	}
}

func TestRegroupingNullsAndVersions(t *testing.T) {
	e := newEnv(t)
	group := &processors.TableRepartitionMap[string, string, *string, *string]{
		Map: func(_, v string) (*string, *string, error) {
			switch v {
			case "nokey":
				return nil, &v, nil
			case "novalue":
				return &v, nil, nil
			}
			return ptr(v[:1]), &v, nil
		},
		Key: serde.Ptr(serde.String),
	}
	group.UseVersionedSemantics(true)
	var out tap[*string, processors.Change[*string]]
	n := e.node("group", group, out.child("out"))
	for _, c := range []stringChange{
		{New: "nokey", Old: "a1", IsLatest: true},
		{New: "b1", Old: "novalue", IsLatest: true},
		{New: "a2", Old: "b1", IsLatest: true},
		{New: "a3", Old: "a2", IsLatest: true},
		{New: "late", Old: "a3"},
		{NewNull: true, OldNull: true, IsLatest: true},
	} {
		must(e, n, "k", c, 1)
	}
	want(t, out.take(), "a=null<a1@1; b=b1<null@1; b=null<b1@1; a=a2<null@1; a=a3<a2@1")
}

func TestToStreamAndBack(t *testing.T) {
	e := newEnv(t)
	source := processors.NewTableSource(strings2("rows", serde.String), false)
	var out tap[string, string]
	n := e.node("source", source, e.node("toStream", processors.TableToStream[string, string](), out.child("out")))
	e.start()
	must(e, n, "a", "1", 1, processors.Header{Key: "h"})
	remove(e, n, "a", 2)
	want(t, out.take(), "a=1@1 h; a=null@2")
}

func TestCogroupSharesAStore(t *testing.T) {
	e := newEnv(t, tableSpec("s"))
	store := strings2("s", serde.String)
	first, second := processors.NewAggregate(concat(), store), processors.NewAggregate(concat(), store)
	merged := processors.NewTablePassThrough([]processors.Table[string, string]{first, second}, store)
	merged.EnableOldValues(false)
	var out tap[string, stringChange]
	end := e.node("merge", merged, out.child("out"))
	a, b := e.node("a", first, end), e.node("b", second, end)
	view := viewOf(t, e, merged.View())
	e.start()
	must(e, a, "k", "x", 1)
	must(e, b, "k", "y", 2)
	want(t, out.take(), "k=0+x<0@1; k=0+x+y<0+x@2")
	want(t, rowsOf(t, view(), "k"), "k=0+x+y@2")
}

func TestStoreErrorsAreFatalAndSerdeErrorsAreNot(t *testing.T) {
	e := newEnv(t, tableSpec("s"))
	e.skip = true
	bad := serde.Func(func(b []byte, v string) ([]byte, error) { return append(b, v...), errUser }, func(b []byte) (string, error) { return string(b), nil })
	n := e.node("count", processors.NewAggregate(processors.Counting[string, string](), processors.Store[string, int64]{Name: "s", Key: bad, Value: serde.Int64}))
	e.start()
	must(e, n, "k", "v", 1)
	if len(e.failures) != 1 || !errors.Is(e.failures[0], errUser) {
		t.Errorf("failures %v", e.failures)
	}
	missing := e.node("missing", processors.NewAggregate(processors.Counting[string, string](), strings2("nowhere", serde.Int64)))
	_ = missing
	err := e.inits[0]()
	var access *processors.StoreAccessError
	if !errors.As(err, &access) || access.Store != "nowhere" || !processors.IsFatal(err) {
		t.Errorf("a store that is not connected: %v", err)
	}
}
