package delta

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/tributary-io/tributary/lake/object"
)

// liveFiles lists the live files of the newest version by their paths.
func liveFiles(t testing.TB, table *Table) map[string]Add {
	t.Helper()
	out := map[string]Add{}
	for a, err := range mustSnapshot(t, table).Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out[a.Path] = a
	}
	return out
}

// TestRewriteBytes pins what a compaction looks like in the log, and that readers of the table's state see it.
func TestRewriteBytes(t *testing.T) {
	store := object.NewMemory("t")
	ids := 0
	opts := Options{Now: newClock().Now, NewID: func() string { ids++; return fmt.Sprint("id", ids) }}
	table := mustCreate(t, store, Spec{Configuration: map[string]string{"delta.appendOnly": "true"}}, opts)
	old := []Add{mustFile(t, store, 3), mustFile(t, store, 4)}
	mustCommit(t, table, Commit{Add: old, Moves: []Move{move("a/0", -1, 7)}})
	if err := store.Put(t.Context(), "new.parquet", nil); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, table, Commit{Remove: old, ReadVersion: 1, Rearrange: true, Operation: "OPTIMIZE",
		Add: []Add{{Path: "new.parquet", Size: 6, ModificationTime: 5, Stats: `{"numRecords":7}`}}})
	want := `{"commitInfo":{"timestamp":1780315200000,"operation":"OPTIMIZE","operationParameters":{},"readVersion":1,"isBlindAppend":false,` +
		`"operationMetrics":{"numAddedFiles":"1","numOutputBytes":"6","numOutputRows":"7","numRemovedBytes":"8","numRemovedFiles":"2"},"engineInfo":"Tributary","txnId":"id4"}}
{"remove":{"path":"` + old[0].Path + `","deletionTimestamp":1780315200000,"dataChange":false,"extendedFileMetadata":true,"size":4}}
{"remove":{"path":"` + old[1].Path + `","deletionTimestamp":1780315200000,"dataChange":false,"extendedFileMetadata":true,"size":4}}
{"add":{"path":"new.parquet","partitionValues":{},"size":6,"modificationTime":5,"dataChange":false,"stats":"{\"numRecords\":7}"}}
`
	got, err := store.Get(t.Context(), commitName(2))
	if err != nil || string(got) != want {
		t.Errorf("entry, %v:\n%s\nwant\n%s", err, got, want)
	}
	if h := table.Head(); h.NumFiles != 1 || h.SizeBytes != 6 {
		t.Errorf("the head counts %d files of %d bytes", h.NumFiles, h.SizeBytes)
	}
	if live := liveFiles(t, mustOpen(t, store, Options{})); len(live) != 1 || live["new.parquet"].Size != 6 {
		t.Errorf("live: %v", live)
	}
}

// TestRewriteBesideOthers lands a compaction behind appends of others, and refuses it behind a removal of one of its files.
func TestRewriteBesideOthers(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{}, Options{})
	old := []Add{mustFile(t, store, 1), mustFile(t, store, 2), mustFile(t, store, 3)}
	mustCommit(t, table, Commit{Add: old})
	other := mustOpen(t, store, Options{})
	mustCommit(t, other, Commit{Add: []Add{mustFile(t, store, 10)}, Moves: []Move{move("b/0", -1, 1)}})
	landed := mustCommit(t, table, Commit{Remove: old[:2], ReadVersion: 1, Rearrange: true, Add: []Add{mustFile(t, store, 3)}})
	if landed.Version != 3 || landed.Attempts != 2 {
		t.Errorf("behind an append: %+v", landed)
	}
	// Seen before the try, not only after a lost race: the table has been refreshed meanwhile.
	if _, err := other.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	var conflict *ConflictError
	_, err := other.Commit(t.Context(), Commit{Remove: old[1:], ReadVersion: 1, Rearrange: true, Add: []Add{mustFile(t, store, 5)}})
	if !errors.As(err, &conflict) || conflict.Version != 3 || len(conflict.Paths) != 1 || conflict.Paths[0] != old[1].Path {
		t.Fatalf("removed twice: %v", err)
	}
	if files, rows := counts(t, mustSnapshot(t, other)); files != 3 || rows != 16 {
		t.Errorf("%d files with %d rows", files, rows)
	}
	if err := store.Delete(t.Context(), commitName(2)); err != nil {
		t.Fatal(err)
	}
	_, err = other.Commit(t.Context(), Commit{Remove: old[2:], ReadVersion: 1, Rearrange: true, Add: []Add{mustFile(t, store, 3)}})
	if !errors.As(err, &conflict) || len(conflict.Paths) != 0 {
		t.Errorf("behind a hole in the log: %v", err)
	}
}

