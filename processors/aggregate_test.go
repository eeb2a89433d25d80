package processors_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

type windowedKey = processors.Windowed[string]

func strings2[V any](name string, value serde.Serde[V]) processors.Store[string, V] {
	return processors.Store[string, V]{Name: name, Key: serde.String, Value: value}
}

func tableSpec(name string) state.Spec {
	return state.Spec{Name: name, Kind: state.TimestampedKeyValue, Logged: true}
}

func windowSpec(name string, retention int64) state.Spec {
	return state.Spec{Name: name, Kind: state.TimestampedWindow, RetentionMs: retention, WindowSizeMs: 10, Logged: true}
}

func sessionSpec(name string, retention int64) state.Spec {
	return state.Spec{Name: name, Kind: state.Session, RetentionMs: retention, Logged: true}
}

// concat is an aggregation that shows in which order it was called.
func concat() processors.Aggregation[string, string, string] {
	return processors.Aggregating(
		func() (string, error) { return "0", nil },
		func(_, v, a string) (string, error) { return a + "+" + v, nil },
		func(_, v, a string) (string, error) { return a + "-" + v, nil },
		func(_, a, b string) (string, error) { return a + "&" + b, nil })
}

func TestCountAndOldValues(t *testing.T) {
	e := newEnv(t, tableSpec("s"))
	var out tap[string, processors.Change[int64]]
	table := processors.NewAggregate(processors.Counting[string, *string](), strings2("s", serde.Int64))
	table.EnableOldValues(false)
	n := e.node("count", table, out.child("out"))
	e.start()
	h := processors.Header{Key: "h"}
	must(e, n, "a", ptr("x"), 5, h)
	must(e, n, "a", ptr("x"), 3)
	must[string, *string](e, n, "a", nil, 9)
	want(t, out.take(), "a=1<0@5 h; a=2<1@5")
	if e.drops[processors.DroppedNullValue] != 1 {
		t.Errorf("drops: %v", e.drops)
	}
}

func TestReduceAndNullResult(t *testing.T) {
	e := newEnv(t, tableSpec("s"))
	var out tap[string, processors.Change[*string]]
	join := func(a, v *string) (*string, error) {
		if *v == "null" {
			return nil, nil
		}
		return ptr(*a + *v), nil
	}
	table := processors.NewAggregate(processors.Reducing[string](join, nil), strings2("s", serde.Ptr(serde.String)))
	n := e.node("reduce", table, out.child("out"))
	e.start()
	for i, v := range []string{"a", "b", "null", "c"} {
		must(e, n, "k", ptr(v), int64(i))
	}
	want(t, out.take(), "k=a<null@0; k=ab<null@1; k=null<null@2; k=c<null@3")
}

func TestTableAggregateMovesRowsBetweenGroups(t *testing.T) {
	e := newEnv(t, tableSpec("rows"), tableSpec("s"))
	source := processors.NewTableSource(strings2("rows", serde.String), false)
	group := &processors.TableRepartitionMap[string, string, string, string]{
		Map: func(_, v string) (string, string, error) { return v[:1], v, nil },
		Key: serde.String,
	}
	if !source.EnableOldValues(true) || !source.Materialized() {
		t.Fatal("a forced source has its store")
	}
	var out tap[string, processors.Change[string]]
	table := processors.NewTableAggregate(concat(), strings2("s", serde.String))
	n := e.node("source", source, e.node("group", group, e.node("aggregate", table, out.child("out"))))
	e.start()
	must(e, n, "k1", "a1", 10)
	must(e, n, "k2", "a2", 5)
	must(e, n, "k1", "a3", 7) // same group: one result
	must(e, n, "k1", "b1", 20)
	if err := pipeRecord(e, n, &processors.Record[string, string]{Key: "k2", ValueNull: true, Timestamp: 1}); err != nil {
		t.Fatal(err)
	}
	want(t, out.take(), "a=0+a1<null@10; a=0+a1+a2<null@10; a=0+a1+a2-a1+a3<null@10; "+
		"a=0+a1+a2-a1+a3-a3<null@20; b=0+b1<null@20; a=0+a1+a2-a1+a3-a3-a2<null@20")
}

