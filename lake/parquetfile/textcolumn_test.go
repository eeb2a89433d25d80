package parquetfile

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/tributary-io/tributary/lake/columns"
)

// textCase says what texts a column has.
type textCase struct {
	name string
	// text is that of a row; false: null.
	text func(r *rand.Rand, row int) (string, bool)
	// encoding is what the last row group must have, among others.
	encoding parquet.Encoding
}

const textGroup = 15_000 // rows of a row group

var textCases = []textCase{
	{"few", func(r *rand.Rand, _ int) (string, bool) {
		return strings.Repeat("ab", 40) + []string{"x", "y", "z"}[r.IntN(3)], true
	}, parquet.Encodings.RLEDict},
	{"nulls and empty", func(r *rand.Rand, _ int) (string, bool) { n := r.IntN(12); return strings.Repeat("é", n), n != 3 }, parquet.Encodings.RLEDict},
	{"all null in the second group", func(r *rand.Rand, row int) (string, bool) {
		return fmt.Sprint(r.IntN(9)), row < textGroup || row >= 2*textGroup
	}, parquet.Encodings.RLEDict},
	{"many, and new ones later", func(r *rand.Rand, row int) (string, bool) {
		return fmt.Sprintf("%040d", (row*611953)%300+r.IntN(row/50+1)), r.IntN(10) > 0
	}, parquet.Encodings.RLEDict},
	{"a new one now and then", func(r *rand.Rand, row int) (string, bool) { return fmt.Sprintf("%040d", 1<<20-row/500), true }, parquet.Encodings.RLEDict},
	{"new ones among old ones, in several pages", func(r *rand.Rand, row int) (string, bool) {
		if row%100 == 99 {
			return fmt.Sprintf("m%0150d", row), true
		}
		return strings.Repeat([]string{"a", "z"}[r.IntN(2)], 150), true
	}, parquet.Encodings.RLEDict},
	{"too many later", func(r *rand.Rand, row int) (string, bool) {
		if row < textGroup {
			return "same", true
		}
		return fmt.Sprintf("%0200d", r.Uint64()), r.IntN(5) > 0
	}, parquet.Encodings.Plain},
	{"long ones now and then", func(r *rand.Rand, row int) (string, bool) {
		if row%40 == 7 {
			return fmt.Sprintf("%04000d", row), true
		}
		return "short", r.IntN(4) > 0
	}, parquet.Encodings.Plain},
	{"unique", func(r *rand.Rand, _ int) (string, bool) { return fmt.Sprintf("%016x", r.Uint64()), true }, parquet.Encodings.Plain},
}

