package processors_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/processors"
)

var errUser = errors.New("user")

func longer(n int) func(string, string) (bool, error) {
	return func(_, v string) (bool, error) { return len(v) > n, nil }
}

func TestStatelessChain(t *testing.T) {
	e := newEnv(t)
	var out tap[string, int]
	chain := e.node("filter", processors.Filter(longer(1)),
		e.node("not", processors.FilterNot(longer(4)),
			e.node("map", processors.Map(func(k, v string) (string, string, error) { return v, k, nil }),
				e.node("select", processors.SelectKey(func(k, v string) (string, error) { return k + v, nil }),
					e.node("values", processors.MapValues(func(_, v string) (int, error) { return len(v), nil }), out.child("out"))))))
	h := processors.Header{Key: "h"}
	must(e, chain, "k", "v", 1)
	must(e, chain, "k", "vwxyz", 2)
	must(e, chain, "k", "vw", 3, h)
	want(t, out.take(), "vwk=1@3 h")
}

func TestNullBitsAndFunctions(t *testing.T) {
	e := newEnv(t)
	seen := 0
	see := func(string, string) error { seen++; return nil }
	var out tap[string, string]
	null := &processors.Record[string, string]{Key: "k", ValueNull: true, Timestamp: 1}
	fails := func(string, string) (bool, error) { return false, errUser }
	for name, s := range map[string]processors.Supplier{
		"filter":    processors.Filter(fails),
		"filterNot": processors.FilterNot(fails),
		"mapValues": processors.MapValues(func(_, v string) (string, error) { return v, errUser }),
		"peek":      processors.Peek(see),
		"branch":    processors.Branch([]processors.Route[string, string]{{"out", fails}, {"out", nil}}),
		"pass":      processors.PassThrough[string, string](),
	} {
		if err := pipeRecord(e, e.node(name, s, out.child("out")), null); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want(t, out.take(), "k=null@1")
	}
	var none tap[string, string]
	for _, s := range []processors.Supplier{
		processors.ForEach(see),
		processors.FlatMapValues(func(string, string, func(string)) error { return errUser }),
	} {
		if err := pipeRecord(e, e.node("n", s, none.child("out")), null); err != nil {
			t.Error(err)
		}
		want(t, none.take(), "")
	}
	if seen != 0 {
		t.Errorf("functions saw %d nulls", seen)
	}
	for _, s := range []processors.Supplier{
		processors.Map(func(k, v string) (string, string, error) { return k, v, nil }),
		processors.SelectKey(func(k, _ string) (string, error) { return k, nil }),
		processors.FlatMap(func(string, string, func(string, string)) error { return nil }),
	} {
		err := pipeRecord(e, e.node("n", s, none.child("out")), null)
		var n *processors.NullError
		if !errors.As(err, &n) || n.What != "value" || !strings.Contains(err.Error(), "topology.Changes") {
			t.Errorf("a function of key and value got a null: %v", err)
		}
	}
}

func TestNullableTypesGetTheirNil(t *testing.T) {
	e := newEnv(t)
	var out tap[*string, *string]
	n := e.node("map", processors.Map(func(k *string, v *string) (*string, *string, error) { return v, k, nil }),
		e.node("filter", processors.Filter(func(_, v *string) (bool, error) { return v == nil, nil }), out.child("out")))
	must[*string](e, n, nil, ptr("v"), 1)
	must(e, n, ptr("k"), ptr("v"), 1)
	want(t, out.take(), "v=null@1")
}

func TestFlatMapIsAllOrNothing(t *testing.T) {
	e := newEnv(t)
	e.skip = true
	var out tap[string, string]
	words := e.node("flat", processors.FlatMap(func(k, v string, emit func(string, string)) error {
		for w := range strings.SplitSeq(v, " ") {
			if w == "bad" {
				return errUser
			}
			emit(w, k)
		}
		return nil
	}), out.child("out"))
	must(e, words, "k", "a b", 1)
	must(e, words, "k", "a bad", 2)
	must(e, words, "k", "c", 3)
	want(t, out.take(), "a=k@1; b=k@1; c=k@3")
	values := e.node("flatValues", processors.FlatMapValues(func(_, v string, emit func(string)) error {
		for _, c := range v {
			emit(string(c))
		}
		return nil
	}), out.child("out"))
	must(e, values, "k", "xy", 4)
	want(t, out.take(), "k=x@4; k=y@4")
	if len(e.failures) != 1 {
		t.Errorf("failures: %v", e.failures)
	}
}

