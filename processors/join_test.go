package processors_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// pair shows both sides of a join.
func pair(_ string, l, r *string) (string, error) {
	return text(l, l == nil) + "+" + text(r, r == nil), nil
}

func joinSpecs(retention int64) []state.Spec {
	window := state.Spec{Kind: state.Window, RetentionMs: retention, WindowSizeMs: retention, RetainDuplicates: true, Logged: true}
	left, right := window, window
	left.Name, right.Name = "left", "right"
	return []state.Spec{left, right, {Name: "outer", Kind: state.JoinList, Logged: true}}
}

// streamJoin wires a stream-stream join over the stores of e.
func streamJoin(e *env, kind processors.JoinKind, before, after, grace, interval int64, out processors.Child) (left, right processors.Child) {
	j := &processors.StreamJoin[string, string, string, string]{
		Kind: kind, BeforeMs: before, AfterMs: after, GraceMs: grace, Join: pair, EmitIntervalMs: interval,
		ThisStore: strings2("left", serde.String), OtherStore: strings2("right", serde.String),
	}
	if kind != processors.InnerJoin {
		j.Outer = "outer"
	}
	merge := e.node("merge", processors.PassThrough[string, string](), out)
	left = e.node("leftWindow", j.ThisWindow(), e.node("left", j.This(), merge))
	right = e.node("rightWindow", j.OtherWindow(), e.node("right", j.Other(), merge))
	e.start()
	return left, right
}

func TestStreamJoinWindowIsAsymmetric(t *testing.T) {
	e := newEnv(t, joinSpecs(100)...)
	var out tap[string, string]
	left, right := streamJoin(e, processors.InnerJoin, 2, 5, 10, 0, out.child("out"))
	must(e, left, "k", "l", 10, processors.Header{Key: "left"})
	for _, ts := range []int64{7, 8, 15, 16} {
		must(e, right, "k", "r", ts, processors.Header{Key: "right"})
	}
	must(e, right, "other", "r", 10)
	want(t, out.take(), "k=l+r@10 right; k=l+r@15 right")
}

func TestStreamJoinUnmatched(t *testing.T) {
	e := newEnv(t, joinSpecs(100)...)
	var out tap[string, string]
	left, right := streamJoin(e, processors.OuterJoin, 5, 5, 2, 0, out.child("out"))
	must(e, left, "k", "a", 0)
	must(e, left, "k", "b", 0) // a list of two in one entry
	must(e, right, "k", "A", 20, processors.Header{Key: "h"})
	want(t, out.take(), "k=a+null@0 h; k=b+null@0 h")
	must(e, left, "k", "late", 1) // its window is over: it doesn't wait for grace
	want(t, out.take(), "k=late+null@1")
	must(e, left, "k", "c", 27)
	want(t, out.take(), "") // 20 + 5 + 2 is not before 27
	must(e, left, "k", "d", 28)
	want(t, out.take(), "k=null+A@20")
	must(e, right, "k", "D", 29) // matches c and d, which are forgotten as unmatched
	must(e, left, "z", "e", 100)
	want(t, out.take(), "k=c+D@29; k=d+D@29")
}

func TestStreamJoinNulls(t *testing.T) {
	for kind, expect := range map[processors.JoinKind]string{
		processors.InnerJoin: "",
		processors.LeftJoin:  "null=l+null@1",
		processors.OuterJoin: "null=l+null@1; null=null+r@1",
	} {
		e := newEnv(t, joinSpecs(100)...)
		var out tap[string, string]
		left, right := streamJoin(e, kind, 5, 5, 0, 0, out.child("out"))
		for _, side := range []struct {
			to    processors.Child
			value string
		}{{left, "l"}, {right, "r"}} {
			for _, r := range []processors.Record[string, string]{
				{KeyNull: true, Value: side.value, Timestamp: 1}, {Key: "k", ValueNull: true, Timestamp: 1},
			} {
				if err := pipeRecord(e, side.to, &r); err != nil {
					t.Fatal(err)
				}
			}
		}
		want(t, out.take(), expect)
		if e.drops[processors.DroppedNullValue] != 2 || e.drops[processors.DroppedNullKey] != 2-int(kind) {
			t.Errorf("kind %d: drops %v", kind, e.drops)
		}
	}
}

