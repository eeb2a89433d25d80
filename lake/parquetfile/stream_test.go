package parquetfile

import (
	"bytes"
	"fmt"
	"math"
	"testing"

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
	if n := s.Pending(); n != 0 {
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
