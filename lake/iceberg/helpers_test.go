package iceberg_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/iceberg/sqlite"
	"github.com/tributary-io/tributary/lake/icebergreaders"
	"github.com/tributary-io/tributary/lake/sink"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		sinktest.ExitUnless(landSome(dir, 1<<40))
		return
	}
	leaks.Main(m)
}

var ctx = context.Background()

// The topic's partitions, their progress, and refusals, as in the tests of all table formats.
var part, move, wantRefused = sinktest.Part, sinktest.Move, sinktest.WantRefused

// place is a folder with an SQLite catalog and a warehouse.
type place struct{ dir string }

func newPlace(t testing.TB) place { return place{t.TempDir()} }

func (p place) catalog() iceberg.Catalog {
	return sqlite.Catalog(p.dir+"/catalog/catalog.db", p.dir+"/wh")
}

func (p place) readers() icebergreaders.Catalog {
	return icebergreaders.SQLite(p.dir+"/catalog/catalog.db", p.dir+"/wh")
}

// dataFiles counts the data files in the warehouse.
func (p place) files(t testing.TB, suffix string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(p.dir+"/wh", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, suffix) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// numbered is a row that says which input record it is.
type numbered struct {
	P int32 `lake:"p"`
	O int64 `lake:"o"`
	S string
}

func testEnv() sink.Env {
	return sink.Env{ApplicationID: "app", Name: "orders-sink", Logger: slog.New(slog.DiscardHandler), Now: time.Now}
}

func tryOpen[K, V any](s sink.Sink) (sink.Writer, error) {
	return sinktest.Open[K, V](ctx, s, testEnv())
}

func openSink[K, V any](t testing.TB, s sink.Sink) sink.Writer {
	t.Helper()
	w, err := tryOpen[K, V](s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// fill makes a batch of rows of partition p with the offsets from … to-1.
func fill(t testing.TB, w sink.Writer, p int32, from, to int64) sink.Batch {
	t.Helper()
	b := w.NewBatch()
	for o := from; o < to; o++ {
		if err := b.Append(nil, &numbered{p, o, fmt.Sprint("row ", o)}, &sink.Meta{Topic: "orders", Partition: p, Offset: o}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// land commits rows of partition p with the offsets from … to-1.
func land(t testing.TB, w sink.Writer, p int32, from, to int64) sink.Commit {
	t.Helper()
	b := fill(t, w, p, from, to)
	defer b.Release()
	start := from
	if from == 0 {
		start = sink.NoOffset
	}
	c, err := w.Commit(ctx, b, []sink.Move{move(p, start, to)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// landRows commits rows of any type.
func landRows[V any](t testing.TB, w sink.Writer, from int64, rows ...V) sink.Commit {
	t.Helper()
	b := w.NewBatch()
	defer b.Release()
	for i := range rows {
		key := fmt.Sprint("k", from+int64(i))
		if err := b.Append(&key, &rows[i], &sink.Meta{Topic: "orders", Offset: from + int64(i), BrokerTimestamp: 1780000000123}); err != nil {
			t.Fatal(err)
		}
	}
	start := from
	if from == 0 {
		start = sink.NoOffset
	}
	c, err := w.Commit(ctx, b, []sink.Move{move(0, start, from+int64(len(rows)))})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func progress(t testing.TB, w sink.Writer, p int32) int64 {
	t.Helper()
	got, err := w.Progress(ctx, []sink.Partition{part(p)})
	if err != nil {
		t.Fatal(err)
	}
	return got[part(p)]
}

// wantOnce checks that the rows of a query (p, o, count) are the input up to an offset in each partition, each once.
func wantOnce(t testing.TB, tbl *icebergreaders.Table, partitions int32, until int64) {
	t.Helper()
	rows := tbl.DuckDB(`select p, count(*) as n, count(distinct o) as d, max(o) as m from t group by p order by p`)
	if len(rows) != int(partitions) {
		t.Fatalf("rows of %d partitions, want %d: %v", len(rows), partitions, rows)
	}
	for _, r := range rows {
		n, d, m := icebergreaders.Int(t, r, "n"), icebergreaders.Int(t, r, "d"), icebergreaders.Int(t, r, "m")
		if n != until || d != until || m != until-1 {
			t.Errorf("partition %v: %d rows, %d different ones, the last %d; want %d", r["p"], n, d, m, until)
		}
	}
}