func TestStreamJoinAfterARestart(t *testing.T) {
	e := newEnv(t, joinSpecs(1000)...)
	var out tap[string, string]
	left, _ := streamJoin(e, processors.LeftJoin, 5, 5, 0, 0, out.child("out"))
	must(e, left, "k", "a", 10)
	for _, c := range e.closers {
		if err := c(); err != nil {
			t.Fatal(err)
		}
	}
	e.closers = nil
	left, right := streamJoin(e, processors.LeftJoin, 5, 5, 0, 0, out.child("out"))
	must(e, right, "k", "A", 4) // too early to match
	must(e, left, "z", "b", 40)
	want(t, out.take(), "k=a+null@10")
}

func TestStreamJoinThrottle(t *testing.T) {
	e := newEnv(t, joinSpecs(1000)...)
	var out tap[string, string]
	left, _ := streamJoin(e, processors.LeftJoin, 5, 5, 0, 1000, out.child("out"))
	must(e, left, "k", "a", 0)
	must(e, left, "k", "b", 10)
	want(t, out.take(), "k=a+null@0")
	must(e, left, "k", "c", 20)
	want(t, out.take(), "")
	e.now = e.now.Add(1e9)
	must(e, left, "k", "d", 30)
	want(t, out.take(), "k=b+null@10; k=c+null@20")
}

type joined struct {
	left       bool
	key, value string
	ts         int64
}

func randomRecords(r *rand.Rand, n int) []joined {
	records := make([]joined, n)
	ts := int64(0)
	for i := range records {
		ts += r.Int64N(4)
		records[i] = joined{r.IntN(2) == 0, string(rune('a' + r.IntN(2))), fmt.Sprint(i), ts}
	}
	return records
}

// TestStreamJoinEqualsNestedLoops compares all kinds of joins of ordered input with a model.
func TestStreamJoinEqualsNestedLoops(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		before, after, grace := r.Int64N(8), r.Int64N(8), r.Int64N(5)
		records := randomRecords(r, 20)
		for _, kind := range []processors.JoinKind{processors.InnerJoin, processors.LeftJoin, processors.OuterJoin} {
			e := newEnv(t, joinSpecs(before+after+grace+1)...)
			var out tap[string, string]
			left, right := streamJoin(e, kind, before, after, grace, 0, out.child("out"))
			for _, in := range records {
				to := right
				if in.left {
					to = left
				}
				must(e, to, in.key, in.value, in.ts)
			}
			must(e, left, "flush", "", 1<<40)
			must(e, right, "flush", "", 1<<40)
			got := slices.DeleteFunc(out.take(), func(s string) bool { return strings.HasPrefix(s, "flush") })
			expect := nestedLoops(records, kind, before, after)
			slices.Sort(got)
			slices.Sort(expect)
			if !slices.Equal(got, expect) {
				t.Fatalf("seed %d, kind %d, before %d, after %d, grace %d\n%v\ngot  %v\nwant %v", seed, kind, before, after, grace, records, got, expect)
			}
		}
	}
}

func nestedLoops(records []joined, kind processors.JoinKind, before, after int64) (out []string) {
	matched := make([]bool, len(records))
	for i, l := range records {
		for j, r := range records {
			if l.left && !r.left && l.key == r.key && r.ts >= l.ts-before && r.ts <= l.ts+after {
				matched[i], matched[j] = true, true
				out = append(out, fmt.Sprintf("%s=%s+%s@%d", l.key, l.value, r.value, max(l.ts, r.ts)))
			}
		}
	}
	for i, r := range records {
		switch {
		case matched[i]:
		case r.left && kind != processors.InnerJoin:
			out = append(out, fmt.Sprintf("%s=%s+null@%d", r.key, r.value, r.ts))
		case !r.left && kind == processors.OuterJoin:
			out = append(out, fmt.Sprintf("%s=null+%s@%d", r.key, r.value, r.ts))
		}
	}
	return out
}

