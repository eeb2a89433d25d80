package state_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/state"
)

func kvSpec(name string) state.Spec {
	return state.Spec{Name: name, Kind: state.KeyValue, Logged: true}
}

func commit(t testing.TB, db *state.DB) {
	t.Helper()
	gen, err := db.Seal()
	must(t, err)
	must(t, gen.Apply(nil, nil))
}

func TestOpenErrors(t *testing.T) {
	if _, err := state.OpenMemory([]state.Spec{kvSpec("a"), kvSpec("a"), {Name: "b"}}, state.Options{}); err == nil ||
		!strings.Contains(err.Error(), `"a" is declared twice`) || !strings.Contains(err.Error(), `"b": unknown kind`) {
		t.Errorf("bad declarations: %v", err)
	}
	dir := t.TempDir()
	db := openPebble(t, dir, []state.Spec{kvSpec("a")}, state.Options{})
	res := state.NewResources(state.ResourceOptions{})
	defer res.Close()
	if _, err := state.OpenPebble(dir, []state.Spec{kvSpec("a")}, res, state.Options{Log: quiet}); !errors.Is(err, state.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	must(t, db.Close())
	for what, spec := range map[string]state.Spec{
		"another kind":             {Name: "a", Kind: state.TimestampedKeyValue},
		"a window store's segment": {Name: "a", Kind: state.Window, RetentionMs: 1},
	} {
		var kind *state.KindError
		if _, err := state.OpenPebble(dir, []state.Spec{spec}, res, state.Options{Log: quiet}); !errors.Is(err, state.ErrIncompatible) || !errors.As(err, &kind) || kind.Was != state.KeyValue || kind.Is != spec.Kind {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := res.OpenDatabases(); n != 0 {
		t.Errorf("%d databases are still counted as open", n)
	}
}

// TestAddedStore opens a database with more and with fewer stores than before.
func TestAddedStore(t *testing.T) {
	dir := t.TempDir()
	write := func(names ...string) {
		var specs []state.Spec
		for _, n := range names {
			specs = append(specs, kvSpec(n))
		}
		db := openPebble(t, dir, specs, state.Options{})
		for _, n := range names {
			s, err := db.KeyValueBytes(n)
			must(t, err)
			_, _, ok, err := s.Get([]byte("k"), nil)
			must(t, err)
			if _, has := db.Offset(n); ok != has {
				t.Errorf("store %s has data: %v, has an offset: %v", n, ok, has)
			}
			must(t, s.Put([]byte("k"), []byte(n), 0))
			if v, _, _, _ := s.Get([]byte("k"), nil); string(v) != n {
				t.Errorf("store %s has %q", n, v)
			}
		}
		gen, err := db.Seal()
		must(t, err)
		offsets := make([]int64, len(names))
		must(t, gen.Apply(offsets, nil))
		must(t, db.Close())
	}
	write("b")
	write("a", "b")
	write("c")
	write("a", "b", "c")
}

// TestCorruption damages each file of a database in turn: opening or reading either works or says ErrCorruption, and nothing panics.
func TestCorruption(t *testing.T) {
	dir := t.TempDir()
	db := openPebble(t, dir, []state.Spec{kvSpec("a")}, state.Options{})
	s, err := db.KeyValueBytes("a")
	must(t, err)
	for i := range 20_000 {
		must(t, s.Put(fmt.Append(nil, i), make([]byte, 100), 0))
	}
	commit(t, db)
	must(t, db.Close())
	must(t, openPebble(t, dir, []state.Spec{kvSpec("a")}, state.Options{}).Close()) // flushes what the WAL has
	damaged := 0
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		inUse, _ := filepath.Glob(filepath.Join(dir, "marker.manifest.*."+d.Name()))
		if err != nil || !strings.HasSuffix(path, ".sst") && len(inUse) == 0 {
			return err
		}
		data, err := os.ReadFile(path)
		must(t, err)
		for i := range data {
			data[i] ^= 0x5a
		}
		broken := t.TempDir()
		must(t, os.CopyFS(broken, os.DirFS(dir)))
		must(t, os.WriteFile(filepath.Join(broken, d.Name()), data, 0o644))
		if err := readAll(t, broken); !errors.Is(err, state.ErrCorruption) {
			t.Errorf("%s damaged: %v", d.Name(), err)
		}
		damaged++
		return nil
	}))
	if damaged < 2 {
		t.Errorf("only %d files were damaged", damaged)
	}
}

