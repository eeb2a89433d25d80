package lake

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
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
