package processors_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// env is a task without an engine: it wires nodes, keeps their stores in memory and shows what they do.
type env struct {
	t          testing.TB
	ctx        processors.Context
	db         *state.DB
	specs      []state.Spec
	now        time.Time
	streamTime int64
	progress   map[string]int64
	drops      map[string]int
	skip       bool // the processing-error handler says "skip"
	failures   []error
	produced   []string
	rows       []string
	rowErr     error
	inits      []func() error
	closers    []func() error
	schedules  []func(int64) error
	hooks      []func() error
	shared     map[string]any
	headers    []processors.Header
	offset     int64
}

func newEnv(t testing.TB, specs ...state.Spec) *env {
	e := &env{t: t, specs: specs, now: time.UnixMilli(0), streamTime: -1, progress: map[string]int64{}, drops: map[string]int{}}
	e.open()
	return e
}

func (e *env) open() {
	db, err := state.OpenMemory(e.specs, state.Options{})
	if err != nil {
		e.t.Fatal(err)
	}
	e.db = db
	db.Bind(&e.ctx.Context)
}

// node wires a node to its children; start opens it.
func (e *env) node(name string, s processors.Supplier, children ...processors.Child) processors.Child {
	e.t.Helper()
	n, err := s.New(&rt{env: e, name: name}, children)
	if err != nil {
		e.t.Fatalf("node %s: %v", name, err)
	}
	if n.Init != nil {
		e.inits = append(e.inits, n.Init)
	}
	if n.Close != nil {
		e.closers = append(e.closers, n.Close)
	}
	return processors.Child{Name: name, Next: n.Next}
}

func (e *env) start() {
	e.t.Helper()
	slices.Reverse(e.inits) // nodes are made children first, and opened parents first
	for _, init := range e.inits {
		if err := init(); err != nil {
			e.t.Fatal(err)
		}
	}
	e.inits = nil
}

// commit does what nodes do at a commit.
func (e *env) commit() {
	e.t.Helper()
	for _, f := range e.hooks {
		if err := f(); err != nil {
			e.t.Fatal(err)
		}
	}
}

// pipe sends a record into a node.
func pipe[K, V any](e *env, to processors.Child, key K, value V, ts int64, headers ...processors.Header) error {
	return pipeRecord(e, to, &processors.Record[K, V]{
		Key: key, KeyNull: serde.IsNil(key), Value: value, ValueNull: serde.IsNil(value), Timestamp: ts, Headers: headers,
	})
}

func pipeRecord[K, V any](e *env, to processors.Child, r *processors.Record[K, V]) error {
	e.ctx.Topic, e.ctx.Offset = "in", e.offset
	e.ctx.Timestamp, e.ctx.Headers = r.Timestamp, r.Headers
	e.offset++
	e.streamTime = max(e.streamTime, r.Timestamp)
	return to.Next.(processors.Next[K, V])(r)
}

// must is pipe where nothing may fail.
func must[K, V any](e *env, to processors.Child, key K, value V, ts int64, headers ...processors.Header) {
	e.t.Helper()
	if err := pipe(e, to, key, value, ts, headers...); err != nil {
		e.t.Fatal(err)
	}
}

// tap collects what reaches it as text, one entry a record: key=value@time, null for nulls, and the headers' names.
type tap[K, V any] struct{ got []string }

func (p *tap[K, V]) child(name string) processors.Child {
	return processors.Child{Name: name, Next: processors.Next[K, V](func(r *processors.Record[K, V]) error {
		p.got = append(p.got, show(r))
		return nil
	})}
}

// take returns what has come since the last call.
func (p *tap[K, V]) take() []string {
	got := p.got
	p.got = nil
	return got
}

func show[K, V any](r *processors.Record[K, V]) string {
	s := fmt.Sprintf("%s=%s@%d", text(r.Key, r.KeyNull), text(r.Value, r.ValueNull), r.Timestamp)
	for _, h := range r.Headers {
		s += " " + h.Key
	}
	return s
}

func text(v any, null bool) string {
	if null {
		return "null"
	}
	switch v := v.(type) {
	case *string:
		return *v
	case processors.Windowed[string]:
		return fmt.Sprintf("%s[%d,%d]", v.Key, v.Window.Start, v.Window.End)
	case processors.Change[string]:
		return change(v)
	case processors.Change[int64]:
		return change(v)
	case processors.Change[*string]:
		return change(v)
	}
	return fmt.Sprint(v)
}

