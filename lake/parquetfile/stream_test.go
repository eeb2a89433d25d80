package parquetfile

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/lake/columns"
)

// TestStreamIsWrite writes rows in pieces: the file has the same rows as one that is written at once, in groups of the size asked for, and what is
// measured is the same.
func TestStreamIsWrite(t *testing.T) {
	rec := buildAll(t, 1000).Record()
	var buf bytes.Buffer
	s, err := NewStream(&buf, Options{RowGroupRows: 300})
	if err != nil {
		t.Fatal(err)
	}
	for from := int64(0); from < 1000; from += 110 {
		if err := s.Write(rec.NewSlice(from, min(from+110, 1000))); err != nil {
			t.Fatal(err)
		}
	}
	leaves, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	got, groups := readBack(t, buf.Bytes())
	if want := rowsOf(rec); !cmp.Equal(got, want) || groups != 4 || s.Rows() != 1000 {
		t.Errorf("%d rows in %d groups: %s", len(got), groups, cmp.Diff(want, got))
	}
	for i, want := range Measure(rec) {
		l := leaves[i]
		if l.Nested {
			continue // what is measured inside of lists is that of the whole array, of which a batch here is a slice
		}
		if fmt.Sprint(l.Path, l.Rows, l.Nulls, l.HasBounds, l.HasNaN, l.Min, l.Max) != fmt.Sprint(want.Path, want.Rows, want.Nulls, want.HasBounds, want.HasNaN, want.Min, want.Max) {
			t.Errorf("column %v: %+v, want %+v", l.Path, l, want)
		}
	}
}

