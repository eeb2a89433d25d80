package processors_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// script is a processor made of functions.
type script struct {
	init    func(ctx processors.ProcessorContext[*string, *string]) error
	process func(ctx processors.ProcessorContext[*string, *string], r *processors.Record[string, string]) error
	ctx     processors.ProcessorContext[*string, *string]
	closed  bool
}

func (s *script) Init(ctx processors.ProcessorContext[*string, *string]) error {
	s.ctx = ctx
	if s.init != nil {
		return s.init(ctx)
	}
	return nil
}

func (s *script) Process(r *processors.Record[string, string]) error { return s.process(s.ctx, r) }
func (s *script) Close() error                                       { s.closed = true; return nil }

func (s *script) supplier() processors.Supplier {
	return processors.Process(func() processors.Processor[string, string, *string, *string] { return s })
}

type out = processors.Record[*string, *string]

func TestProcessorForwards(t *testing.T) {
	e := newEnv(t)
	var a, b tap[*string, *string]
	s := &script{process: func(ctx processors.ProcessorContext[*string, *string], r *processors.Record[string, string]) error {
		reused := out{Key: &r.Key, Timestamp: r.Timestamp, Headers: ctx.Headers()}
		if err := ctx.Forward(&reused); err != nil { // the null bit of the value is left out
			return err
		}
		reused.Value = &r.Value
		if err := ctx.ForwardTo("b", &reused); err != nil {
			return err
		}
		m, ok := ctx.Metadata()
		if m.Topic != "in" || m.Offset != 0 || !ok {
			t.Errorf("metadata %v %v", m, ok)
		}
		return ctx.ForwardTo("c", &reused)
	}}
	n := e.node("p", s.supplier(), a.child("a"), b.child("b"))
	e.start()
	err := pipe(e, n, "k", "v", 5, processors.Header{Key: "h"})
	var unknown *processors.UnknownChildError
	if !errors.As(err, &unknown) || unknown.Child != "c" {
		t.Errorf("err %v", err)
	}
	want(t, a.take(), "k=null@5 h")
	want(t, b.take(), "k=null@5 h; k=v@5 h")
}

func TestProcessorCannotSwallowAFatalError(t *testing.T) {
	e := newEnv(t)
	broken := processors.Child{Name: "broken", Next: processors.Next[*string, *string](func(*out) error {
		return &processors.ProcessingError{Node: "broken", Err: errUser}
	})}
	s := &script{process: func(ctx processors.ProcessorContext[*string, *string], r *processors.Record[string, string]) error {
		_ = ctx.Forward(&out{Key: &r.Key})
		return nil
	}}
	n := e.node("p", s.supplier(), broken)
	e.start()
	if err := pipe(e, n, "k", "v", 5); !errors.Is(err, errUser) || len(e.failures) != 0 {
		t.Errorf("err %v, handler saw %v", err, e.failures)
	}
}

func TestProcessorRefusesNegativeTimes(t *testing.T) {
	e := newEnv(t)
	s := &script{process: func(ctx processors.ProcessorContext[*string, *string], _ *processors.Record[string, string]) error {
		return ctx.Forward(&out{Timestamp: -1})
	}}
	n := e.node("p", s.supplier())
	e.start()
	if err := pipe(e, n, "k", "v", 5); err == nil || len(e.failures) != 1 {
		t.Errorf("err %v", err)
	}
}

func TestProcessorLifeAndPunctuation(t *testing.T) {
	e := newEnv(t)
	var a tap[*string, *string]
	fired := 0
	s := &script{init: func(ctx processors.ProcessorContext[*string, *string]) error {
		ctx.Schedule(time.Second, processors.StreamTime, func(ts int64) error {
			fired++
			if _, ok := ctx.Metadata(); ok {
				t.Error("a punctuation has no record")
			}
			return ctx.Forward(&out{Key: ptr("tick"), Timestamp: ts})
		})
		return nil
	}}
	e.node("p", s.supplier(), a.child("a"))
	e.start()
	e.ctx.Topic = ""
	if err := e.schedules[0](7); err != nil || fired != 1 {
		t.Errorf("err %v", err)
	}
	want(t, a.take(), "tick=null@7")
	if err := e.closers[0](); err != nil || !s.closed {
		t.Errorf("closed %v, %v", s.closed, err)
	}
	failing := &script{init: func(processors.ProcessorContext[*string, *string]) error { panic("boom") }}
	e.node("q", failing.supplier())
	var p *processors.PanicError
	if err := e.inits[0](); !errors.As(err, &p) {
		t.Errorf("a panic in Init: %v", err)
	}
}

