package state_test

import (
	"fmt"
	"testing"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

func openTable(t *testing.T, spec state.Spec) (*state.DB, *state.TimestampedKeyValueStore[string, string]) {
	t.Helper()
	db, err := state.OpenMemory([]state.Spec{spec}, state.Options{Log: quiet})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	s, err := state.NewTimestampedKeyValue(db, spec.Name, serde.NewCodec(serde.String), serde.NewCodec(serde.String))
	must(t, err)
	return db, s
}

func wantTime(t *testing.T, s *state.TimestampedKeyValueStore[string, string], key string, want int64) {
	t.Helper()
	_, got, ok, err := s.Get(key)
	must(t, err)
	if !ok || got != want {
		t.Errorf("%s has the time %d (there: %v), want %d", key, got, ok, want)
	}
}

// A plain store of a table whose updates are coalesced has times, until what it was given is dropped.
func TestCachedTimesOfPlainStore(t *testing.T) {
	db, s := openTable(t, state.Spec{Name: "st", Kind: state.KeyValue, Caching: true, Logged: true})
	must(t, s.Put("a", "1", 7))
	must(t, s.Put("empty", "", 9))
	gen, err := db.Seal()
	must(t, err)
	for r := range gen.Changelog() {
		if want := map[string]int64{"a": 7, "empty": 9}[string(r.Key)]; r.Timestamp != want {
			t.Errorf("%s is logged with the time %d, want %d", r.Key, r.Timestamp, want)
		}
	}
	must(t, gen.Apply(nil, nil))
	wantTime(t, s, "a", 7)
	wantTime(t, s, "empty", 9)
	for e, err := range s.All() {
		must(t, err)
		if want := map[string]int64{"a": 7, "empty": 9}[e.Key]; e.Timestamp != want {
			t.Errorf("a scan shows %s with the time %d, want %d", e.Key, e.Timestamp, want)
		}
	}
	must(t, s.Put("a", "2", 8))
	must(t, db.Drop())
	wantTime(t, s, "a", -1)
	wantTime(t, s, "a", -1) // now cached as it was read
}

func TestPlainStoreWithoutCacheHasNoTimes(t *testing.T) {
	_, s := openTable(t, state.Spec{Name: "st", Kind: state.KeyValue, Logged: true})
	must(t, s.Put("a", "1", 7))
	wantTime(t, s, "a", -1)
}

// What an LRU map has forgotten shows while it is cached. The cache is bounded.
func TestCachedRowsOfLRU(t *testing.T) {
	db, s := openTable(t, state.Spec{Name: "st", Kind: state.TimestampedKeyValue, InMemory: true, MaxEntries: 2, Caching: true})
	for i := range 100 {
		must(t, s.Put(fmt.Sprint(i), "x", int64(i)))
	}
	wantTime(t, s, "3", 3)
	n := 0
	for e, err := range s.ReverseAll() {
		must(t, err)
		if n++; n == 1 && (e.Key != "99" || e.Timestamp != 99) {
			t.Errorf("the last row is %v", e)
		}
	}
	if n != 100 {
		t.Errorf("a scan shows %d rows, want 100", n)
	}
	_, _, ok, err := s.Delete("3")
	must(t, err)
	if _, _, after, err := s.Get("3"); !ok || after || err != nil {
		t.Errorf("deleted: there before %v, after %v (%v)", ok, after, err)
	}
	must(t, db.Drop())
	if _, _, ok, _ := s.Get("99"); ok {
		t.Error("a row that was dropped still shows")
	}
	const many = 100_000
	for i := range many {
		must(t, s.Put(fmt.Sprint(i), "x", int64(i)))
	}
	n = 0
	for i := range many {
		_, _, ok, err := s.Get(fmt.Sprint(i))
		must(t, err)
		if ok {
			n++
		}
	}
	if n < 2 || n > many/2 {
		t.Errorf("%d of %d rows show", n, many)
	}
}

// A plain window store of a table whose updates are coalesced has times, until what it was given is dropped; one without a cache has none.
func TestCachedTimesOfPlainWindows(t *testing.T) {
	for _, caching := range []bool{true, false} {
		spec := state.Spec{Name: "st", Kind: state.Window, RetentionMs: 100, WindowSizeMs: 10, Caching: caching, Logged: true}
		db, err := state.OpenMemory([]state.Spec{spec}, state.Options{Log: quiet})
		must(t, err)
		s, err := state.NewTimestampedWindow(db, "st", serde.NewCodec(serde.String), serde.NewCodec(serde.String))
		must(t, err)
		want := func(time int64) {
			t.Helper()
			_, got, ok, err := s.Get("a", 10)
			must(t, err)
			if !ok || got != time {
				t.Errorf("caching %v: Get gives the time %d (there: %v), want %d", caching, got, ok, time)
			}
			for e, err := range s.All(state.Forward) {
				must(t, err)
				if e.Timestamp != time {
					t.Errorf("caching %v: a scan gives the time %d, want %d", caching, e.Timestamp, time)
				}
			}
		}
		_, err = s.Put("a", "1", 10, 17)
		must(t, err)
		gen, err := db.Seal()
		must(t, err)
		must(t, gen.Apply(nil, nil))
		if caching {
			want(17)
		} else {
			want(-1)
		}
		must(t, db.Drop())
		want(-1)
		must(t, db.Close())
	}
}

// A window that a store in memory refuses is there as long as a cache would have it, where updates are coalesced, and counts as refused.
func TestCachedWindowIsThereThoughRefused(t *testing.T) {
	spec := state.Spec{Name: "st", Kind: state.TimestampedWindow, RetentionMs: 10, SegmentIntervalMs: 100, WindowSizeMs: 5, Caching: true, InMemory: true}
	db, err := state.OpenMemory([]state.Spec{spec}, state.Options{Log: quiet})
	must(t, err)
	s, err := state.NewTimestampedWindow(db, "st", serde.NewCodec(serde.String), serde.NewCodec(serde.String))
	must(t, err)
	_, err = s.Put("a", "1", 50, 50)
	must(t, err)
	refused, err := s.Put("a", "2", 20, 21)
	must(t, err)
	if v, _, ok, err := s.Get("a", 20); err != nil || !refused || !ok || v != "2" {
		t.Errorf("refused: %v; there: %q, %v, %v", refused, v, ok, err)
	}
	must(t, db.Close())
}

// An empty key is logged as such: in a topic that is compacted a record without a key is refused.
func TestVersionsOfTheEmptyKeyAreLogged(t *testing.T) {
	db, err := state.OpenMemory([]state.Spec{{Name: "st", Kind: state.Versioned, HistoryMs: 100, Logged: true}}, state.Options{Log: quiet})
	must(t, err)
	s, err := state.NewVersioned(db, "st", serde.NewCodec(serde.String), serde.NewCodec(serde.String))
	must(t, err)
	for range 3 {
		_, _, err = s.Delete("", 2) // writes nothing but the log
		must(t, err)
		gen, err := db.Seal()
		must(t, err)
		for r := range gen.Changelog() {
			if r.Key == nil {
				t.Error("the delete has no key")
			}
		}
		must(t, gen.Apply(nil, nil))
	}
	must(t, db.Close())
}