func TestAggregateChangedInPlaceKeepsItsOldValue(t *testing.T) {
	e := newEnv(t, tableSpec("s"), windowSpec("w", 1000), sessionSpec("x", 1000))
	add := func(_, v string, a map[string]int) (map[string]int, error) { a[v]++; return a, nil }
	merge := func(_ string, a, b map[string]int) (map[string]int, error) {
		for k, n := range b {
			a[k] += n
		}
		return a, nil
	}
	group := processors.Aggregating(func() (map[string]int, error) { return map[string]int{}, nil }, add, nil, merge)
	type m = map[string]int
	maps := serde.JSON[m]()
	var plain tap[string, processors.Change[m]]
	var windowed, sessions tap[windowedKey, processors.Change[m]]
	tables := []processors.Child{}
	p := processors.NewAggregate(group, strings2("s", maps))
	p.EnableOldValues(true)
	tables = append(tables, e.node("p", p, plain.child("out")))
	w := processors.NewWindowAggregate(group, processors.TimeWindows{SizeMs: 10, AdvanceMs: 10}, processors.Emit{}, strings2("w", maps))
	w.EnableOldValues(true)
	tables = append(tables, e.node("w", w, windowed.child("out")))
	s := processors.NewSessionAggregate(group, processors.SessionWindows{GapMs: 5}, processors.Emit{}, strings2("x", maps))
	s.EnableOldValues(true)
	tables = append(tables, e.node("x", s, sessions.child("out")))
	e.start()
	for _, n := range tables {
		must(e, n, "k", "a", 1)
		must(e, n, "k", "a", 2)
	}
	want(t, plain.take(), "k={map[a:1] map[] false false true}@1; k={map[a:2] map[a:1] false false true}@2")
	want(t, windowed.take(), "k[0,10]={map[a:1] map[] false false true}@1; k[0,10]={map[a:2] map[a:1] false false true}@2")
	want(t, sessions.take(), "k[1,1]={map[a:1] map[] false true true}@1; k[1,1]={map[] map[a:1] true false true}@1; "+
		"k[1,2]={map[a:2] map[] false true true}@2")
}

func windowNode(t testing.TB, windows processors.TimeWindows, emit processors.Emit, retention int64) (*env, processors.Child, *tap[windowedKey, processors.Change[string]]) {
	spec := windowSpec("s", retention)
	spec.TimeOrdered = emit.OnClose
	e := newEnv(t, spec)
	out := &tap[windowedKey, processors.Change[string]]{}
	table := processors.NewWindowAggregate(concat(), windows, emit, strings2("s", serde.String))
	n := e.node("window", table, out.child("out"))
	e.start()
	return e, n, out
}

func TestTumblingGraceToTheMillisecond(t *testing.T) {
	e, n, out := windowNode(t, processors.TimeWindows{SizeMs: 10, AdvanceMs: 10, GraceMs: 5}, processors.Emit{}, 100)
	must(e, n, "k", "a", 9)
	must(e, n, "k", "b", 14) // close time 9: [0,10) is open
	must(e, n, "k", "c", 0)
	must(e, n, "k", "d", 15) // close time 10
	must(e, n, "k", "e", 1)
	want(t, out.take(), "k[0,10]=0+a<null@9; k[10,20]=0+b<null@14; k[0,10]=0+a+c<null@9; k[10,20]=0+b+d<null@15")
	if e.drops[processors.DroppedLate] != 1 {
		t.Errorf("drops: %v", e.drops)
	}
}

func TestHoppingCountsALateRecordForEachClosedWindow(t *testing.T) {
	e, n, out := windowNode(t, processors.TimeWindows{SizeMs: 10, AdvanceMs: 3}, processors.Emit{}, 100)
	must(e, n, "k", "a", 20)
	out.take()
	must(e, n, "k", "b", 14) // windows 6, 9, 12 of which 6 and 9 are closed
	want(t, out.take(), "k[12,22]=0+a+b<null@20")
	if e.drops[processors.DroppedLate] != 2 {
		t.Errorf("drops: %v", e.drops)
	}
}

func TestUnlimitedWindow(t *testing.T) {
	e, n, out := windowNode(t, processors.TimeWindows{Unlimited: true, StartMs: 5}, processors.Emit{}, 1<<62)
	must(e, n, "k", "a", 4)
	must(e, n, "k", "b", 50)
	must(e, n, "k", "c", 5)
	want(t, out.take(), "k[5,9223372036854775807]=0+b<null@50; k[5,9223372036854775807]=0+b+c<null@50")
}