func readAll(t *testing.T, dir string) error {
	res := state.NewResources(state.ResourceOptions{})
	defer res.Close()
	db, err := state.OpenPebble(dir, []state.Spec{kvSpec("a")}, res, state.Options{Log: quiet})
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := db.KeyValueBytes("a")
	must(t, err)
	it, err := s.Range(nil, nil)
	if err != nil {
		return err
	}
	for it.Next() {
	}
	return it.Close()
}

// TestIteratorSnapshot writes while iterators are open: they show the store as it was when they were made.
func TestIteratorSnapshot(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.name, func(t *testing.T) {
			db := backend.open(t, []state.Spec{kvSpec("a")}, state.Options{})
			s, err := db.KeyValueBytes("a")
			must(t, err)
			put := func(value string) {
				for i := range 300 {
					must(t, s.Put(fmt.Appendf(nil, "%03d", i), []byte(value), 0))
				}
			}
			put("base")
			commit(t, db)
			put("sealed")
			gen, err := db.Seal()
			must(t, err)
			for i := range 150 {
				must(t, s.Put(fmt.Appendf(nil, "%03d", i), []byte("open"), 0))
			}
			forward, err := s.Range(nil, nil)
			must(t, err)
			backward, err := s.ReverseRange(nil, nil)
			must(t, err)
			n := 0
			for forward.Next() && backward.Next() {
				checkSnapshot(t, forward, n)
				checkSnapshot(t, backward, 299-n)
				_, _, _, err := s.Delete(forward.Key(), nil)
				must(t, err)
				must(t, s.Put(fmt.Appendf(nil, "%03d+", n), []byte("new"), 0))
				switch n++; n {
				case 50:
					must(t, gen.Apply(nil, nil))
				case 100:
					commit(t, db)
				case 150:
					put("later")
					must(t, db.Drop())
				}
			}
			if n != 300 {
				t.Errorf("%d entries, want 300", n)
			}
			must(t, forward.Close())
			must(t, backward.Close())
			must(t, forward.Close()) // again is fine
			must(t, db.Close())
		})
	}
}

