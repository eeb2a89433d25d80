package jsonl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

var _ sink.Truncater = (*landing)(nil)

func truncate(store object.Store, execute bool) (sink.Truncation, error) {
	return Sink(store.String(), Store(store)).(sink.Truncater).Truncate(ctx, testEnv(), []string{"orders"}, execute)
}

// landRows lands one row for each value in a partition, from its progress on.
func landRows(w sink.Writer, p int32, from int64, values ...string) error {
	b := w.NewBatch()
	defer b.Release()
	for i, v := range values {
		if err := add(b, fmt.Sprint("k", i), fmt.Sprintf("%q", v), meta(p, max(from, 0)+int64(i))); err != nil {
			return err
		}
	}
	_, err := w.Commit(ctx, b, []sink.Move{move(p, from, max(from, 0)+int64(len(values)))})
	return err
}

func wantLanded(t *testing.T, store object.Store, want ...string) {
	t.Helper()
	got := values(rows(t, store, Select{}))
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("landed are %v, want %v", got, want)
	}
}

// TestTruncate empties a landing: what was landed is gone for readers, writers that are open are fenced, and all lands anew, more than once.
func TestTruncate(t *testing.T) {
	store := object.NewMemory("t")
	if out, err := truncate(store, true); err != nil || out.Changed {
		t.Fatalf("nothing to empty: %+v, %v", out, err)
	}
	w := openText(t, store)
	land := func(p int32, from int64, values ...string) {
		t.Helper()
		if err := landRows(w, p, from, values...); err != nil {
			t.Fatal(err)
		}
	}
	land(0, sink.NoOffset, "a", "b")
	land(0, 2, "c")
	land(1, sink.NoOffset, "d")
	want := sink.Truncation{Version: 3, Files: 3, Rows: 4, Partitions: 2, Changed: true}
	for _, execute := range []bool{false, true} {
		out, err := truncate(store, execute)
		if want.Bytes = out.Bytes; err != nil || out != want || out.Bytes == 0 {
			t.Fatalf("%+v, %v; want %+v", out, err, want)
		}
		if !execute {
			wantLanded(t, store, `"a"`, `"b"`, `"c"`, `"d"`)
		}
	}
	wantLanded(t, store)
	if out, err := truncate(store, true); err != nil || out.Changed {
		t.Errorf("a second time: %+v, %v", out, err)
	}
	if err := landRows(w, 0, 3, "zombie"); !sink.IsFenced(err) {
		t.Errorf("a batch of before landed: %v", err)
	}
	wantLanded(t, store)
	land(0, sink.NoOffset, "A", "B", "C", "D")
	w = openText(t, store)
	if from, err := w.Progress(ctx, []sink.Partition{part(0), part(1)}); err != nil || from[part(0)] != 4 || from[part(1)] != sink.NoOffset {
		t.Errorf("progress %v, %v", from, err)
	}
	land(1, sink.NoOffset, "E")
	wantLanded(t, store, `"A"`, `"B"`, `"C"`, `"D"`, `"E"`)
	gone, err := OpenStore(store).vacuum(ctx, time.Now().Add(time.Hour), false)
	if err != nil || len(gone) != 3 { // the zombie's file went with its fence
		t.Errorf("vacuum: %v, %v", gone, err)
	}
	wantLanded(t, store, `"A"`, `"B"`, `"C"`, `"D"`, `"E"`)
	if _, err := truncate(store, true); err != nil {
		t.Fatal(err)
	}
	if _, err := recordGap(ctx, store, part(1), 5, "left out", testClock()); err != nil {
		t.Fatal(err)
	}
	w = openText(t, store)
	land(1, 5, "F")
	wantLanded(t, store, `"F"`)
	if c, err := OpenStore(store).Coverage(ctx, part(1)); err != nil || c.First != 0 || c.Next != 6 || len(c.Gaps) != 1 {
		t.Errorf("coverage %+v, %v", c, err)
	}
}

// TestTruncateBesideARetriedBatch empties a landing between two tries of a batch, whose writer learns of that in between: the batch belongs to the round
// before, and isn't let into the next one.
func TestTruncateBesideARetriedBatch(t *testing.T) {
	store := object.NewMemory("t")
	fail := true
	w := openText(t, &object.Faulty{Inner: store, Plan: func(c object.Call) object.Fault {
		if fail && c.Op == object.OpPutIfAbsent && strings.HasSuffix(c.Name, ".json") {
			return object.Fail
		}
		return object.NoFault
	}})
	b := w.NewBatch()
	defer b.Release()
	if err := add(b, "k", `"late"`, meta(0, 0)); err != nil {
		t.Fatal(err)
	}
	moves := []sink.Move{move(0, sink.NoOffset, 1)}
	if _, err := w.Commit(ctx, b, moves); !errors.Is(err, object.ErrFault) {
		t.Fatal(err)
	}
	if err := landRows(openText(t, store), 0, sink.NoOffset, "other"); err != nil {
		t.Fatal(err)
	}
	if _, err := truncate(store, true); err != nil {
		t.Fatal(err)
	}
	if from, err := w.Progress(ctx, []sink.Partition{part(0)}); err != nil || from[part(0)] != sink.NoOffset {
		t.Fatalf("progress %v, %v", from, err)
	}
	fail = false
	if _, err := w.Commit(ctx, b, moves); !sink.IsFenced(err) {
		t.Errorf("the batch of before: %v", err)
	}
	if err := landRows(w, 0, sink.NoOffset, "new"); err != nil {
		t.Error(err)
	}
	wantLanded(t, store, `"new"`)
}