func TestEmitOnCloseLosesNothingWhenTimeJumps(t *testing.T) {
	// The retention is Kafka Streams' default, size + grace: there these windows would be gone before they are sent.
	for _, interval := range []int64{0, 1000} {
		e, n, out := windowNode(t, processors.TimeWindows{SizeMs: 10, AdvanceMs: 10, GraceMs: 5}, processors.Emit{OnClose: true, IntervalMs: interval}, 15)
		must(e, n, "k", "a", 1)
		must(e, n, "l", "b", 2)
		must(e, n, "k", "c", 11)
		want(t, out.take(), "")
		must(e, n, "k", "d", 500, processors.Header{Key: "h"})
		want(t, out.take(), "k[0,10]=0+a<null@1 h; l[0,10]=0+b<null@2 h; k[10,20]=0+c<null@11 h")
		must(e, n, "k", "e", 501)
		must(e, n, "k", "f", 515)
		want(t, out.take(), "k[500,510]=0+d+e<null@501")
	}
}

func TestEmitOnCloseThrottled(t *testing.T) {
	e, n, out := windowNode(t, processors.TimeWindows{SizeMs: 10, AdvanceMs: 10}, processors.Emit{OnClose: true, IntervalMs: 1000}, 1<<40)
	must(e, n, "k", "a", 1)
	must(e, n, "k", "b", 10) // the first round
	want(t, out.take(), "k[0,10]=0+a<null@1")
	must(e, n, "k", "c", 20)
	want(t, out.take(), "")
	e.now = e.now.Add(1e9)
	must(e, n, "k", "d", 30)
	want(t, out.take(), "k[10,20]=0+b<null@10; k[20,30]=0+c<null@20")
}

func TestEmitOnCloseGoesOnAfterARestart(t *testing.T) {
	e, n, out := windowNode(t, processors.TimeWindows{SizeMs: 10, AdvanceMs: 10, GraceMs: 5}, processors.Emit{OnClose: true}, 15)
	must(e, n, "k", "a", 1)
	must(e, n, "k", "b", 20)
	want(t, out.take(), "k[0,10]=0+a<null@1")
	table := processors.NewWindowAggregate(concat(), processors.TimeWindows{SizeMs: 10, AdvanceMs: 10, GraceMs: 5},
		processors.Emit{OnClose: true}, strings2("s", serde.String))
	again := e.node("window", table, out.child("out"))
	e.start()
	must(e, again, "k", "late", 4) // still late, although the new node has seen nothing
	must(e, again, "k", "c", 36)
	want(t, out.take(), "k[20,30]=0+b<null@20")
	if e.drops[processors.DroppedLate] != 1 {
		t.Errorf("drops: %v", e.drops)
	}
}

func TestSessionsMerge(t *testing.T) {
	e := newEnv(t, sessionSpec("s", 1000))
	var out tap[windowedKey, processors.Change[string]]
	table := processors.NewSessionAggregate(concat(), processors.SessionWindows{GapMs: 5, GraceMs: 10}, processors.Emit{}, strings2("s", serde.String))
	n := e.node("session", table, out.child("out"))
	e.start()
	must(e, n, "k", "a", 0)
	must(e, n, "k", "b", 10)
	must(e, n, "k", "c", 5, processors.Header{Key: "h"}) // joins both
	want(t, out.take(), "k[0,0]=0+a<null@0; k[10,10]=0+b<null@10; k[0,0]=null<null@0; k[10,10]=null<null@10; "+
		"k[0,10]=0&0+a&0+b+c<null@10")
	must(e, n, "k", "d", 30) // the close time is 30 - 10 - 5
	out.take()
	must(e, n, "k", "e", 15)
	want(t, out.take(), "k[0,10]=null<null@10; k[0,15]=0&0&0+a&0+b+c+e<null@15")
	must(e, n, "k", "f", 31)
	out.take()
	must(e, n, "k", "g", 9) // [0,15] ends before the close time 16
	want(t, out.take(), "")
	if e.drops[processors.DroppedLate] != 1 {
		t.Errorf("drops: %v", e.drops)
	}
}

func TestSessionsOnClose(t *testing.T) {
	e := newEnv(t, sessionSpec("s", 5))
	var out tap[windowedKey, processors.Change[string]]
	table := processors.NewSessionAggregate(concat(), processors.SessionWindows{GapMs: 5}, processors.Emit{OnClose: true}, strings2("s", serde.String))
	n := e.node("session", table, out.child("out"))
	e.start()
	must(e, n, "k", "a", 0)
	must(e, n, "k", "b", 3)
	must(e, n, "k", "c", 8)
	must(e, n, "k", "d", 13) // joins: 13 - 8 is the gap
	want(t, out.take(), "")
	must(e, n, "l", "e", 400, processors.Header{Key: "h"})
	want(t, out.take(), "k[0,13]=0&0&0&0+a+b+c+d<null@13 h")
}

