package delta

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/tributary-io/tributary/lake/object"
)

// agedStore is a store whose objects have the ages that a test gives them.
type agedStore struct {
	*object.Memory
	now func() time.Time
	at  map[string]time.Time
}

func newAgedStore(now func() time.Time) *agedStore {
	return &agedStore{object.NewMemory("t"), now, map[string]time.Time{}}
}

func (s *agedStore) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		for info, err := range s.Memory.List(ctx, prefix, after) {
			if at, ok := s.at[info.Name]; ok {
				info.Modified = at
			} else {
				info.Modified = s.now()
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// file puts a file of an age, and returns its add action.
func (s *agedStore) file(t *testing.T, name string, age time.Duration) Add {
	t.Helper()
	if err := s.Put(t.Context(), name, []byte("data")); err != nil {
		t.Fatal(err)
	}
	s.at[name] = s.now().Add(-age)
	return Add{Path: EncodePath(name), Size: 4, Stats: `{"numRecords":3}`}
}

func dataNames(t *testing.T, s object.Store) (out []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(info.Name, logDir) {
			out = append(out, info.Name)
		}
	}
	return out
}

const day = 24 * time.Hour

// TestVacuum deletes what was removed long ago, and old orphans, and nothing else: not what is live, not what was removed lately, no
// deletion vector in use, nothing young, nothing hidden.
func TestVacuum(t *testing.T) {
	c := newClock()
	store := newAgedStore(c.Now)
	table := mustCreate(t, store, Spec{Configuration: map[string]string{"delta.enableDeletionVectors": "true"}}, Options{Now: c.Now})
	vectors, dvFile, err := WriteDeletionVectors(t.Context(), store, []*roaring.Bitmap{bigBitmap(), bigBitmap()})
	if err != nil || dvFile == "" {
		t.Fatal(err)
	}
	store.at[dvFile] = c.now.Add(-100 * day)
	long, lately := store.file(t, "long.parquet", 100*day), store.file(t, "lately.parquet", 100*day)
	live := store.file(t, "p=a b/live é.parquet", 100*day)
	live.DeletionVector = vectors[0]
	long.DeletionVector = vectors[1]
	absolute := store.file(t, "sub/absolute.parquet", 100*day)
	absolute.Path = "file:///somewhere/t/sub/absolute.parquet"
	if _, err := table.Commit(t.Context(), Commit{Add: []Add{long, lately, live}}); err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), commitName(2), []byte(`{"add":{"path":"`+absolute.Path+`","partitionValues":{},"size":4,"modificationTime":1,"dataChange":true}}`)); err != nil {
		t.Fatal(err)
	}
	remove := func(a Add) {
		if _, err := table.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, table, Commit{Remove: []Add{a}, ReadVersion: 1})
	}
	remove(long)
	c.now = c.now.Add(8 * day)
	remove(lately)
	store.file(t, "orphan-old.parquet", 8*day)
	store.file(t, "orphan-young.parquet", 2*day)
	store.file(t, "_hidden/x", 100*day)
	store.file(t, ".hidden", 100*day)
	store.file(t, "a/_SUCCESS", 100*day)
	store.file(t, "_change_data/c.parquet", 100*day)
	store.file(t, "_day=3/orphan.parquet", 100*day)
	before := dataNames(t, store)

	dry, err := table.Vacuum(t.Context(), VacuumOptions{DryRun: true})
	if err != nil || !slices.Equal(before, dataNames(t, store)) {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	var deleted []string
	var reports int
	res, err := table.Vacuum(t.Context(), VacuumOptions{Deleted: func(n string) { deleted = append(deleted, n) }, Progress: func(VacuumResult) { reports++ }})
	if err != nil || res != dry || reports == 0 {
		t.Fatalf("%+v after %+v, %v", res, dry, err)
	}
	if want := (VacuumResult{Version: 4, Listed: 9, Live: 4, Removed: 1, Orphans: 3, Spared: 1, Bytes: 16}); res != want {
		t.Errorf("%+v\nwant %+v", res, want)
	}
	slices.Sort(deleted)
	if want := "[_change_data/c.parquet _day=3/orphan.parquet long.parquet orphan-old.parquet]"; fmt.Sprint(deleted) != want {
		t.Errorf("deleted %v, want %v", deleted, want)
	}
	after := slices.DeleteFunc(slices.Clone(before), func(n string) bool { return slices.Contains(deleted, n) })
	if got := dataNames(t, store); !slices.Equal(got, after) {
		t.Errorf("left: %v, want %v", got, after)
	}
	if again, err := table.Vacuum(t.Context(), VacuumOptions{}); err != nil || again.Removed+again.Orphans != 0 {
		t.Errorf("a second run did %+v, %v", again, err)
	}
}