// TestTruncateOfAPattern empties what a sink has landed of topics that its topology doesn't name.
func TestTruncateOfAPattern(t *testing.T) {
	store := object.NewMemory("t")
	if err := landRows(openText(t, store), 0, sink.NoOffset, "a"); err != nil {
		t.Fatal(err)
	}
	if out, err := Sink("mem", Store(store)).(sink.Truncater).Truncate(ctx, testEnv(), nil, true); err != nil || !out.Changed || out.Rows != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	wantLanded(t, store)
}

// TestTruncateOfABrokenChain empties a landing of which somebody has removed a manifest: what is left of it goes, and all lands anew.
func TestTruncateOfABrokenChain(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	for i, v := range []string{"a", "b", "c"} {
		from := int64(i)
		if i == 0 {
			from = sink.NoOffset
		}
		if err := landRows(w, 0, from, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Delete(ctx, (round{Partition: part(0)}).manifest(1)); err != nil {
		t.Fatal(err)
	}
	if out, err := truncate(store, true); err != nil || !out.Changed || out.Rows != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	if err := landRows(openText(t, store), 0, sink.NoOffset, "A"); err != nil {
		t.Error(err)
	}
	wantLanded(t, store, `"A"`)
}

// TestTruncateRefuses leaves what another sink has landed.
func TestTruncateRefuses(t *testing.T) {
	store := object.NewMemory("t")
	if err := landRows(openText(t, store), 0, sink.NoOffset, "a"); err != nil {
		t.Fatal(err)
	}
	s, env := Sink("mem", Store(store)).(sink.Truncater), testEnv()
	env.Name = "other"
	_, err := s.Truncate(ctx, env, []string{"orders"}, true)
	wantRefused(t, err)
	if out, err := s.Truncate(ctx, env, []string{"payments"}, true); err != nil || out.Changed {
		t.Errorf("another topic: %+v, %v", out, err)
	}
	wantLanded(t, store, `"a"`)
	nowhere := t.TempDir() + "/nowhere"
	if out, err := Sink(nowhere).(sink.Truncater).Truncate(ctx, testEnv(), []string{"orders"}, true); err != nil || out.Version != -1 || out.Changed {
		t.Errorf("a place without a landing: %+v, %v", out, err)
	}
	if got, err := OpenStore(store).Next(ctx, part(0)); err != nil || got != 1 {
		t.Errorf("progress %d, %v", got, err)
	}
}

// TestTruncateWhateverHappens breaks each operation of an emptying in every way, beside a writer that overtakes it. Done again, nothing is left, and all lands anew.
func TestTruncateWhateverHappens(t *testing.T) {
	for _, fault := range []object.Fault{object.Fail, object.LoseReply, object.Doubt, object.Crash, object.CrashAfter} {
		for n, over := 1, false; !over; n++ {
			synctest.Test(t, func(t *testing.T) { over = !truncateUnder(t, n, fault) })
			if t.Failed() {
				t.Fatalf("operation %d, fault %d", n, fault)
			}
		}
	}
}

// truncateUnder breaks an emptying's nth operation, and reports whether there was one.
func truncateUnder(t *testing.T, n int, fault object.Fault) (broken bool) {
	store := object.NewMemory("t")
	w := openText(t, store)
	for p := range int32(2) {
		if err := landRows(w, p, sink.NoOffset, "a"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	overtaken := false
	faulty := &object.Faulty{Inner: store, OnCrash: cancel, Plan: func(c object.Call) object.Fault {
		if c.Op == object.OpPutIfAbsent && !overtaken {
			overtaken = true
			if err := landRows(w, 0, 1, "b"); err != nil {
				t.Error(err)
			}
		}
		if c.N == n {
			broken = true
			return fault
		}
		return object.NoFault
	}}
	if _, err := Sink("mem", Store(faulty)).(sink.Truncater).Truncate(ctx, testEnv(), []string{"orders"}, true); err != nil && !broken {
		t.Error(err)
	}
	if _, err := truncate(store, true); err != nil {
		t.Error(err)
	}
	wantLanded(t, store)
	w = openText(t, store)
	for p := range int32(2) {
		if err := landRows(w, p, sink.NoOffset, "new"); err != nil {
			t.Error(err)
		}
	}
	wantLanded(t, store, `"new"`, `"new"`)
	return broken
}

// TestClosingManifest pins what ends a round. Its version keeps programs away that would go on behind it.
func TestClosingManifest(t *testing.T) {
	const text = `{
 "format": "tributary-jsonl",
 "version": 2,
 "id": "0b9f6a0e-57f2-4c0e-8f0a-2f9f3c1b7d11",
 "written": "2026-06-01T12:00:05Z",
 "application": "app",
 "sink": "raw",
 "topic": "orders",
 "topic_id": "01020300-0000-0000-0000-000000000000",
 "partition": 0,
 "round": 1,
 "emptied": true,
 "start": 7,
 "end": 7,
 "rows": 0,
 "rejects": 0,
 "tombstones": 0,
 "files": []
}
`
	const name = "_manifests/orders@01020300-0000-0000-0000-000000000000/0.1/00000000000000000007.json"
	m, err := decodeManifest(name, []byte(text))
	if err != nil || !m.Emptied || m.Round != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if again, err := m.encode(); err != nil || string(again) != text {
		t.Errorf("it is written as %s, %v", again, err)
	}
	for what, bad := range map[string]string{
		"another round":                        strings.Replace(text, `"round": 1`, `"round": 2`, 1),
		"version 2 without being the last one": strings.Replace(text, ` "emptied": true,`, "", 1),
	} {
		if _, err := decodeManifest(name, []byte(bad)); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}