func checkSnapshot(t *testing.T, it state.KeyValueIterator, i int) {
	t.Helper()
	value := "sealed"
	if i < 150 {
		value = "open"
	}
	if got, want := fmt.Sprintf("%s=%s", it.Key(), it.Value()), fmt.Sprintf("%03d=%s", i, value); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func TestLeakedIterator(t *testing.T) {
	db, err := state.OpenMemory([]state.Spec{kvSpec("a")}, state.Options{})
	must(t, err)
	s, err := db.KeyValueBytes("a")
	must(t, err)
	_, err = s.Range(nil, nil)
	must(t, err)
	if err := db.Close(); !errors.Is(err, state.ErrLeaked) {
		t.Errorf("close with an open iterator: %v", err)
	}
}

func TestViews(t *testing.T) {
	db, err := state.OpenMemory([]state.Spec{kvSpec("a")}, state.Options{})
	must(t, err)
	s, err := db.KeyValueBytes("a")
	must(t, err)
	must(t, s.Put([]byte("k"), []byte("1"), 0))
	v, err := db.View()
	must(t, err)
	seen, err := v.KeyValueBytes("a")
	must(t, err)
	if _, _, ok, err := seen.Get([]byte("k"), nil); ok || err != nil {
		t.Errorf("a view shows what is not committed: %v %v", ok, err)
	}
	if err := seen.Put([]byte("k"), nil, 0); !errors.Is(err, state.ErrReadOnly) {
		t.Errorf("put through a view: %v", err)
	}
	commit(t, db)
	if got, _, ok, err := seen.Get([]byte("k"), nil); string(got) != "1" || !ok || err != nil {
		t.Errorf("a view after a commit: %q %v %v", got, ok, err)
	}
	v.Close()
	v.Close()
	must(t, db.Close())
	if _, err := db.View(); !errors.Is(err, state.ErrClosed) {
		t.Errorf("a view of a closed database: %v", err)
	}
}

func TestUnlogged(t *testing.T) {
	db, err := state.OpenMemory([]state.Spec{{Name: "a", Kind: state.KeyValue}, {Name: "b", Kind: state.KeyValue, Logged: true, SourceTopic: "in"}},
		state.Options{})
	must(t, err)
	defer db.Close()
	for _, name := range []string{"a", "b"} {
		s, err := db.KeyValueBytes(name)
		must(t, err)
		must(t, s.Put([]byte("k"), []byte("v"), 0))
	}
	gen, err := db.Seal()
	must(t, err)
	for r := range gen.Changelog() {
		t.Errorf("a changelog record of store %d", r.Store)
	}
	if gen.Empty() || gen.Bytes() == 0 {
		t.Error("the generation has rows, and says it has none")
	}
	must(t, gen.Apply([]int64{state.NoOffset, 17}, nil))
	if next, ok := db.Offset("b"); next != 17 || !ok {
		t.Errorf("offset %d %v", next, ok)
	}
	if _, ok := db.Offset("a"); ok {
		t.Error("an offset of a store without changelog")
	}
}

func TestGenerationErrors(t *testing.T) {
	db, err := state.OpenMemory([]state.Spec{kvSpec("a")}, state.Options{})
	must(t, err)
	defer db.Close()
	gen, err := db.Seal()
	must(t, err)
	if !gen.Empty() {
		t.Error("a generation without writes is not empty")
	}
	if err := gen.Apply([]int64{1, 2}, nil); err == nil || !strings.Contains(err.Error(), "2 offsets for 1 stores") {
		t.Errorf("too many offsets: %v", err)
	}
	must(t, gen.Apply(nil, nil))
	if err := gen.Apply(nil, nil); err == nil {
		t.Error("applied twice")
	}
	s, err := db.KeyValueBytes("a")
	must(t, err)
	must(t, s.Put([]byte("k"), []byte("v"), 0))
	if err := db.Restore("a", []state.RestoreRecord{{Key: []byte("k")}}, 1); err == nil || !strings.Contains(err.Error(), "uncommitted") {
		t.Errorf("restore over uncommitted writes: %v", err)
	}
	must(t, db.Drop())
	must(t, db.Restore("a", []state.RestoreRecord{{Key: []byte("k"), Value: []byte("w")}}, 1))
	if v, _, ok, err := s.Get([]byte("k"), nil); string(v) != "w" || !ok || err != nil {
		t.Errorf("restored: %q %v %v", v, ok, err)
	}
	var lookup *state.LookupError
	if err := db.Restore("z", nil, 1); !errors.As(err, &lookup) {
		t.Errorf("restore of a store that is not there: %v", err)
	}
}

func TestBufferedBytes(t *testing.T) {
	db, err := state.OpenMemory([]state.Spec{kvSpec("a")}, state.Options{})
	must(t, err)
	defer db.Close()
	s, err := db.KeyValueBytes("a")
	must(t, err)
	before := db.BufferedBytes()
	for i := range 1000 {
		must(t, s.Put(fmt.Append(nil, i), make([]byte, 100), 0))
	}
	written := db.BufferedBytes()
	if written-before < 100_000 || written-before > 300_000 {
		t.Errorf("100 KB of values take %d bytes", written-before)
	}
	gen, err := db.Seal()
	must(t, err)
	if got := db.BufferedBytes(); got != written {
		t.Errorf("%d bytes after the seal, %d before", got, written)
	}
	must(t, gen.Apply(nil, nil))
	if got := db.BufferedBytes(); got != before {
		t.Errorf("%d bytes after the commit, %d at first", got, before)
	}
	if got := db.MemoryBytes(); got < 100_000 {
		t.Errorf("%d bytes in memory", got)
	}
}

// TestNumEntriesEstimate counts more entries than are counted one by one.
func TestNumEntriesEstimate(t *testing.T) {
	db := openPebble(t, t.TempDir(), []state.Spec{kvSpec("a"), kvSpec("b")}, state.Options{})
	s, err := db.KeyValueBytes("a")
	must(t, err)
	for n := 1; n <= 100_000; n++ {
		must(t, s.Put(fmt.Appendf(nil, "%08d", n), fmt.Append(nil, n*n*7919), 0))
		if n%20_000 != 0 {
			continue
		}
		commit(t, db)
		got, err := s.ApproximateNumEntries()
		must(t, err)
		if got < int64(n)/4 || got > int64(n)*4 { // what has not been flushed yet is left out
			t.Errorf("%d entries are estimated as %d", n, got)
		}
	}
}

func TestLogHeadersAreThoseOfTheRecord(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			db := b.open(t, []state.Spec{
				{Name: "join", Kind: state.Window, RetainDuplicates: true, RetentionMs: 100, WindowSizeMs: 10, Logged: true, LogHeaders: true},
				{Name: "plain", Kind: state.KeyValue, Logged: true},
			}, state.Options{})
			ctx := &state.Context{Timestamp: 5}
			db.Bind(ctx)
			w, err := db.WindowBytes("join")
			must(t, err)
			kv, err := db.KeyValueBytes("plain")
			must(t, err)
			for i := range 3 {
				value := []byte{byte('0' + i)}
				ctx.Headers = []state.Header{{Key: "h", Value: value}}
				if i == 1 {
					ctx.Headers = nil
				}
				_, err = w.Put([]byte("k"), []byte("v"), 5, 5)
				must(t, err)
				must(t, kv.Put([]byte("k"), []byte("v"), 0))
				value[0] = 'x' // the store has copied it
			}
			for range 2 { // the second generation has none of the first one's
				gen, err := db.Seal()
				must(t, err)
				got := ""
				for r := range gen.Changelog() {
					for _, h := range r.Headers {
						got += h.Key + string(h.Value) + " "
					}
				}
				must(t, gen.Apply(nil, nil))
				if ctx.Headers != nil && got != "h0 h2 " || ctx.Headers == nil && got != "" {
					t.Errorf("headers of the changelog: %q", got)
				}
				ctx.Headers = nil
				_, err = w.Put([]byte("k"), []byte("v"), 5, 5)
				must(t, err)
			}
		})
	}
}