// stores is a processor that opens one store of each kind.
func TestTypedStores(t *testing.T) {
	e := newEnv(t,
		state.Spec{Name: "kv", Kind: state.KeyValue}, tableSpec("tkv"),
		state.Spec{Name: "w", Kind: state.Window, RetentionMs: 100, WindowSizeMs: 10}, windowSpec("tw", 100),
		sessionSpec("s", 100), versionedSpec("v"))
	s := &script{}
	s.init = func(ctx processors.ProcessorContext[*string, *string]) error {
		kv, err := processors.KeyValueStore(ctx, strings2("kv", serde.Int64))
		if err != nil {
			return err
		}
		tkv, err1 := processors.TimestampedKeyValueStore(ctx, strings2("tkv", serde.Int64))
		w, err2 := processors.WindowStore(ctx, strings2("w", serde.Int64))
		tw, err3 := processors.TimestampedWindowStore(ctx, strings2("tw", serde.Int64))
		ss, err4 := processors.SessionStore(ctx, strings2("s", serde.Int64))
		v, err5 := processors.VersionedStore(ctx, strings2("v", serde.Int64))
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
			return err
		}
		_, err1 = w.Put("k", 3, 5)
		_, err2 = tw.Put("k", 4, 5, 6)
		_, err3 = ss.Put("k", 5, 1, 2)
		_, err4 = v.Put("k", 6, 7)
		if err := errors.Join(kv.Put("k", 1), tkv.Put("k", 2, 9), err1, err2, err3, err4); err != nil {
			return err
		}
		n1, _, _ := kv.Get("k")
		n2, _, _, _ := tkv.Get("k")
		n3, _, _ := w.Get("k", 5)
		n4, _, _, _ := tw.Get("k", 5)
		n5, _, _ := ss.Get("k", 1, 2)
		n6, _, _ := v.Get("k")
		if n1+n2+n3+n4+n5+n6.Value != 21 {
			t.Error("the stores don't hold what was put")
		}
		_, err = processors.KeyValueStore(ctx, strings2("nowhere", serde.Int64))
		return err
	}
	e.node("p", s.supplier())
	var access *processors.StoreAccessError
	if err := e.inits[0](); !errors.As(err, &access) || access.Node != "p" || access.Store != "nowhere" {
		t.Errorf("err %v", err)
	}
}

// upper is a fixed-key processor.
type upper struct {
	ctx processors.FixedKeyContext[string, string]
}

func (u *upper) Init(ctx processors.FixedKeyContext[string, string]) error {
	u.ctx = ctx
	ctx.Schedule(time.Second, processors.WallClockTime, func(ts int64) error {
		return ctx.Forward(&processors.Record[string, string]{Key: "k", Timestamp: ts})
	})
	return nil
}

func (u *upper) Process(r *processors.Record[string, string]) error {
	v := processors.WithValue(r, r.Value+"!")
	v.Key = "another"
	if err := u.ctx.Forward(&v); err != nil {
		return err
	}
	return u.ctx.ForwardTo("a", &v)
}

func (u *upper) Close() error { return nil }

func TestFixedKeyProcessorKeepsTheKey(t *testing.T) {
	e := newEnv(t)
	var a tap[string, string]
	n := e.node("p", processors.ProcessValues(func() processors.FixedKeyProcessor[string, string, string] { return &upper{} }), a.child("a"))
	e.start()
	must(e, n, "k", "v", 5)
	want(t, a.take(), "k=v!@5; k=v!@5")
	if err := e.schedules[0](1); err == nil {
		t.Error("a punctuation of a fixed-key processor has sent a record")
	}
}

func TestWithKeyAndValue(t *testing.T) {
	r := &processors.Record[string, string]{Key: "k", Value: "v", Timestamp: 3}
	k := processors.WithKey(r, (*string)(nil))
	v := processors.WithValue(r, (*string)(nil))
	want(t, []string{show(&k), show(&v)}, "null=v@3; k=null@3")
}
