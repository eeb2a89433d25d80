package delta

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/lake/object"
)

func TestMain(m *testing.M) {
	if os.Getenv("DELTA_TEST_WRITER") != "" {
		os.Exit(writerProcess())
	}
	leaks.Main(m)
}

// plain is a small schema for tests in which rows don't matter.
func plain() *StructType {
	return &StructType{Fields: []Field{{Name: "id", Type: Long, Nullable: true}, {Name: "name", Type: String, Nullable: true}}}
}

func mustCreate(t testing.TB, s object.Store, spec Spec, opts Options) *Table {
	t.Helper()
	if spec.Schema == nil {
		spec.Schema = plain()
	}
	table, err := Create(t.Context(), s, spec, opts)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func mustOpen(t testing.TB, s object.Store, opts Options) *Table {
	t.Helper()
	table, err := Open(t.Context(), s, opts)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// fakeFile puts some bytes into the store in place of a data file and returns its add action.
func fakeFile(ctx context.Context, s object.Store, rows int64) (Add, error) {
	name := NewDataFileName("zstd")
	w, err := s.Create(ctx, name)
	if err != nil {
		return Add{}, err
	}
	defer w.Abort()
	if _, err = w.Write([]byte("data")); err != nil {
		return Add{}, err
	}
	if err = w.Close(); err != nil {
		return Add{}, err
	}
	return Add{Path: EncodePath(name), Size: 4, ModificationTime: 1, Stats: fmt.Sprintf(`{"numRecords":%d}`, rows)}, nil
}

func mustFile(t testing.TB, s object.Store, rows int64) Add {
	t.Helper()
	a, err := fakeFile(t.Context(), s, rows)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// move is progress of one id; from < 0 means none yet.
func move(id string, from, to int64) Move {
	return Move{AppID: id, First: from < 0, From: from, To: to}
}

func mustCommit(t testing.TB, table *Table, c Commit) Landed {
	t.Helper()
	landed, err := table.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return landed
}

// counts adds up a snapshot's files and rows.
func counts(t testing.TB, s *Snapshot) (files, rows int64) {
	t.Helper()
	for a, err := range s.Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		files++
		n, _ := a.NumRecords()
		rows += n
	}
	return files, rows
}

func mustSnapshot(t testing.TB, table *Table) *Snapshot {
	t.Helper()
	s, err := table.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// clock is a clock that tests move.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time { return c.now }