// TestStreamBounds lets batches without values, and a NaN in a later one, come in between.
func TestStreamBounds(t *testing.T) {
	schema := &columns.Schema{Fields: []columns.Field{leaf("a", columns.Long), leaf("f", columns.Double)}}
	var buf bytes.Buffer
	s, err := NewStream(&buf, Options{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(f float64, ints ...int64) {
		b := columns.NewBuilder(schema)
		for _, v := range ints {
			if v == 0 {
				if err := b.AppendNull(0); err != nil {
					t.Fatal(err)
				}
			} else {
				b.Columns()[0].AppendInt64(v)
			}
			b.Columns()[1].AppendFloat64(f)
			if err := b.EndRow(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Write(b.Record()); err != nil {
			t.Fatal(err)
		}
	}
	write(1, 0, 0)
	write(2, 7, 0, -3)
	write(3, 0)
	write(math.NaN(), 9)
	leaves, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	if l := leaves[0]; !l.HasBounds || l.Min.Int != -3 || l.Max.Int != 9 || l.Nulls != 4 || l.Rows != 7 {
		t.Errorf("%+v", l)
	}
	if l := leaves[1]; l.HasBounds || !l.HasNaN {
		t.Errorf("a NaN came last, but the column has bounds: %+v", l)
	}
	rows, _ := readBack(t, buf.Bytes())
	checkNoFooterBounds(t, buf.Bytes(), 1)
	if len(rows) != 7 {
		t.Errorf("%d rows", len(rows))
	}
	empty, err := NewStream(&buf, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := empty.Close(); err == nil {
		t.Error("a file without rows ends well")
	}
}

// TestStreamLateNaN has a NaN in the second row group only: no bound of the column stands in the statistics or in any footer.
func TestStreamLateNaN(t *testing.T) {
	schema := &columns.Schema{Fields: []columns.Field{leaf("n", columns.Long), leaf("f", columns.Double)}}
	var buf bytes.Buffer
	s, err := NewStream(&buf, Options{RowGroupRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range []float64{1, math.NaN(), 3} {
		b := columns.NewBuilder(schema)
		b.Columns()[0].AppendInt64(int64(i))
		b.Columns()[1].AppendFloat64(f)
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(b.Record()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.pendingBytes; n != 0 {
		t.Errorf("%d bytes are held after three row groups", n)
	}
	leaves, err := s.Close()
	if err != nil || leaves[1].HasBounds || !leaves[1].HasNaN || leaves[0].Max.Int != 2 {
		t.Errorf("%+v, %v", leaves, err)
	}
	if _, groups := readBack(t, buf.Bytes()); groups != 3 {
		t.Errorf("%d row groups", groups)
	}
	checkNoFooterBounds(t, buf.Bytes(), 1)
}

// TestStreamGroupsBySize ends row groups by the memory of their rows.
func TestStreamGroupsBySize(t *testing.T) {
	rec := buildAll(t, 100).Record()
	var buf bytes.Buffer
	s, err := NewStream(&buf, Options{RowGroupBytes: MemorySize(rec) / 5})
	if err != nil {
		t.Fatal(err)
	}
	for from := int64(0); from < 100; from += 5 {
		if err := s.Write(rec.NewSlice(from, from+5)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, groups := readBack(t, buf.Bytes())
	if want := rowsOf(rec); !cmp.Equal(got, want) || groups < 4 {
		t.Errorf("%d rows in %d groups", len(got), groups)
	}
}

// TestStreamEncodesAsItGoes writes much more than is held at once: rows are encoded within their row groups, dictionaries are those of the whole, and the
// page index tells where each page of each row group is.
func TestStreamEncodesAsItGoes(t *testing.T) {
	schema := &columns.Schema{Fields: []columns.Field{leaf("n", columns.Long), leaf("few", columns.String), leaf("many", columns.String)}}
	var buf bytes.Buffer
	s, err := NewStream(&buf, Options{RowGroupRows: 150_000})
	if err != nil {
		t.Fatal(err)
	}
	const rows, batch = 320_000, 1000
	for from := 0; from < rows; from += batch {
		b := columns.NewBuilder(schema)
		for i := from; i < from+batch; i++ {
			b.Columns()[0].AppendInt64(int64(i))
			b.Columns()[1].AppendString(fmt.Sprint("few-", i*7919%5000)) // 5,000 in each row group, 2,000 in a batch at the most
			b.Columns()[2].AppendString(fmt.Sprintf("many-%020d", i))
			if err := b.EndRow(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Write(b.Record()); err != nil {
			t.Fatal(err)
		}
		if s.file == nil && s.pendingBytes > firstBytes+chunkBytes || s.file != nil && s.pendingRows >= chunkRows {
			t.Fatalf("%d rows of %d bytes are held after %d", s.pendingRows, s.pendingBytes, s.Rows())
		}
	}
	about := s.Size()
	defer func() {
		if n := s.Size(); n != int64(buf.Len()) || about < n*9/10 || about > n*11/10 {
			t.Errorf("a file of %d bytes was taken to have %d at its end, and %d after it", buf.Len(), about, n)
		}
	}()
	leaves, err := s.Close()
	if err != nil || leaves[0].Rows != rows || leaves[0].Min.Int != 0 || leaves[0].Max.Int != rows-1 || string(leaves[2].Max.Bytes) != fmt.Sprintf("many-%020d", rows-1) {
		t.Errorf("%+v, %v", leaves, err)
	}
	pf, err := file.NewParquetReader(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	if pf.NumRowGroups() != 3 || pf.NumRows() != rows {
		t.Fatalf("%d rows in %d groups", pf.NumRows(), pf.NumRowGroups())
	}
	for g := range pf.NumRowGroups() {
		index, err := pf.GetPageIndexReader().RowGroup(g)
		if err != nil {
			t.Fatal(err)
		}
		for c, name := range []string{"n", "few", "many"} {
			chunk, err := pf.MetaData().RowGroup(g).ColumnChunk(c)
			if err != nil {
				t.Fatal(err)
			}
			if chunk.HasDictionaryPage() != (name == "few") {
				t.Errorf("row group %d, column %s: dictionary %v", g, name, chunk.HasDictionaryPage())
			}
			places, err := index.GetOffsetIndex(c)
			if err != nil || len(places.GetPageLocations()) < 2 && g == 0 {
				t.Fatalf("row group %d, column %s: places %v, %v", g, name, places, err)
			}
			if at := places.GetPageLocations()[0].Offset; at != chunk.DataPageOffset() {
				t.Errorf("row group %d, column %s: the index has its first page at %d, it is at %d", g, name, at, chunk.DataPageOffset())
			}
		}
	}
	got, _ := readBack(t, buf.Bytes())
	for i, r := range got {
		if r["n"] != int64(i) || r["few"] != fmt.Sprint("few-", i*7919%5000) || r["many"] != fmt.Sprintf("many-%020d", i) {
			t.Fatalf("row %d: %v", i, r)
		}
	}
}