// TestSelfJoinEqualsJoin: the optimized self join gives what the join of a stream with itself gives, in the same order.
func TestSelfJoinEqualsJoin(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 4))
		before, after, grace := r.Int64N(8), 1+r.Int64N(8), r.Int64N(5)
		records := randomRecords(r, 20)
		run := func(self bool) []string {
			e := newEnv(t, joinSpecs(before+after+grace)...)
			var out tap[string, string]
			var in processors.Child
			if self {
				j := &processors.StreamJoin[string, string, string, string]{ThisStore: strings2("left", serde.String)}
				in = e.node("window", j.ThisWindow(), e.node("self", processors.StreamSelfJoin[string, string, string]{
					BeforeMs: before, AfterMs: after, GraceMs: grace, Join: pair, Store: strings2("left", serde.String),
				}, out.child("out")))
				e.start()
			} else {
				left, right := streamJoin(e, processors.InnerJoin, before, after, grace, 0, out.child("out"))
				in = e.node("source", processors.PassThrough[string, string](), left, right)
			}
			for _, rec := range records {
				must(e, in, rec.key, rec.value, rec.ts)
			}
			return out.take()
		}
		if got, expect := run(true), run(false); !slices.Equal(got, expect) {
			t.Fatalf("seed %d: %v\ngot  %v\nwant %v", seed, records, got, expect)
		}
	}
}

func TestStreamTableJoin(t *testing.T) {
	for _, left := range []bool{false, true} {
		e := newEnv(t, tableSpec("rows"))
		rows := processors.NewTableSource(strings2("rows", serde.String), true)
		var out tap[string, string]
		table := e.node("table", rows)
		stream := e.node("join", processors.StreamTableJoin[string, string, string, string]{Table: rows.View(), Join: pair, Left: left}, out.child("out"))
		e.start()
		must(e, stream, "k", "a", 1)
		must(e, table, "k", "A", 9)
		must(e, stream, "k", "b", 2, processors.Header{Key: "h"})
		for _, r := range []processors.Record[string, string]{{KeyNull: true, Value: "c", Timestamp: 3}, {Key: "k", ValueNull: true}} {
			if err := pipeRecord(e, stream, &r); err != nil {
				t.Fatal(err)
			}
		}
		if left {
			want(t, out.take(), "k=a+null@1; k=b+A@2 h; null=c+null@3")
		} else {
			want(t, out.take(), "k=b+A@2 h")
		}
	}
}

func TestStreamTableJoinAsOf(t *testing.T) {
	for _, grace := range []int64{-1, 10} {
		e := newEnv(t, versionedSpec("rows"), state.Spec{Name: "buffer", Kind: state.JoinBuffer, GraceMs: max(grace, 0), Logged: true})
		e.skip = true
		rows := processors.NewTableSource(strings2("rows", serde.String), true)
		j := processors.StreamTableJoin[string, string, string, string]{Table: rows.View(), Left: true}
		j.Join = func(key string, l, r *string) (string, error) {
			if *l == "bad" {
				return "", errUser
			}
			return pair(key, l, r)
		}
		if grace >= 0 {
			j.GraceMs, j.Buffer = grace, strings2("buffer", serde.String)
		}
		var out tap[string, string]
		table, stream := e.node("table", rows), e.node("join", j, out.child("out"))
		e.start()
		must(e, table, "k", "A", 1)
		must(e, table, "k", "B", 10)
		must(e, stream, "k", "a", 9, processors.Header{Key: "h"})
		must(e, stream, "k", "bad", 9)
		must(e, table, "k", "late", 5)
		must(e, stream, "k", "b", 20)
		must(e, stream, "k", "c", 2) // later than grace: joined at once
		if grace < 0 {
			want(t, out.take(), "k=a+A@9 h; k=b+B@20; k=c+A@2")
			continue
		}
		want(t, out.take(), "k=a+late@9 h; k=c+A@2")
		if err := pipeRecord(e, stream, &processors.Record[string, string]{KeyNull: true, Value: "null key", Timestamp: 3}); err != nil {
			t.Fatal(err)
		}
		must(e, stream, "z", "drive", 30)
		want(t, out.take(), "null=null key+null@3; k=b+B@20")
		if len(e.failures) != 1 || e.ctx.Timestamp != 30 {
			t.Errorf("failures %v, the context shows %d", e.failures, e.ctx.Timestamp)
		}
	}
}