// TestRewriteRaces compacts with several writers at once beside appends: every row is there once, whoever won.
func TestRewriteRaces(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{}, Options{})
	const appends = 40
	var wg sync.WaitGroup
	wg.Go(func() {
		for range appends {
			a, err := fakeFile(t.Context(), store, 1)
			if err == nil {
				_, err = table.Commit(t.Context(), Commit{Add: []Add{a}})
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 3 {
		wg.Go(func() {
			mine, err := Open(t.Context(), store, Options{})
			for n := 0; n < 15 && err == nil; n++ {
				err = rewriteAll(t, mine)
				if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
					err = nil
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, rows := counts(t, mustSnapshot(t, table)); rows != appends {
		t.Errorf("%d rows of %d", rows, appends)
	}
}

// rewriteAll replaces all files by one.
func rewriteAll(t *testing.T, table *Table) error {
	s, err := table.Snapshot(t.Context())
	if err != nil {
		return err
	}
	c := Commit{ReadVersion: s.Head.Version, Rearrange: true}
	var rows int64
	for a, err := range s.Files(t.Context()) {
		if err != nil {
			return err
		}
		n, _ := a.NumRecords()
		rows += n
		c.Remove = append(c.Remove, a)
	}
	if len(c.Remove) < 2 {
		return nil
	}
	add, err := fakeFile(t.Context(), table.Store(), rows)
	if err != nil {
		return err
	}
	c.Add = []Add{add}
	_, err = table.Commit(t.Context(), c)
	return err
}

func TestRewriteRefused(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{Configuration: map[string]string{"delta.appendOnly": "true"}}, Options{})
	a := mustFile(t, store, 1)
	mustCommit(t, table, Commit{Add: []Add{a}})
	for name, c := range map[string]struct {
		commit Commit
		want   string
	}{
		"delete of an append-only table": {Commit{Remove: []Add{a}, ReadVersion: 1}, "delta.appendOnly"},
		"removed twice":                  {Commit{Remove: []Add{a, a}, ReadVersion: 1}, "twice"},
		"added and removed":              {Commit{Add: []Add{a}, Remove: []Add{a}, ReadVersion: 1, Rearrange: true}, "both"},
		"no removal":                     {Commit{Add: []Add{a}, Rearrange: true}, "removes no file"},
		"no version":                     {Commit{Remove: []Add{a}, ReadVersion: -1, Rearrange: true}, "without a version"},
	} {
		if _, err := table.Commit(t.Context(), c.commit); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if v := table.Head().Version; v != 1 {
		t.Errorf("version %d", v)
	}
}

// TestExactCommits lands a commit that was chosen by all rows only right behind the version that it was chosen by.
func TestExactCommits(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{}, Options{})
	other := mustOpen(t, store, Options{})
	mustCommit(t, other, Commit{Moves: []Move{move("b/0", -1, 1)}})
	exact := Commit{Add: []Add{mustFile(t, store, 2)}, Exact: true}
	var conflict *ConflictError
	if _, err := table.Commit(t.Context(), exact); !errors.As(err, &conflict) || conflict.Version != 1 {
		t.Fatalf("another commit came in between, but: %v", err)
	}
	exact.ReadVersion = 1
	if landed := mustCommit(t, table, exact); landed.Version != 2 {
		t.Errorf("%+v", landed)
	}
}

// TestVectorTables makes a table with deletion vectors, gives a file one after the other, and reads what is live from the log, from a
// checkpoint, and what changed from the entries.
func TestVectorTables(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{Configuration: map[string]string{"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "4"}}, Options{})
	if p := table.Head().Protocol; p.MinReaderVersion != 3 || !slices.Equal(p.ReaderFeatures, []string{"deletionVectors"}) || !slices.Equal(p.WriterFeatures, []string{"deletionVectors"}) {
		t.Errorf("protocol %+v", p)
	}
	file := mustFile(t, store, 3)
	mustCommit(t, table, Commit{Add: []Add{file}})
	for n := range uint32(3) {
		vectors, _, err := WriteDeletionVectors(t.Context(), store, []*roaring.Bitmap{roaring.BitmapOf(n, 5)})
		if err != nil {
			t.Fatal(err)
		}
		next := file
		next.DeletionVector = vectors[0]
		mustCommit(t, table, Commit{Add: []Add{next}, Remove: []Add{file}, ReadVersion: table.Head().Version, Exact: true})
		file = next
	}
	if err := table.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, store, Options{})
	if h := again.Head(); h.NumFiles != 1 {
		t.Errorf("%d files are counted", h.NumFiles)
	}
	live := liveFiles(t, again)
	if got := live[file.Path]; len(live) != 1 || got.DeletionVector.UniqueID() != file.DeletionVector.UniqueID() {
		t.Errorf("live: %v", live)
	}
	var versions []int64
	err := again.Changes(t.Context(), 1, 4, func(c FileChanges) error {
		versions = append(versions, c.Version)
		if len(c.Add) != 1 || len(c.Remove) != 1 || c.Add[0].DeletionVector.UniqueID() == c.Remove[0].DeletionVector.UniqueID() {
			t.Errorf("%+v", c)
		}
		return nil
	})
	if err != nil || !slices.Equal(versions, []int64{2, 3, 4}) {
		t.Errorf("changes of %v, %v", versions, err)
	}
	if err := again.Changes(t.Context(), 4, 5, func(FileChanges) error { return nil }); !errors.Is(err, object.ErrNotFound) {
		t.Errorf("a version that isn't there: %v", err)
	}
}

// TestChangeFeedTablesTakeAppendsOnly keeps rows from changing where each change would have to be recorded beside.
func TestChangeFeedTablesTakeAppendsOnly(t *testing.T) {
	head := &Head{Metadata: &Metadata{Configuration: map[string]string{propChangeFeed: "true"}}, table: "t"}
	a := &attempt{commit: &Commit{Remove: []Add{{Path: "x"}}}}
	var unsupported *UnsupportedError
	if err := a.checkRemovals(t.Context(), head); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), propChangeFeed) {
		t.Errorf("%v", err)
	}
	a.commit.Rearrange = true
	if err := a.checkRemovals(t.Context(), head); err != nil {
		t.Errorf("a compaction changes no row, but: %v", err)
	}
}

// TestVectorsNeedLeaveAndCount refuses files with deletion vectors where the table doesn't allow them, and where nobody could tell how many rows are left.
func TestVectorsNeedLeaveAndCount(t *testing.T) {
	for allowed, want := range map[string]string{"false": "doesn't allow new ones", "true": "number of rows"} {
		store := object.NewMemory("t")
		table := mustCreate(t, store, Spec{Configuration: map[string]string{"delta.enableDeletionVectors": allowed}}, Options{})
		file := mustFile(t, store, 3)
		vectors, _, err := WriteDeletionVectors(t.Context(), store, []*roaring.Bitmap{roaring.BitmapOf(1)})
		if err != nil {
			t.Fatal(err)
		}
		if file.DeletionVector = vectors[0]; allowed == "true" {
			file.Stats = ""
		}
		if _, err := table.Commit(t.Context(), Commit{Add: []Add{file}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("allowed: %s; %v, want %q", allowed, err, want)
		}
	}
}
