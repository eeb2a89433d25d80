package state_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

var (
	stringCodec  = serde.NewCodec(serde.String)
	int64Codec   = serde.NewCodec(serde.Int64)
	pointerCodec = serde.NewCodec(serde.Ptr(serde.String))
)

// collect gives the entries of a scan as text.
func collect[E any](t *testing.T, seq iter.Seq2[E, error]) (out []string) {
	t.Helper()
	for e, err := range seq {
		must(t, err)
		out = append(out, fmt.Sprint(e))
	}
	return out
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func typedDB(t *testing.T) *state.DB {
	db, err := state.OpenMemory([]state.Spec{
		{Name: "kv", Kind: state.KeyValue},
		{Name: "tkv", Kind: state.TimestampedKeyValue},
		{Name: "win", Kind: state.Window, RetentionMs: 1000},
		{Name: "twin", Kind: state.TimestampedWindow, RetentionMs: 1000},
		{Name: "ses", Kind: state.Session, RetentionMs: 1000},
		{Name: "ver", Kind: state.Versioned, HistoryMs: 1000},
	}, state.Options{Log: quiet})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// TestPlainAsTimestamped: a plain store can be read as a timestamped one, whose times aren't known.
func TestPlainAsTimestamped(t *testing.T) {
	db := typedDB(t)
	s, err := state.NewTimestampedKeyValue(db, "kv", stringCodec, int64Codec)
	must(t, err)
	must(t, s.PutAll([]state.Entry[string, int64]{{Key: "a", Value: 1, Timestamp: 5}, {Key: "b", Value: 2, Timestamp: 6}}))
	want(t, "all", collect(t, s.All()), "{a 1 -1}", "{b 2 -1}")
	want(t, "reverse", collect(t, s.ReverseAll()), "{b 2 -1}", "{a 1 -1}")
	want(t, "prefix", collect(t, s.Prefix([]byte("a"))), "{a 1 -1}")
	if v, ts, ok, err := s.Get("a"); v != 1 || ts != -1 || !ok || err != nil {
		t.Errorf("Get: %d@%d %v %v", v, ts, ok, err)
	}
	if v, ts, ok, err := s.PutIfAbsent("a", 3, 7); v != 1 || ts != -1 || !ok || err != nil {
		t.Errorf("PutIfAbsent: %d@%d %v %v", v, ts, ok, err)
	}
	if v, ts, ok, err := s.Delete("b"); v != 2 || ts != -1 || !ok || err != nil {
		t.Errorf("Delete: %d@%d %v %v", v, ts, ok, err)
	}
	want(t, "what is left", collect(t, s.All()), "{a 1 -1}")
}

func TestTypedKeyValue(t *testing.T) {
	db := typedDB(t)
	s, err := state.NewKeyValue(db, "kv", stringCodec, int64Codec)
	must(t, err)
	for i, k := range []string{"a", "b", "c"} {
		must(t, s.Put(k, int64(i)))
	}
	want(t, "all", collect(t, s.All()), "{a 0 0}", "{b 1 0}", "{c 2 0}")
	want(t, "reverse", collect(t, s.ReverseAll()), "{c 2 0}", "{b 1 0}", "{a 0 0}")
	want(t, "range", collect(t, s.Range(new("b"), nil)), "{b 1 0}", "{c 2 0}")
	want(t, "reverse range", collect(t, s.ReverseRange(nil, new("b"))), "{b 1 0}", "{a 0 0}")
	want(t, "prefix", collect(t, s.Prefix([]byte("b"))), "{b 1 0}")
	for range s.All() {
		break // must not leave the iterator open
	}
	if old, ok, err := s.PutIfAbsent("a", 9); old != 0 || !ok || err != nil {
		t.Errorf("putIfAbsent: %d %v %v", old, ok, err)
	}
	if old, ok, err := s.Delete("c"); old != 2 || !ok || err != nil {
		t.Errorf("delete: %d %v %v", old, ok, err)
	}
	if v, ok, err := s.Get("c"); v != 0 || ok || err != nil {
		t.Errorf("get what is deleted: %d %v %v", v, ok, err)
	}
	if n, err := s.ApproximateNumEntries(); n != 2 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}

func TestTypedTimestampedKeyValue(t *testing.T) {
	db := typedDB(t)
	s, err := state.NewTimestampedKeyValue(db, "tkv", stringCodec, pointerCodec)
	must(t, err)
	must(t, s.Put("a", new("x"), 5))
	must(t, s.Put("b", new(""), 6))
	first, _, _, err := s.Get("a")
	must(t, err)
	must(t, s.Put("a", new("overwritten"), 7))
	if *first != "x" {
		t.Errorf("a value that was read has become %q", *first)
	}
	if v, ts, ok, err := s.Get("b"); *v != "" || ts != 6 || !ok || err != nil {
		t.Errorf("empty value: %q %d %v %v", *v, ts, ok, err)
	}
	must(t, s.Put("a", nil, 8)) // nil deletes
	if _, _, ok, err := s.Get("a"); ok || err != nil {
		t.Errorf("after nil: %v %v", ok, err)
	}
	if old, ts, ok, err := s.Delete("b"); *old != "" || ts != 6 || !ok || err != nil {
		t.Errorf("delete: %v %d %v %v", old, ts, ok, err)
	}
	if _, _, ok, err := s.PutIfAbsent("b", new("y"), 9); ok || err != nil {
		t.Errorf("putIfAbsent: %v %v", ok, err)
	}
	for e, err := range s.Range(nil, nil) {
		must(t, err)
		if e.Key != "b" || *e.Value != "y" || e.Timestamp != 9 {
			t.Errorf("%+v", e)
		}
	}
}

func TestTypedWindow(t *testing.T) {
	db := typedDB(t)
	s, err := state.NewTimestampedWindow(db, "twin", stringCodec, int64Codec)
	must(t, err)
	for _, start := range []int64{0, 10, 20} {
		if _, err := s.Put("k", start*2, start, start+1); err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.Put("l", 1, 10, 0)
	must(t, err)
	want(t, "fetch", collect(t, s.Fetch("k", 5, 20)), "{k 10 20 11}", "{k 20 40 21}")
	want(t, "backward", collect(t, s.BackwardFetch("k", 5, 20)), "{k 20 40 21}", "{k 10 20 11}")
	want(t, "range", collect(t, s.FetchRange(new("l"), nil, 0, 99, state.Forward)), "{l 10 1 0}")
	want(t, "fetchAll", collect(t, s.FetchAll(10, 10, state.Forward)), "{k 10 20 11}", "{l 10 1 0}")
	want(t, "all", collect(t, s.All(state.Backward)), "{l 10 1 0}", "{k 20 40 21}", "{k 10 20 11}", "{k 0 0 1}")
	if v, ts, ok, err := s.Get("k", 10); v != 20 || ts != 11 || !ok || err != nil {
		t.Errorf("get: %d %d %v %v", v, ts, ok, err)
	}
	if _, err := s.Delete("k", 10); err != nil {
		t.Error(err)
	}
	if _, _, ok, err := s.Get("k", 10); ok || err != nil {
		t.Errorf("get what is deleted: %v %v", ok, err)
	}
	plain, err := state.NewWindow(db, "win", stringCodec, int64Codec)
	must(t, err)
	_, err = plain.Put("k", 7, 5)
	must(t, err)
	if v, ok, err := plain.Get("k", 5); v != 7 || !ok || err != nil {
		t.Errorf("plain get: %d %v %v", v, ok, err)
	}
}

func TestTypedSession(t *testing.T) {
	db := typedDB(t)
	s, err := state.NewSession(db, "ses", stringCodec, int64Codec)
	must(t, err)
	for i := range int64(3) {
		if _, err := s.Put("k", i, i*10, i*10+5); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "fetch", collect(t, s.Fetch("k", state.Forward)), "{k 0 5 0}", "{k 10 15 1}", "{k 20 25 2}")
	want(t, "find", collect(t, s.Find("k", 15, 10, state.Forward)), "{k 10 15 1}")
	want(t, "fetch range", collect(t, s.FetchRange(nil, new("k"), state.Backward)), "{k 20 25 2}", "{k 10 15 1}", "{k 0 5 0}")
	want(t, "find range", collect(t, s.FindRange(new("l"), nil, 0, 99, state.Forward)))
	want(t, "ended", collect(t, s.FindEnded(5, 15)), "{k 0 5 0}", "{k 10 15 1}")
	must(t, s.Remove("k", 10, 15))
	if _, ok, err := s.Get("k", 10, 15); ok || err != nil {
		t.Errorf("get what is removed: %v %v", ok, err)
	}
	if v, ok, err := s.Get("k", 20, 25); v != 2 || !ok || err != nil {
		t.Errorf("get: %d %v %v", v, ok, err)
	}
}

func TestTypedVersioned(t *testing.T) {
	db := typedDB(t)
	s, err := state.NewVersioned(db, "ver", stringCodec, int64Codec)
	must(t, err)
	for _, ts := range []int64{10, 20, 30} {
		if validTo, err := s.Put("k", ts, ts); validTo != state.LatestVersion || err != nil {
			t.Fatalf("put at %d: %d %v", ts, validTo, err)
		}
	}
	if validTo, err := s.PutNull("k", 25); validTo != 30 || err != nil {
		t.Errorf("put null: %d %v", validTo, err)
	}
	want(t, "history", collect(t, s.History("k", 0, 99, state.Forward)), "{10 10 20}", "{20 20 25}", "{30 30 -1}")
	if v, ok, err := s.GetAsOf("k", 15); v.Value != 10 || !ok || err != nil {
		t.Errorf("get as of 15: %+v %v %v", v, ok, err)
	}
	if _, ok, err := s.GetAsOf("k", 27); ok || err != nil {
		t.Errorf("get as of 27: %v %v", ok, err)
	}
	if old, ok, err := s.Delete("k", 40); old.Value != 30 || !ok || err != nil {
		t.Errorf("delete: %+v %v %v", old, ok, err)
	}
	if _, ok, err := s.Get("k"); ok || err != nil {
		t.Errorf("get what is deleted: %v %v", ok, err)
	}
}

func TestTypedErrors(t *testing.T) {
	db := typedDB(t)
	_, err := state.NewKeyValue(db, "tkv", stringCodec, int64Codec)
	var lookup *state.LookupError
	if !errors.As(err, &lookup) || lookup.Got != state.TimestampedKeyValue {
		t.Errorf("a store of another kind: %v", err)
	}
	if _, err = state.NewWindow(db, "nothing", stringCodec, int64Codec); !errors.As(err, &lookup) || lookup.Got != 0 {
		t.Errorf("no such store: %v", err)
	}
	if _, err = state.NewSession(db, "ses", stringCodec, serde.Codec[int64]{}); err == nil || !strings.Contains(err.Error(), "no serde") {
		t.Errorf("no serde: %v", err)
	}
	s, err := state.NewKeyValue(db, "kv", pointerCodec, int64Codec)
	must(t, err)
	if err := s.Put(nil, 1); !errors.Is(err, state.ErrNullKey) {
		t.Errorf("null key: %v", err)
	}
	must(t, s.Bytes().Put([]byte("k"), []byte("short"), 0))
	if _, _, err := s.Get(new("k")); err == nil || !strings.Contains(err.Error(), `store "kv": decode value of 5 bytes`) {
		t.Errorf("a value that does not decode: %v", err)
	}
	for _, err := range s.All() {
		if err == nil {
			t.Error("a scan over a value that does not decode gave no error")
		}
	}
}
