package processors_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

func bufferSpec() state.Spec {
	return state.Spec{Name: "buffer", Kind: state.SuppressBuffer, Logged: true}
}

func suppressWindows(t testing.TB, s processors.Suppression[windowedKey, int64], grace int64) (*env, processors.Child, *tap[windowedKey, processors.Change[int64]]) {
	e := newEnv(t, windowSpec("counts", 1000), bufferSpec())
	counts := processors.NewWindowAggregate(processors.Counting[string, string](),
		processors.TimeWindows{SizeMs: 10, AdvanceMs: 10, GraceMs: grace}, processors.Emit{}, strings2("counts", serde.Int64))
	s.UntilWindowCloses, s.GraceMs = true, grace
	s.WindowEnd = func(k windowedKey) int64 { return k.Window.End }
	s.Buffer = processors.Store[windowedKey, int64]{Name: "buffer", Key: processors.TimeWindowedSerde(serde.String, 10), Value: serde.Int64}
	out := &tap[windowedKey, processors.Change[int64]]{}
	n := e.node("count", counts, e.node("suppress", processors.NewSuppress(counts, s), out.child("out")))
	e.start()
	return e, n, out
}

func TestSuppressUntilWindowCloses(t *testing.T) {
	e, n, out := suppressWindows(t, processors.Suppression[windowedKey, int64]{}, 5)
	must(e, n, "k", "", 1, processors.Header{Key: "one"})
	must(e, n, "k", "", 9, processors.Header{Key: "two"})
	must(e, n, "l", "", 14)
	want(t, out.take(), "")
	must(e, n, "k", "", 4, processors.Header{Key: "late"})
	must(e, n, "m", "", 15, processors.Header{Key: "closer"})
	// The time and headers are those of the record that brought the last update.
	want(t, out.take(), "k[0,10]=3<2@9 late")
	if e.ctx.Timestamp != 15 {
		t.Errorf("the context is not restored: %d", e.ctx.Timestamp)
	}
	must(e, n, "m", "", 100)
	want(t, out.take(), "l[10,20]=1<0@14; m[10,20]=1<0@15 closer")
}

func TestSuppressShutsDownWhenFull(t *testing.T) {
	e, n, _ := suppressWindows(t, processors.Suppression[windowedKey, int64]{MaxRecords: 2, ShutDownWhenFull: true}, 0)
	must(e, n, "a", "", 1)
	must(e, n, "b", "", 1)
	err := pipe(e, n, "c", "", 1)
	var full *processors.BufferFullError
	if !errors.As(err, &full) || full.Records != 3 || full.MaxRecords != 2 {
		t.Errorf("err %v", err)
	}
}

func suppressTable(t testing.TB, s processors.Suppression[string, string]) (*env, processors.Child, *tap[string, stringChange], func() processors.View[string, string]) {
	e := newEnv(t, tableSpec("rows"), bufferSpec())
	rows := processors.NewTableSource(strings2("rows", serde.String), false)
	s.Buffer = strings2("buffer", serde.String)
	suppressed := processors.NewSuppress(rows, s)
	if !rows.Materialized() {
		t.Error("suppress needs the old values of its parent")
	}
	out := &tap[string, stringChange]{}
	n := e.node("rows", rows, e.node("suppress", suppressed, out.child("out")))
	view := viewOf(t, e, suppressed.View())
	e.start()
	return e, n, out, view
}

func TestSuppressUntilTimeLimit(t *testing.T) {
	e, n, out, view := suppressTable(t, processors.Suppression[string, string]{WaitMs: 10})
	must(e, n, "a", "1", 0)
	must(e, n, "a", "2", 7)
	must(e, n, "b", "1", 9)
	want(t, rowsOf(t, view(), "a", "b"), "a=null; b=null")
	must(e, n, "a", "3", 10) // a has waited since 0
	want(t, out.take(), "a=3<2@10")
	remove(e, n, "a", 12)
	want(t, rowsOf(t, view(), "a"), "a=3@-1") // as it was sent
	remove(e, n, "b", 22)
	want(t, out.take(), "b=null<1@22; a=null<3@12")
	want(t, rowsOf(t, view(), "a"), "a=null")
}

// bytesOfTwo is the size of a buffer that holds back two updates with old values.
func bytesOfTwo(t testing.TB) int64 {
	e, n, _, _ := suppressTable(t, processors.Suppression[string, string]{WaitMs: 1000})
	for i, key := range []string{"a", "b", "a", "b"} {
		must(e, n, key, fmt.Sprint(i), int64(i))
	}
	b, err := e.db.ChangeBuffer("buffer")
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSuppressEmitsEarly(t *testing.T) {
	for _, s := range []processors.Suppression[string, string]{{WaitMs: 1000, MaxRecords: 2}, {WaitMs: 1000, MaxBytes: bytesOfTwo(t)}} {
		e, n, out, _ := suppressTable(t, s)
		for i, key := range []string{"a", "b", "a", "c", "d"} {
			must(e, n, key, fmt.Sprint(i), int64(i))
		}
		if got := out.take(); len(got) == 0 || got[0] != "a=2<0@2" {
			t.Errorf("%+v: %v", s, got)
		}
	}
}

// TestSuppressSendsTheLastOfEachKey: whatever the input, a key's last update comes out, and no more of them than went in.
func TestSuppressSendsTheLastOfEachKey(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 7))
		e, n, out, _ := suppressTable(t, processors.Suppression[string, string]{WaitMs: r.Int64N(10), MaxRecords: r.Int64N(4)})
		last := map[string]string{}
		for i := range 50 {
			key := string(rune('a' + r.IntN(4)))
			last[key] = fmt.Sprint(i)
			must(e, n, key, last[key], r.Int64N(30))
		}
		must(e, n, "flush", "", 1000)
		must(e, n, "flush", "", 2000)
		got := map[string]string{}
		lines := out.take()
		for _, line := range lines {
			var key, value string
			if _, err := fmt.Sscanf(line, "%1s=%s", &key, &value); err == nil {
				for i, c := range value {
					if c == '<' {
						got[key] = value[:i]
						break
					}
				}
			}
		}
		for key, value := range last {
			if got[key] != value {
				t.Fatalf("seed %d: the last of %s is %s, want %s: %v", seed, key, got[key], value, lines)
			}
		}
	}
}
