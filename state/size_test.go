package state_test

import (
	"fmt"
	"testing"

	"github.com/tributary-io/tributary/state"
)

// TestSize puts entries into stores of all kinds of layout, in memory and on disk.
func TestSize(t *testing.T) {
	specs := []state.Spec{
		{Name: "kv", Kind: state.TimestampedKeyValue}, {Name: "latest", Kind: state.Versioned, HistoryMs: 1000},
		{Name: "windows", Kind: state.TimestampedWindow, RetentionMs: 1000, WindowSizeMs: 10},
		{Name: "ordered", Kind: state.Session, TimeOrdered: true, RetentionMs: 1000}, {Name: "empty", Kind: state.KeyValue},
	}
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			db := b.open(t, specs, state.Options{})
			db.Bind(&state.Context{Timestamp: 5})
			kv, err := db.KeyValueBytes("kv")
			must(t, err)
			versions, err := db.VersionedBytes("latest")
			must(t, err)
			windows, err := db.WindowBytes("windows")
			must(t, err)
			sessions, err := db.SessionBytes("ordered")
			must(t, err)
			for n := range 7 {
				key := fmt.Append(nil, n)
				must(t, kv.Put(key, key, 1))
				_, err := versions.Put(key, key, 1)
				must(t, err)
				_, err = windows.Put(key, key, 10, 1)
				must(t, err)
				_, err = sessions.Put(key, key, 1, 2)
				must(t, err)
			}
			view, err := db.View()
			must(t, err)
			defer view.Close()
			if size, err := view.Size("kv", 10_000); err != nil || size.Entries != 0 {
				t.Errorf("%+v before a commit: %v", size, err)
			}
			commit(t, db)
			for _, spec := range specs {
				want := int64(7)
				if spec.Name == "empty" {
					want = 0
				}
				if size, err := view.Size(spec.Name, 3); err != nil || size.Entries != want {
					t.Errorf("%s: %+v, want %d entries: %v", spec.Name, size, want, err)
				}
			}
			if size, err := view.Size("none", 1); err == nil {
				t.Errorf("an unknown store has a size: %+v", size)
			}
		})
	}
}

// TestSizeEstimated has more entries than are counted one by one.
func TestSizeEstimated(t *testing.T) {
	dir, specs := t.TempDir(), []state.Spec{kvSpec("a"), kvSpec("b")}
	db := openPebble(t, dir, specs, state.Options{})
	s, err := db.KeyValueBytes("a")
	must(t, err)
	const entries = 60_000
	for n := range entries {
		must(t, s.Put(fmt.Appendf(nil, "%08d", n), fmt.Append(nil, n*n*7919), 0))
		if n%20_000 == 0 {
			commit(t, db)
		}
	}
	commit(t, db)
	// Estimates go by files, which are written in the background; opening the database writes what is in none of them yet.
	must(t, db.Close())
	db = openPebble(t, dir, specs, state.Options{})
	view, err := db.View()
	must(t, err)
	defer view.Close()
	for _, counted := range []int64{500, 10_000, 1_000_000} {
		size, err := view.Size("a", counted)
		if err != nil || !size.Estimated || size.Entries < entries/4 || size.Entries > entries*4 || size.Bytes < entries {
			t.Errorf("%d entries are %+v, by %d: %v", entries, size, counted, err)
		}
	}
	size, err := view.Size("a", 10_000)
	if err != nil || !size.Estimated || size.Entries < entries/4 || size.Entries > entries*4 || size.Bytes < entries {
		t.Errorf("%d entries are %+v: %v", entries, size, err)
	}
	if other, err := view.Size("b", 10_000); err != nil || other.Bytes >= size.Bytes/10 {
		t.Errorf("the empty one beside it: %+v: %v", other, err)
	}
}