// TestSlidingEqualsDefinition compares the sliding windows that are there in the end with KIP-450's definition, for any order of input.
func TestSlidingEqualsDefinition(t *testing.T) {
	const difference = 10
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		times := make([]int64, 1+r.IntN(8))
		for i := range times {
			times[i] = difference + r.Int64N(40)
		}
		e := newEnv(t, windowSpec("s", 1<<30))
		var out tap[windowedKey, processors.Change[string]]
		sorted := processors.Aggregating(
			func() (string, error) { return "", nil },
			func(_, v, a string) (string, error) {
				all := append(strings.Fields(a), v)
				slices.Sort(all)
				return strings.Join(all, " "), nil
			}, nil, nil)
		table := processors.NewSlidingAggregate(sorted, processors.SlidingWindows{DifferenceMs: difference, GraceMs: 1 << 20},
			processors.Emit{}, strings2("s", serde.String))
		n := e.node("sliding", table, out.child("out"))
		e.start()
		for i, ts := range times {
			must(e, n, "k", fmt.Sprintf("%02d#%d", ts, i), ts)
		}
		got := map[string]string{}
		for _, line := range out.take() {
			window, rest, _ := strings.Cut(line, "=")
			got[window], _, _ = strings.Cut(rest, "<")
		}
		if expect := slidingModel(times, difference); !maps.Equal(got, expect) {
			t.Fatalf("seed %d, times %v\ngot  %v\nwant %v", seed, times, got, expect)
		}
	}
}

// slidingModel is the definition: for each record the window that ends at it, and the one that starts a ms after it unless it is empty.
func slidingModel(times []int64, difference int64) map[string]string {
	windows := map[string]string{}
	within := func(start, end int64) {
		var all []string
		for i, ts := range times {
			if ts >= start && ts <= end {
				all = append(all, fmt.Sprintf("%02d#%d", ts, i))
			}
		}
		slices.Sort(all)
		if len(all) > 0 {
			windows[fmt.Sprintf("k[%d,%d]", start, end)] = strings.Join(all, " ")
		}
	}
	for _, ts := range times {
		within(ts-difference, ts)
		within(ts+1, ts+1+difference)
	}
	return windows
}

// TestPermutationsGiveTheBatchResult: within grace, the last result of each window doesn't depend on the order of the records.
func TestPermutationsGiveTheBatchResult(t *testing.T) {
	sum := processors.Aggregating(
		func() (int64, error) { return 0, nil },
		func(_ string, v, a int64) (int64, error) { return a + v, nil }, nil,
		func(_ string, a, b int64) (int64, error) { return a + b, nil })
	type table = processors.Table[windowedKey, int64]
	store := strings2("s", serde.Int64)
	operators := map[string]func() (state.Spec, table){
		"hopping": func() (state.Spec, table) {
			return windowSpec("s", 1<<30), processors.NewWindowAggregate(sum, processors.TimeWindows{SizeMs: 20, AdvanceMs: 5, GraceMs: 1 << 20}, processors.Emit{}, store)
		},
		"sliding": func() (state.Spec, table) {
			return windowSpec("s", 1<<30), processors.NewSlidingAggregate(sum, processors.SlidingWindows{DifferenceMs: 7, GraceMs: 1 << 20}, processors.Emit{}, store)
		},
		"session": func() (state.Spec, table) {
			return sessionSpec("s", 1<<30), processors.NewSessionAggregate(sum, processors.SessionWindows{GapMs: 4, GraceMs: 1 << 20}, processors.Emit{}, store)
		},
	}
	for name, make := range operators {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 2))
			type input struct {
				key   string
				value int64
				ts    int64
			}
			var in []input
			for range 12 {
				in = append(in, input{strconv.Itoa(r.IntN(2)), r.Int64N(100), 7 + r.Int64N(80)})
			}
			run := func() map[string]string {
				spec, table := make()
				e := newEnv(t, spec)
				var out tap[windowedKey, processors.Change[int64]]
				n := e.node("n", table, out.child("out"))
				e.start()
				for _, i := range in {
					must(e, n, i.key, i.value, i.ts)
				}
				last := map[string]string{}
				for _, line := range out.take() {
					window, value, _ := strings.Cut(line, "=")
					if last[window] = value; strings.HasPrefix(value, "null") {
						delete(last, window)
					}
				}
				return last
			}
			slices.SortFunc(in, func(a, b input) int { return int(a.ts - b.ts) })
			expect := run()
			r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			if got := run(); !maps.Equal(got, expect) {
				t.Fatalf("%s, seed %d: %v\ngot  %v\nwant %v", name, seed, in, got, expect)
			}
		}
	}
}