// TestTextColumns writes texts in batches that are slices of larger ones, and finds them again, with the bounds and nulls of each page and each column
// chunk.
func TestTextColumns(t *testing.T) {
	const rows = 3*textGroup + 777
	schema := &columns.Schema{}
	for _, c := range textCases {
		schema.Fields = append(schema.Fields, leaf(c.name, columns.String), leaf(c.name+" in bytes", columns.Binary))
	}
	schema.Fields = append(schema.Fields, leaf("row", columns.Long))
	b := columns.NewBuilder(schema)
	r := rand.New(rand.NewPCG(1, 2))
	want := make([][]*string, len(textCases))
	for row := range rows {
		for i, c := range textCases {
			if s, ok := c.text(r, row); ok {
				b.Columns()[2*i].AppendString(s)
				b.Columns()[2*i+1].AppendBytes([]byte(s))
				want[i] = append(want[i], &s)
				continue
			}
			if err := cmp.Or(b.AppendNull(2*i), b.AppendNull(2*i+1)); err != nil {
				t.Fatal(err)
			}
			want[i] = append(want[i], nil)
		}
		b.Columns()[2*len(textCases)].AppendInt64(int64(row))
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	rec := b.Record()
	var buf bytes.Buffer
	s, err := NewStream(&buf, Options{RowGroupRows: textGroup, RowGroupBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	for from := int64(0); from < rows; {
		to := min(rows, from+1+r.Int64N(3000))
		if err := s.Write(rec.NewSlice(from, to)); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := readBack(t, buf.Bytes())
	for row := range got {
		for i, c := range textCases {
			for _, have := range []any{got[row][c.name], asText(got[row][c.name+" in bytes"])} {
				if w := want[i][row]; w == nil && have != nil || w != nil && have != *w {
					t.Fatalf("%s, row %d: %v", c.name, row, have)
				}
			}
		}
	}
	if len(got) != rows || got[rows-1]["row"] != int64(rows-1) {
		t.Fatalf("%d rows of %d, the last of them %v", len(got), rows, got[len(got)-1])
	}
	pf, err := file.NewParquetReader(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	for i, c := range textCases {
		checkTextColumn(t, pf, 2*i, c, want[i])
	}
}

func asText(v any) any {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return v
}

// checkTextColumn compares what the file says of a column's row groups and pages with the values.
func checkTextColumn(t *testing.T, pf *file.Reader, column int, c textCase, values []*string) {
	t.Helper()
	pages := 0
	for g := range pf.NumRowGroups() {
		n := int(pf.RowGroup(g).NumRows())
		mine := values[:n]
		values = values[n:]
		chunk, err := pf.MetaData().RowGroup(g).ColumnChunk(column)
		if err != nil {
			t.Fatal(err)
		}
		if enc := chunk.Encodings(); len(values) == 0 && !slices.Contains(enc, c.encoding) {
			t.Errorf("%s: encoded as %v", c.name, enc)
		}
		stats, err := chunk.Statistics()
		if err != nil {
			t.Fatal(err)
		}
		lo, hi, nulls := boundsOf(mine)
		if stats.NullCount() != int64(nulls) || stats.HasMinMax() != (nulls < n) || string(stats.EncodeMin()) != lo || string(stats.EncodeMax()) != hi {
			t.Errorf("%s, row group %d: %d nulls, %q to %q; want %d, %q to %q", c.name, g, stats.NullCount(), stats.EncodeMin(), stats.EncodeMax(), nulls, lo, hi)
		}
		index, err := pf.GetPageIndexReader().RowGroup(g)
		if err != nil {
			t.Fatal(err)
		}
		places, err := index.GetOffsetIndex(column)
		if err != nil {
			t.Fatal(err)
		}
		bounds, err := index.GetColumnIndex(column)
		if err != nil {
			t.Fatal(err)
		}
		all := places.GetPageLocations()
		pages += len(all)
		for p := range all {
			to := n
			if p+1 < len(all) {
				to = int(all[p+1].FirstRowIndex)
			}
			lo, hi, nulls := boundsOf(mine[all[p].FirstRowIndex:to])
			if a, b, k := string(bounds.GetMinValues()[p]), string(bounds.GetMaxValues()[p]), bounds.GetNullCounts()[p]; a != lo || b != hi || k != int64(nulls) {
				t.Errorf("%s, row group %d, page %d: %d nulls, %q to %q; want %d, %q to %q", c.name, g, p, k, a, b, nulls, lo, hi)
			}
		}
	}
	if c.name == "few" && pages <= pf.NumRowGroups() {
		t.Errorf("%s: %d pages", c.name, pages)
	}
}

func boundsOf(values []*string) (lo, hi string, nulls int) {
	first := true
	for _, v := range values {
		switch {
		case v == nil:
			nulls++
		case first:
			lo, hi, first = *v, *v, false
		default:
			lo, hi = min(lo, *v), max(hi, *v)
		}
	}
	return lo, hi, nulls
}

// TestTextTable numbers values as a map does.
func TestTextTable(t *testing.T) {
	table, want := newTextTable(), map[string]int32{}
	r := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		v := strings.Repeat("v", r.IntN(3)) + fmt.Sprint(r.IntN(10_000))
		if r.IntN(100) == 0 {
			v = ""
		}
		n, isNew := table.number([]byte(v))
		old, known := want[v]
		if known == isNew || known && n != old || !known && n != int32(len(want)) {
			t.Fatalf("%q is %d, new %v; it was %d, known %v", v, n, isNew, old, known)
		}
		want[v] = n
		if string(table.value(n)) != v {
			t.Fatalf("value %d is %q, not %q", n, table.value(n), v)
		}
	}
	if table.size() != len(want) {
		t.Errorf("%d values, want %d", table.size(), len(want))
	}
}