// bigBitmap is too large to be inline.
func bigBitmap() *roaring.Bitmap {
	b := roaring.New()
	for i := range uint32(1000) {
		b.Add(i * 3)
	}
	return b
}

// TestVacuumRetention refuses a short retention, takes it when forced, spares what may be in flight even then, and keeps longer than the table
// promises where it is told so, even if a checkpoint has dropped the tombstone.
func TestVacuumRetention(t *testing.T) {
	c := newClock()
	store := newAgedStore(c.Now)
	table := mustCreate(t, store, Spec{Configuration: map[string]string{"delta.checkpointInterval": "1"}}, Options{Now: c.Now})
	a, b := store.file(t, "a", 50*day), store.file(t, "b", 50*day)
	mustCommit(t, table, Commit{Add: []Add{a, b}})
	mustCommit(t, table, Commit{Remove: []Add{a}, ReadVersion: 1})
	store.at[commitName(2)] = c.now
	c.now = c.now.Add(10 * day)
	store.file(t, "young", time.Hour)
	mustCommit(t, table, Commit{Moves: []Move{move("x", -1, 1)}})
	if err := table.Maintain(t.Context()); err != nil { // its checkpoint drops the tombstone
		t.Fatal(err)
	}
	var short *RetentionError
	if _, err := table.Vacuum(t.Context(), VacuumOptions{Retention: day}); !errors.As(err, &short) || short.Least != 7*day {
		t.Errorf("a retention of a day: %v", err)
	}
	if res, err := table.Vacuum(t.Context(), VacuumOptions{Retention: 20 * day}); err != nil || res.Removed+res.Orphans != 0 {
		t.Errorf("kept for twenty days: %+v, %v", res, err)
	}
	if res, err := table.Vacuum(t.Context(), VacuumOptions{Force: true}); err != nil || res.Removed+res.Orphans != 1 || res.Spared != 1 {
		t.Errorf("forced: %+v, %v", res, err)
	}
	if got := fmt.Sprint(dataNames(t, store)); got != "[b young]" {
		t.Errorf("left: %v", got)
	}
}

// TestVacuumLateCommit commits a file between a vacuum's listing and its reading of the log: it must be spared.
func TestVacuumLateCommit(t *testing.T) {
	c := newClock()
	store := newAgedStore(c.Now)
	table := mustCreate(t, store, Spec{}, Options{Now: c.Now})
	late := store.file(t, "late", 30*day)
	hooked := &hookStore{agedStore: store, hook: func() { mustCommit(t, table, Commit{Add: []Add{late}}) }}
	other := mustOpen(t, hooked, Options{Now: c.Now})
	if res, err := other.Vacuum(t.Context(), VacuumOptions{}); err != nil || res.Orphans != 0 || res.Live != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// hookStore calls a function once, when the listing of everything has ended.
type hookStore struct {
	*agedStore
	hook func()
}

func (s *hookStore) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		for info, err := range s.agedStore.List(ctx, prefix, after) {
			if !yield(info, err) {
				return
			}
		}
		if prefix == "" && s.hook != nil {
			s.hook()
			s.hook = nil
		}
	}
}

// TestVacuumRefused leaves tables alone whose features it doesn't know.
func TestVacuumRefused(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{}, Options{})
	if err := store.Put(t.Context(), commitName(1), []byte(`{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["rowTracking"]}}`)); err != nil {
		t.Fatal(err)
	}
	var unsupported *UnsupportedError
	if _, err := table.Vacuum(t.Context(), VacuumOptions{}); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "rowTracking") {
		t.Errorf("%v", err)
	}
}
