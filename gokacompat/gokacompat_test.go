package gokacompat_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"

	loyalty "github.com/tributary-io/tributary/examples/goka"
	"github.com/tributary-io/tributary/gokacompat"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

func newApp(t *testing.T, graph *goka.GroupGraph, opts ...gokacompat.Option) (*gokacompat.Application, *topology.Plan) {
	t.Helper()
	app, err := gokacompat.New(graph, opts...)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := app.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return app, plan
}

// harness runs a group in the harness and writes text to its topics.
type harness struct {
	t *testing.T
	*topologytest.Driver
	app *gokacompat.Application
	now int64
}

func newHarness(t *testing.T, graph *goka.GroupGraph, opts ...gokacompat.Option) *harness {
	t.Helper()
	app, plan := newApp(t, graph, append([]gokacompat.Option{gokacompat.StartAt(topology.Earliest)}, opts...)...)
	return &harness{t: t, Driver: topologytest.New(t, plan), app: app, now: 1000}
}

func (h *harness) pipe(topic, key, value string, headers ...processors.Header) error {
	h.now++
	r := topologytest.Record{Topic: topic, Partition: -1, Timestamp: h.now, Key: []byte(key), Value: []byte(value), Headers: headers}
	return h.Pipe(r)
}

// texts are the records that were written to a topic, as key=value.
func (h *harness) texts(topic string) (all []string) {
	for _, r := range h.Read(topic) {
		text := string(r.Key) + "="
		if r.Value == nil {
			text += "null"
		}
		text += string(r.Value)
		for _, header := range r.Headers {
			text += fmt.Sprintf(" %s:%s", header.Key, header.Value)
		}
		all = append(all, text)
	}
	return all
}

func (h *harness) want(topic string, want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.texts(topic)); diff != "" {
		h.t.Errorf("topic %s (-want +got):\n%s", topic, diff)
	}
}

func text(call func(ctx goka.Context, message string)) goka.ProcessCallback {
	return func(ctx goka.Context, message any) { call(ctx, message.(string)) }
}

func TestEveryEdge(t *testing.T) {
	const in, other, out, users goka.Stream = "in", "other", "out", "users"
	count := func(ctx goka.Context, m any) {
		n, _ := ctx.Value().(int64)
		ctx.SetValue(n + 1)
		ctx.Emit(out, ctx.Key(), fmt.Sprintf("%s: %v of %v, %s", m, n+1, ctx.Join("users"), ctx.Lookup("words", "hello")))
		if m == "pass on" {
			ctx.Loopback("boss", "from "+ctx.Key())
		}
		if m == "drop" {
			ctx.Delete()
		}
	}
	h := newHarness(t, goka.DefineGroup("g",
		goka.Inputs(goka.Streams{in, other}, new(codec.String), count),
		goka.Join("users", new(codec.String)),
		goka.Lookup("words", new(codec.String)),
		goka.Loop(new(codec.String), text(func(ctx goka.Context, m string) { ctx.Emit(out, ctx.Key(), "heard "+m) })),
		goka.Output(out, new(codec.String)),
		goka.Persist(new(codec.Int64)),
	))
	h.pipe("users", "anna", "Anna")
	h.pipe("words", "hello", "bonjour")
	h.pipe("in", "anna", "a")
	h.pipe("other", "anna", "b")
	h.pipe("in", "ben", "pass on")
	h.want("out", "anna=a: 1 of Anna, bonjour", "anna=b: 2 of Anna, bonjour", "ben=pass on: 1 of <nil>, bonjour", "boss=heard from ben")
	h.want("g-table", "anna=1", "anna=2", "ben=1")

	h.Restart() // the table comes back from its topic, which has goka's name and bytes
	h.pipe("in", "anna", "drop")
	h.pipe("in", "anna", "c")
	h.want("out", "anna=drop: 3 of Anna, bonjour", "anna=c: 1 of Anna, bonjour")
	h.want("g-table", "anna=3", "anna=null", "anna=1")
	h.want("g-loop", "boss=from ben")
}