func TestBranchTakesTheFirst(t *testing.T) {
	e := newEnv(t)
	var long, short tap[string, string]
	routes := []processors.Route[string, string]{{"long", longer(2)}, {"short", longer(1)}}
	n := e.node("branch", processors.Branch(routes), short.child("short"), long.child("long"))
	for _, v := range []string{"a", "ab", "abc"} {
		must(e, n, "k", v, 1)
	}
	want(t, long.take(), "k=abc@1")
	want(t, short.take(), "k=ab@1")
	_, err := processors.Branch(routes).New(&rt{env: e, name: "b"}, []processors.Child{short.child("short")})
	var unknown *processors.UnknownChildError
	if !errors.As(err, &unknown) || unknown.Child != "long" {
		t.Errorf("a route without a child: %v", err)
	}
}

func TestErrorsStayAtTheirNode(t *testing.T) {
	e := newEnv(t)
	e.skip = true
	var out tap[string, string]
	bad := e.node("bad", processors.MapValues(func(_, v string) (string, error) {
		if v == "panic" {
			panic("boom")
		}
		return v, errUser
	}), out.child("out"))
	top := e.node("top", processors.Peek(func(string, string) error { return nil }), bad, out.child("sibling"))
	must(e, top, "k", "v", 1)
	must(e, top, "k", "panic", 2)
	want(t, out.take(), "k=v@1; k=panic@2")
	if len(e.failures) != 2 || !strings.HasPrefix(e.failures[0].Error(), "bad: user") || !strings.Contains(e.failures[1].Error(), "boom") {
		t.Errorf("failures: %v", e.failures)
	}
	e.skip, e.failures = false, nil
	err := pipe(e, top, "k", "v", 3)
	var p *processors.ProcessingError
	if !errors.As(err, &p) || p.Node != "bad" || !errors.Is(err, errUser) || len(e.failures) != 1 {
		t.Errorf("err %v, %d calls of the handler", err, len(e.failures))
	}
	want(t, out.take(), "")
}

func TestContextShowsTheRecordOfEachNode(t *testing.T) {
	e := newEnv(t)
	var seen []int64
	look := func(string, string) error { seen = append(seen, e.ctx.Timestamp); return nil }
	inner := e.node("inner", processors.Peek(look))
	forward := e.node("p", processors.Process(func() processors.Processor[string, string, string, string] { return &later{} }), inner)
	outer := e.node("outer", processors.Peek(look), forward, e.node("after", processors.Peek(look)))
	e.start()
	must(e, outer, "k", "v", 5)
	if len(seen) != 3 || seen[0] != 5 || seen[1] != 105 || seen[2] != 5 {
		t.Errorf("times %v", seen)
	}
}

// later sends each record with a time of 100 ms later.
type later struct {
	ctx processors.ProcessorContext[string, string]
}

func (p *later) Init(ctx processors.ProcessorContext[string, string]) error { p.ctx = ctx; return nil }
func (p *later) Close() error                                               { return nil }
func (p *later) Process(r *processors.Record[string, string]) error {
	out := *r
	out.Timestamp += 100
	return p.ctx.Forward(&out)
}

// BenchmarkStateless measures four stages, from a source's record to the last function.
func BenchmarkStateless(b *testing.B) {
	e := newEnv(b)
	sum := int64(0)
	chain := e.node("filter", processors.Filter(func(_ string, v int64) (bool, error) { return v >= 0, nil }),
		e.node("mapValues", processors.MapValues(func(_ string, v int64) (int64, error) { return v + 1, nil }),
			e.node("select", processors.SelectKey(func(_ string, v int64) (int64, error) { return v & 7, nil }),
				e.node("each", processors.ForEach(func(k, v int64) error { sum += k + v; return nil })))))
	next := chain.Next.(processors.Next[string, int64])
	r := &processors.Record[string, int64]{Key: "key", Timestamp: 1}
	b.ReportAllocs()
	for b.Loop() {
		r.Value++
		if err := next(r); err != nil {
			b.Fatal(err)
		}
	}
}