func TestGlobalTableJoin(t *testing.T) {
	e := newEnv(t, tableSpec("rows"))
	rows := processors.NewTableSource(processors.Store[*string, string]{Name: "rows", Key: serde.Ptr(serde.String), Value: serde.String}, true)
	selected := func(_, v string) (*string, error) {
		if v == "none" {
			return nil, nil
		}
		return &v, nil
	}
	var inner, left tap[string, string]
	table := e.node("table", rows)
	join := processors.GlobalTableJoin[string, string, *string, string, string]{Table: rows.View(), Select: selected, Join: pair}
	a := e.node("inner", join, inner.child("out"))
	join.Left = true
	b := e.node("left", join, left.child("out"))
	e.start()
	must(e, table, ptr("x"), "X", 1)
	for _, v := range []string{"x", "none", "y"} {
		must(e, a, "k", v, 2)
		must(e, b, "k", v, 2)
	}
	want(t, inner.take(), "k=x+X@2")
	want(t, left.take(), "k=x+X@2; k=none+null@2; k=y+null@2")
}

// TestTableJoinEqualsModel joins random updates of two tables, and compares the result, its rows as read through the view, and the old
// values with a model.
func TestTableJoinEqualsModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		kind := processors.JoinKind(seed % 3)
		e := newEnv(t, tableSpec("left"), tableSpec("right"), tableSpec("own"))
		left := processors.NewTableSource(strings2("left", serde.String), false)
		right := processors.NewTableSource(strings2("right", serde.String), false)
		var store *processors.Store[string, string]
		if seed%2 == 0 {
			s := strings2("own", serde.String)
			store = &s
		}
		j := processors.NewTableJoin(kind, left, right, pair, store)
		j.Merge.EnableOldValues(true)
		var out tap[string, stringChange]
		merge := e.node("merge", j.Merge, out.child("out"))
		tables := [2]processors.Child{
			e.node("left", left, e.node("this", j.This, merge)), e.node("right", right, e.node("other", j.Other, merge)),
		}
		view := viewOf(t, e, j.Merge.View())
		e.start()
		var model [2]map[string]string
		model[0], model[1] = map[string]string{}, map[string]string{}
		seen := map[string]string{}
		for i := range 30 {
			side, key := r.IntN(2), string(rune('a'+r.IntN(3)))
			if r.IntN(4) == 0 {
				delete(model[side], key)
				remove(e, tables[side], key, int64(i))
			} else {
				model[side][key] = fmt.Sprint(i)
				must(e, tables[side], key, fmt.Sprint(i), int64(i))
			}
			for _, line := range out.take() {
				key, rest, _ := strings.Cut(line, "=")
				now, old, _ := strings.Cut(rest, "<")
				old, _, _ = strings.Cut(old, "@")
				before, ok := seen[key]
				if !ok {
					before = "null"
				}
				if old != before {
					t.Fatalf("seed %d, kind %d: %s, but the old value was %s", seed, kind, line, before)
				}
				if seen[key] = now; now == "null" {
					delete(seen, key)
				}
			}
		}
		expect := map[string]string{}
		for _, key := range []string{"a", "b", "c"} {
			l, hasLeft := model[0][key]
			r, hasRight := model[1][key]
			if hasLeft && hasRight || hasLeft && kind != processors.InnerJoin || hasRight && kind == processors.OuterJoin {
				expect[key] = text(l, !hasLeft) + "+" + text(r, !hasRight)
			}
		}
		if !maps.Equal(seen, expect) {
			t.Fatalf("seed %d, kind %d\ngot  %v\nwant %v", seed, kind, seen, expect)
		}
		for _, key := range []string{"a", "b", "c"} {
			row, err := view().Get(key)
			if err != nil || row.Null == (expect[key] != "") || row.Value != expect[key] {
				t.Fatalf("seed %d, kind %d: row %s is %+v, %v; want %q", seed, kind, key, row, err, expect[key])
			}
		}
	}
}

func TestTableJoinDropsLateUpdatesOfVersionedTables(t *testing.T) {
	e := newEnv(t, versionedSpec("left"), tableSpec("right"))
	left := processors.NewTableSource(strings2("left", serde.String), true)
	right := processors.NewTableSource(strings2("right", serde.String), true)
	j := processors.NewTableJoin(processors.LeftJoin, left, right, pair, nil)
	j.This.UseVersionedSemantics(true)
	var out tap[string, stringChange]
	n := e.node("left", left, e.node("this", j.This, e.node("merge", j.Merge, out.child("out"))))
	e.start()
	must(e, n, "k", "new", 10)
	must(e, n, "k", "old", 5)
	want(t, out.take(), "k=new+null<null@10")
	if e.drops[processors.DroppedOutOfOrder] != 1 {
		t.Errorf("drops %v", e.drops)
	}
}