func TestExampleCounts(t *testing.T) {
	w := loyalty.NewWorld(1, 20, 300)
	h := newHarness(t, loyalty.Group("loyalty"))
	input := func(topic string, key string, value any, c goka.Codec) {
		data, err := c.Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		h.pipe(topic, key, string(data))
	}
	for k, v := range w.Tiers {
		input("tiers", k, v, new(codec.Int64))
	}
	for k, v := range w.Customers {
		input("customers", k, v, loyalty.JSON[loyalty.Customer]{})
	}
	for _, p := range w.Purchases {
		input("purchases", p.Customer, p.Purchase, loyalty.JSON[loyalty.Purchase]{})
	}
	rewards := map[string]int64{}
	for _, r := range h.Read("loyalty-rewards") {
		rewards[string(r.Key)]++
	}
	if diff := cmp.Diff(w.Rewards(), rewards); diff != "" {
		t.Errorf("rewards (-want +got):\n%s", diff)
	}
	store, err := topologytest.KeyValue(h.Driver, "table", 0, serde.String, gokacompat.TypedSerde[loyalty.Account](loyalty.JSON[loyalty.Account]{}))
	if err != nil {
		t.Fatal(err)
	}
	accounts := map[string]loyalty.Account{}
	for row, err := range store.All() {
		if err != nil {
			t.Fatal(err)
		}
		accounts[row.Key] = row.Value
	}
	if diff := cmp.Diff(w.Accounts(), accounts); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestContextTellsAboutTheRecord(t *testing.T) {
	var got []any
	h := newHarness(t, goka.DefineGroup("g", goka.Input("in", new(codec.String), func(ctx goka.Context, m any) {
		got = append(got, ctx.Topic(), ctx.Key(), ctx.Partition(), ctx.Offset(), ctx.Group(), ctx.Timestamp().UnixMilli(), string(ctx.Headers()["h"]), m)
		ctx.Emit("out", "k", "v", goka.WithCtxEmitHeaders(goka.Headers{"b": []byte("2")}), goka.WithCtxEmitHeaders(goka.Headers{"a": []byte("1")}))
		ctx.Emit("out", "", nil)
	}), goka.Output("out", new(codec.String))), gokacompat.DefaultHeaders(goka.Headers{"app": []byte("x")}), gokacompat.EventTimes())
	h.pipe("in", "first", "m")
	h.pipe("in", "second", "n", processors.Header{Key: "h", Value: []byte("old")}, processors.Header{Key: "h", Value: []byte("new")})
	want := []any{
		goka.Stream("in"), "first", int32(0), int64(0), goka.Group("g"), int64(1001), "", "m",
		goka.Stream("in"), "second", int32(0), int64(1), goka.Group("g"), int64(1002), "new", "n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	records := h.Records("out", 0)
	if records[0].Timestamp != 1001 || records[2].Timestamp != 1002 {
		t.Errorf("emitted at %d and %d, want the input's times", records[0].Timestamp, records[2].Timestamp)
	}
	h.want("out", "k=v a:1 app:x b:2", "=null app:x", "k=v a:1 app:x b:2", "=null app:x")
}

func TestNilHandling(t *testing.T) {
	for handling, want := range map[goka.NilHandling][]string{
		goka.NilIgnore: nil, goka.NilProcess: {"k=<nil>"}, goka.NilDecode: {"k="},
	} {
		h := newHarness(t, goka.DefineGroup("g", goka.Input("in", new(codec.String), func(ctx goka.Context, m any) {
			ctx.Emit("out", ctx.Key(), fmt.Sprint(m))
		}), goka.Output("out", new(codec.String))), gokacompat.NilHandling(handling))
		if err := h.Pipe(topologytest.Record{Topic: "in", Partition: -1, Timestamp: 1, Key: []byte("k")}); err != nil {
			t.Fatal(err)
		}
		h.want("out", want...)
	}
}

// What goka panics for ends the application with an error that says what is wrong, even if the callback recovers.
func TestFailures(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		call func(ctx goka.Context)
		want string
	}{
		"fail":          {func(ctx goka.Context) { ctx.Fail(boom) }, "boom"},
		"fail for nil":  {func(ctx goka.Context) { ctx.Fail(nil) }, "without an error"},
		"recovered":     {func(ctx goka.Context) { defer func() { _ = recover() }(); ctx.Fail(boom) }, "boom"},
		"no output":     {func(ctx goka.Context) { ctx.Emit("elsewhere", "k", "v") }, "elsewhere is no output"},
		"loop":          {func(ctx goka.Context) { ctx.Emit("g-loop", "k", "v") }, "use Loopback"},
		"table":         {func(ctx goka.Context) { ctx.Emit("g-table", "k", "v") }, "use SetValue"},
		"no topic":      {func(ctx goka.Context) { ctx.Emit("", "k", "v") }, "without a name"},
		"wrong value":   {func(ctx goka.Context) { ctx.Emit("out", "k", 7) }, "encode a message for topic out"},
		"wrong row":     {func(ctx goka.Context) { ctx.SetValue("seven") }, "encode the value"},
		"nil row":       {func(ctx goka.Context) { ctx.SetValue(nil) }, "use Delete"},
		"wrong bonus":   {func(ctx goka.Context) { ctx.Loopback("k", 7) }, "encode a message of the loop"},
		"no join":       {func(ctx goka.Context) { ctx.Join("t") }, "define it with Join"},
		"no look-up":    {func(ctx goka.Context) { ctx.Lookup("t", "k") }, "define it with Lookup"},
		"plain panic":   {func(goka.Context) { panic("at the disco") }, "at the disco"},
		"deferred":      {func(ctx goka.Context) { ctx.DeferCommit()(boom) }, "boom"},
		"never called":  {func(ctx goka.Context) { ctx.DeferCommit() }, "DeferCommit"},
		"not decodable": {func(ctx goka.Context) { ctx.SetValue(int64(1)); ctx.Value() }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, plan := newApp(t, goka.DefineGroup("g",
				goka.Input("in", new(codec.String), func(ctx goka.Context, _ any) { test.call(ctx) }),
				goka.Loop(new(codec.String), func(goka.Context, any) {}),
				goka.Output("out", new(codec.String)), goka.Persist(new(codec.Int64)),
			), gokacompat.DeferLimit(20*time.Millisecond))
			d, err := topologytest.Open(plan)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			err = d.Pipe(topologytest.Record{Topic: "in", Partition: 0, Timestamp: 1, Key: []byte("k"), Value: []byte("v")})
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			wantError(t, err, test.want)
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if !contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

// A commit waits for the functions of DeferCommit.
func TestDeferCommitHoldsTheCommit(t *testing.T) {
	release := make(chan func(error), 1)
	h := newHarness(t, goka.DefineGroup("g", goka.Input("in", new(codec.String), func(ctx goka.Context, m any) {
		ctx.Emit("out", ctx.Key(), m)
		release <- ctx.DeferCommit()
	}), goka.Output("out", new(codec.String))))
	called := make(chan struct{})
	go func() {
		done := <-release
		time.Sleep(20 * time.Millisecond)
		close(called)
		done(nil)
	}()
	h.pipe("in", "k", "v")
	select {
	case <-called:
	default:
		t.Error("the record was committed before its function was called")
	}
	h.want("out", "k=v")
}

func TestContextWrapperAndItsEnd(t *testing.T) {
	var wrapped int
	var life <-chan struct{}
	h := newHarness(t, goka.DefineGroup("g", goka.Input("in", new(codec.String), func(ctx goka.Context, m any) {
		life = ctx.Context().Done()
	})), gokacompat.ContextWrapper(func(ctx goka.Context) goka.Context { wrapped++; return ctx }))
	h.pipe("in", "k", "v")
	if wrapped != 1 {
		t.Errorf("wrapped %d times", wrapped)
	}
	h.Close()
	select {
	case <-life:
	default:
		t.Error("the context goes on after the task")
	}
}

// The contexts of callbacks are made from the one that the option gives.
func TestContextOfCallbacks(t *testing.T) {
	type name struct{}
	var got any
	h := newHarness(t, goka.DefineGroup("g", goka.Input("in", new(codec.String), func(ctx goka.Context, m any) {
		got = ctx.Context().Value(name{})
	})), gokacompat.Context(context.WithValue(t.Context(), name{}, "of the program")))
	h.pipe("in", "k", "v")
	if got != "of the program" {
		t.Errorf("a callback's context has %v", got)
	}
}

// By default tables are on disk; the option keeps the group's and those that are joined in memory.
func TestTablesInMemory(t *testing.T) {
	group := goka.DefineGroup("g", goka.Input("in", new(codec.String), func(goka.Context, any) {}), goka.Join("users", new(codec.String)), goka.Persist(new(codec.String)))
	for _, inMemory := range []bool{false, true} {
		var opts []gokacompat.Option
		if inMemory {
			opts = append(opts, gokacompat.InMemory())
		}
		_, plan := newApp(t, group, opts...)
		stores := plan.Internal().Stores
		if len(stores) != 2 {
			t.Fatalf("%d stores, want the table and the joined one", len(stores))
		}
		for name, s := range stores {
			if s.Spec.InMemory != inMemory {
				t.Errorf("store %s is in memory: %v, want %v", name, s.Spec.InMemory, inMemory)
			}
		}
	}
}

func TestVisitAll(t *testing.T) {
	seen := map[string]string{}
	h := newHarness(t, goka.DefineGroup("g",
		goka.Input("in", new(codec.String), func(ctx goka.Context, m any) { ctx.SetValue(m) }),
		goka.Output("out", new(codec.String)),
		goka.Persist(new(codec.String)),
		goka.Visitor("v", func(ctx goka.Context, meta any) {
			seen[ctx.Key()] = fmt.Sprint(ctx.Topic(), " ", meta)
			if ctx.Value() == "two" {
				ctx.Delete()
				return
			}
			ctx.Emit("out", ctx.Key(), ctx.Value())
		})))
	const keys = 4501 // more than are visited in one go
	for i := range keys {
		h.pipe("in", fmt.Sprintf("k%04d", i), map[bool]string{true: "two", false: "one"}[i == 17])
	}
	type result struct {
		n   int64
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := h.app.VisitAll(t.Context(), "v", "meta")
		done <- result{n, err}
	}()
	var got result
	for waiting := true; waiting; {
		select {
		case got = <-done:
			waiting = false
		case <-time.After(time.Millisecond):
			h.AdvanceWallClock(300 * time.Millisecond)
		}
	}
	if got.err != nil || got.n != keys || len(seen) != keys || seen["k0003"] != "v meta" {
		t.Errorf("visited %d keys, %v; saw %d, of k0003 %q", got.n, got.err, len(seen), seen["k0003"])
	}
	if n := len(h.Read("out")); n != keys-1 {
		t.Errorf("%d records emitted", n)
	}
	if _, err := h.app.VisitAll(t.Context(), "w", nil); err == nil {
		t.Error("a visitor that isn't there was visited")
	}
	h.Close()
	if _, err := h.app.VisitAll(t.Context(), "v", nil); err == nil {
		t.Error("visited without a task")
	}
}

func TestGraphsThatCantBeRun(t *testing.T) {
	in := goka.Input("in", new(codec.String), func(goka.Context, any) {})
	for want, graph := range map[string]*goka.GroupGraph{
		"no input stream":            goka.DefineGroup("g", goka.Persist(new(codec.Int64))),
		"read as Join and as Lookup": goka.DefineGroup("g", in, goka.Join("t", new(codec.String)), goka.Lookup("t", new(codec.String))),
		"read as Input and as Join":  goka.DefineGroup("g", in, goka.Join("in", new(codec.String))),
		"no callback":                goka.DefineGroup("g", goka.Input("in", new(codec.String), nil)),
		"no codec":                   goka.DefineGroup("g", goka.Input("in", nil, func(goka.Context, any) {})),
	} {
		_, err := gokacompat.New(graph)
		wantError(t, err, want)
	}
	if _, err := gokacompat.New(nil); err == nil {
		t.Error("a nil graph was taken")
	}
}

// The topology has goka's topics, and demands what goka demands of their partitions.
func TestPlan(t *testing.T) {
	_, plan := newApp(t, loyalty.Group("loyalty"))
	p := plan.Internal()
	if diff := cmp.Diff([]string{"loyalty-loop", "loyalty-table"}, plan.InternalTopics()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"customers", "loyalty-loop", "purchases"}}, p.CopartitionGroups); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"loyalty-rewards"}, plan.Sinks()); diff != "" {
		t.Error(diff)
	}
	if len(p.Subtopologies) != 1 {
		t.Errorf("%d sub-topologies: a callback would not see all of its tables", len(p.Subtopologies))
	}
}
