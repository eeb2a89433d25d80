package lake

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// countingStore counts the writers that are open at once.
type countingStore struct {
	object.Store
	mu         sync.Mutex
	open, most int
}

func (s *countingStore) Create(ctx context.Context, name string) (object.Writer, error) {
	w, err := s.Store.Create(ctx, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.most = max(s.most, s.open)
	return &countingWriter{Writer: w, s: s}, err
}

type countingWriter struct {
	object.Writer
	s    *countingStore
	once sync.Once
}

func (w *countingWriter) ended() {
	w.once.Do(func() {
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		w.s.open--
	})
}

func (w *countingWriter) Close() error { defer w.ended(); return w.Writer.Close() }
func (w *countingWriter) Abort()       { w.ended(); w.Writer.Abort() }

// TestThousandsOfPartitions lands a batch that touches 2,500 partitions: one file for each, in one version, with no more files open at once
// than there are cores.
func TestThousandsOfPartitions(t *testing.T) {
	const partitions = 2500
	store := &countingStore{Store: object.NewMemory("m")}
	w := openSink[string, reading](t, Delta("m", Store(store)))
	b := w.NewBatch()
	for i := range int64(2 * partitions) {
		r := reading{ID: i, Day: fmt.Sprint("p", i%partitions)}
		if err := b.Append(nil, &r, meta(i)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 2*partitions)})
	b.Release()
	if err != nil || c.Files != partitions || c.Version != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if store.most > runtime.GOMAXPROCS(0) || store.open != 0 {
		t.Errorf("%d files were open at once, and %d still are", store.most, store.open)
	}
	if n := len(allRows(t, store)); n != 2*partitions {
		t.Errorf("%d rows", n)
	}
}

// TestLargeBatch splits a batch into row groups, and into further files where one would pass the target; the statistics are those of each file.
func TestLargeBatch(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	w := openSink[string, order](t, Delta(dir, Compression("uncompressed", 0), Properties(map[string]string{"delta.targetFileSize": "40kb"}),
		func(o *options) { o.parquet.RowGroupBytes = 8 << 10 }))
	var rows []order
	for i := range 4000 {
		rows = append(rows, order{ID: fmt.Sprintf("%08d", i), Amount: float64(i)})
	}
	c := land(t, w, 0, rows...)
	files := filesOf(t, store)
	if c.Files < 2 || c.Files != len(files) || c.Version != 1 {
		t.Fatalf("%+v", c)
	}
	var total, groups int64
	for _, f := range files {
		n, _ := f.NumRecords()
		total += n
		if f.Size > 80<<10 {
			t.Errorf("a file has %d bytes", f.Size)
		}
		groups += rowGroupsOf(t, store, f.Path)
	}
	if total != 4000 || groups <= int64(len(files)) {
		t.Errorf("%d rows in %d row groups of %d files", total, groups, len(files))
	}
	const find = "select count(*) as n from t where id >= '00003990' and amount > 3994.5"
	if n := r.DuckDB(t, dir, find).Rows[0].Int(t, "n"); n != 5 {
		t.Errorf("DuckDB finds %d rows", n)
	}
	if n := r.DeltaRS(t, dir, readers.Query(find)).Rows[0].Int(t, "n"); n != 5 {
		t.Errorf("delta-rs finds %d rows", n)
	}
}

// rowGroupsOf counts a file's row groups, and makes sure that each has statistics and that its pages have an index.
func rowGroupsOf(t testing.TB, store object.Store, name string) int64 {
	t.Helper()
	data, err := store.Get(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for g := range f.NumRowGroups() {
		chunk, err := f.MetaData().RowGroup(g).ColumnChunk(0)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := chunk.StatsSet(); err != nil || !ok {
			t.Errorf("row group %d of %s has no statistics: %v", g, name, err)
		}
	}
	return int64(f.NumRowGroups())
}

// paged is a row of a file with many pages.
type paged struct {
	ID    int64    `lake:"id"`
	Text  string   `lake:"text"`
	Maybe *int64   `lake:"maybe"`
	Part  *float64 `lake:"part"`
	In    struct {
		N *int32 `lake:"n"`
	} `lake:"in"`
	Tags []string `lake:"tags"`
}

// TestPageIndexReadByOthers has pyarrow find the page index in a file, and DataFusion, which skips pages by it, and DuckDB find rows by all kinds of columns.
func TestPageIndexReadByOthers(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	w := openSink[string, paged](t, Delta(dir))
	const rows = 60_000
	b := w.NewBatch()
	for i := range int64(rows) {
		p := paged{ID: i * 7919 % rows, Text: fmt.Sprintf("text %06d %s", i, strings.Repeat("x", int(i%90))), Tags: []string{fmt.Sprint("t", i)}}
		if i >= rows/2 { // so that some pages hold nothing but nulls
			n, f := int32(i), float64(i)/4
			p.Maybe, p.Part, p.In.N = &i, &f, &n
		}
		if err := b.Append(nil, &p, meta(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, rows)}); err != nil {
		t.Fatal(err)
	}
	b.Release()
	name, err := filesOf(t, store)[0].Name()
	if err != nil {
		t.Fatal(err)
	}
	var index []string
	r.Python(t, dir, fmt.Sprintf(`
import pyarrow.parquet as pq
group = pq.ParquetFile(table + "/" + %q).metadata.row_group(0)
out = sorted(set(f"{c.has_column_index} {c.has_offset_index}" for c in (group.column(i) for i in range(group.num_columns))))
`, name), &index)
	if fmt.Sprint(index) != "[True True]" {
		t.Errorf("page indexes: %v", index)
	}
	conditions := []struct {
		where string
		rows  int64
	}{
		{"id between 100 and 110", 11}, {"text like 'text 04%'", 10_000}, {"text = 'text 059999 " + strings.Repeat("x", 59_999%90) + "'", 1}, {"maybe = 45000", 1},
		{"maybe is null", rows / 2}, {"maybe < 30010", 10}, {"part >= 14999", 4}, {"text > 'text 06'", 0},
	}
	var parts []string
	for i, c := range conditions {
		parts = append(parts, fmt.Sprintf("select %d as i, count(*) as n from t where %s", i, c.where))
	}
	q := strings.Join(parts, " union all ")
	for who, found := range map[string][]readers.Row{"delta-rs": r.DeltaRS(t, dir, readers.Query(q)).Rows, "DuckDB": r.DuckDB(t, dir, q).Rows} {
		if len(found) != len(conditions) {
			t.Fatalf("%s answers %v", who, found)
		}
		for _, row := range found {
			if c, n := conditions[row.Int(t, "i")], row.Int(t, "n"); n != c.rows {
				t.Errorf("%s finds %d rows where %s, want %d", who, n, c.where, c.rows)
			}
		}
	}
}