func TestBulkRestore(t *testing.T) {
	dir := t.TempDir()
	leftover := filepath.Join(dir, "restore-1.sst")
	must(t, os.WriteFile(leftover, []byte("a crash left this"), 0o644))
	db := openPebble(t, dir, []state.Spec{kvSpec("a"), kvSpec("b")}, state.Options{})
	if _, err := os.Stat(leftover); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
	s, err := db.KeyValueBytes("a")
	must(t, err)
	must(t, s.Put([]byte("k"), []byte("v"), 0))
	if err := db.BeginRestore("a"); err == nil || !strings.Contains(err.Error(), "uncommitted") {
		t.Errorf("bulk restore over uncommitted writes: %v", err)
	}
	must(t, db.Drop())
	db.SetBulkBytes(1 << 30)
	must(t, db.BeginRestore("a"))
	must(t, db.Restore("a", []state.RestoreRecord{{Key: []byte("k"), Value: []byte("1")}, {Key: []byte("l"), Value: []byte("2")}}, 2))
	must(t, db.Restore("a", []state.RestoreRecord{{Key: []byte("k")}}, 3))
	must(t, db.Restore("b", []state.RestoreRecord{{Key: []byte("k"), Value: []byte("b")}}, 1)) // another store goes on as usual
	if next, ok := db.Offset("a"); next != 3 || !ok {
		t.Errorf("offset %d %v of what is gathered", next, ok)
	}
	if err := db.Restore("a", []state.RestoreRecord{{Key: []byte("k"), Value: []byte("3")}}, 4); err != nil {
		t.Error(err)
	}
	must(t, db.Drop()) // gives up what is gathered
	if _, ok := db.Offset("a"); ok {
		t.Error("an offset of what is dropped")
	}
	must(t, db.BeginRestore("a"))
	must(t, db.Restore("a", []state.RestoreRecord{{Key: []byte("k"), Value: []byte("1")}, {Key: []byte("l"), Value: []byte("2")}}, 2))
	must(t, db.Restore("a", []state.RestoreRecord{{Key: []byte("k")}}, 3))
	if _, err := db.Seal(); err == nil || !strings.Contains(err.Error(), "EndRestore") {
		t.Errorf("seal during a restore: %v", err)
	}
	db.SetBulkBytes(1)
	must(t, db.EndRestore("a"))
	must(t, db.EndRestore("a"))
	must(t, db.Close())

	db = openPebble(t, dir, []state.Spec{kvSpec("a"), kvSpec("b")}, state.Options{})
	if next, ok := db.Offset("a"); next != 3 || !ok {
		t.Errorf("offset %d %v", next, ok)
	}
	s, err = db.KeyValueBytes("a")
	must(t, err)
	if _, _, ok, err := s.Get([]byte("k"), nil); ok || err != nil {
		t.Errorf("what was deleted is there: %v %v", ok, err)
	}
	if v, _, ok, err := s.Get([]byte("l"), nil); string(v) != "2" || !ok || err != nil {
		t.Errorf("restored: %q %v %v", v, ok, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "restore-*"))
	must(t, err)
	if len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestCloseWithout(t *testing.T) {
	dir, specs := t.TempDir(), []state.Spec{kvSpec("a"), kvSpec("b"), {Name: "w", Kind: state.Window, RetentionMs: 1000, Logged: true}}
	db := openPebble(t, dir, specs, state.Options{})
	for _, name := range []string{"a", "b"} {
		must(t, db.Restore(name, []state.RestoreRecord{{Key: []byte("k"), Value: []byte(name)}}, 5))
	}
	must(t, db.Restore("w", []state.RestoreRecord{{Key: state.AppendWindowKey(nil, []byte("k"), 7, 0), Value: []byte("w")}}, 5))
	if err := db.CloseWithout("nosuch"); !errors.As(err, new(*state.LookupError)) {
		t.Errorf("an unknown store: %v", err)
	}
	must(t, db.CloseWithout("a", "w"))

	db = openPebble(t, dir, specs, state.Options{})
	for name, want := range map[string]bool{"a": false, "b": true, "w": false} {
		if _, ok := db.Offset(name); ok != want {
			t.Errorf("store %s is there: %v", name, ok)
		}
	}
	for name, want := range map[string]bool{"a": false, "b": true} {
		s, err := db.KeyValueBytes(name)
		must(t, err)
		if _, _, ok, err := s.Get([]byte("k"), nil); ok != want || err != nil {
			t.Errorf("store %s has its row: %v %v", name, ok, err)
		}
	}
	w, err := db.WindowBytes("w")
	must(t, err)
	if w.StreamTime() != -1 {
		t.Errorf("an emptied store's stream time is %d", w.StreamTime())
	}
}