// change shows new<old, with ! where it is not the latest.
func change[V any](c processors.Change[V]) string {
	s := text(c.New, c.NewNull) + "<" + text(c.Old, c.OldNull)
	if !c.IsLatest {
		s += "!"
	}
	return s
}

// want compares what came out with lines of one string, separated by "; ".
func want(t testing.TB, got []string, lines string) {
	t.Helper()
	if g := strings.Join(got, "; "); g != lines {
		t.Errorf("got  %s\nwant %s", g, lines)
	}
}

func ptr[T any](v T) *T { return &v }

// rt is the Runtime of one node.
type rt struct {
	*env
	name string
}

func (r *rt) ApplicationID() string        { return "app" }
func (r *rt) TaskID() string               { return "0_0" }
func (r *rt) NodeName() string             { return r.name }
func (r *rt) Logger() *slog.Logger         { return slog.New(discard{}) }
func (r *rt) Context() *processors.Context { return &r.ctx }
func (r *rt) StreamTimeMs() int64          { return r.streamTime }
func (r *rt) Now() time.Time               { return r.now }
func (r *rt) RequestCommit()               {}
func (r *rt) Stores() state.Stores         { return r.db }
func (r *rt) Dropped(reason string)        { r.drops[reason]++ }

func (r *rt) Schedule(_ time.Duration, _ processors.PunctuationType, f func(int64) error) processors.Cancellable {
	r.schedules = append(r.schedules, f)
	return nil
}

func (r *rt) BeforeCommit(f func() error) { r.hooks = append(r.hooks, f) }

func (r *rt) Shared(name string, make func() any) (v any, made bool) {
	if v, ok := r.shared[name]; ok {
		return v, false
	}
	if r.shared == nil {
		r.shared = map[string]any{}
	}
	v = make()
	r.shared[name] = v
	return v, true
}

func (r *rt) Failed(err error) error {
	if processors.IsFatal(err) {
		return err
	}
	r.failures = append(r.failures, fmt.Errorf("%s: %w", r.name, err))
	if r.skip {
		return nil
	}
	return &processors.ProcessingError{Node: r.name, Err: err}
}

func (r *rt) Produce(topic string, partition int32, key, value []byte, ts int64, headers []processors.Header) error {
	k, v := string(key), string(value)
	if key == nil {
		k = "null"
	}
	if value == nil {
		v = "null"
	}
	line := fmt.Sprintf("%s/%d %s=%s@%d", topic, partition, k, v, ts)
	for _, h := range headers {
		line += " " + h.Key
	}
	r.produced = append(r.produced, line)
	r.env.headers = headers
	return nil
}

func (r *rt) SerializationFailed(_ string, err error) error {
	r.failures = append(r.failures, err)
	return nil
}

func (r *rt) Partitions(string) (int32, error) { return 3, nil }

func (r *rt) Progress(key string) (int64, bool) {
	v, ok := r.progress[key]
	return v, ok
}

func (r *rt) SetProgress(key string, v int64) {
	if old, ok := r.progress[key]; ok && v < old {
		r.t.Errorf("progress %s goes down from %d to %d", key, old, v)
	}
	r.progress[key] = v
}

func (r *rt) Lake() (processors.LakeAppender, error) { return r, nil }

func (r *rt) Append(key, value any, meta *sink.Meta) error {
	if r.rowErr != nil {
		return r.rowErr
	}
	k, v := "null", "null"
	if p, ok := key.(*string); ok {
		k = *p
	}
	if p, ok := value.(*string); ok {
		v = *p
	}
	r.rows = append(r.rows, fmt.Sprintf("%s=%s %s-%d-%d@%d/%d %d", k, v,
		meta.Topic, meta.Partition, meta.Offset, meta.Timestamp, meta.BrokerTimestamp, len(meta.Headers)))
	return nil
}

type discard struct{}

func (discard) Enabled(context.Context, slog.Level) bool  { return false }
func (discard) Handle(context.Context, slog.Record) error { return nil }
func (d discard) WithAttrs([]slog.Attr) slog.Handler      { return d }
func (d discard) WithGroup(string) slog.Handler           { return d }
