package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

var flatTypes = []struct {
	arrow arrow.DataType
	delta delta.Primitive
	put   func(b array.Builder, n int64)
}{
	{arrow.FixedWidthTypes.Boolean, delta.Boolean, func(b array.Builder, n int64) { b.(*array.BooleanBuilder).Append(n&1 > 0) }},
	{arrow.PrimitiveTypes.Int32, delta.Integer, func(b array.Builder, n int64) { b.(*array.Int32Builder).Append(int32(n)) }},
	{arrow.PrimitiveTypes.Int64, delta.Long, func(b array.Builder, n int64) { b.(*array.Int64Builder).Append(n) }},
	{arrow.PrimitiveTypes.Float32, delta.Float, func(b array.Builder, n int64) { b.(*array.Float32Builder).Append(float32(n) / 2) }},
	{arrow.PrimitiveTypes.Float64, delta.Double, func(b array.Builder, n int64) { b.(*array.Float64Builder).Append(float64(n) / 2) }},
	{arrow.FixedWidthTypes.Date32, delta.Date, func(b array.Builder, n int64) { b.(*array.Date32Builder).Append(arrow.Date32(n)) }},
	{timestampUTC, delta.Timestamp, func(b array.Builder, n int64) { b.(*array.TimestampBuilder).Append(arrow.Timestamp(n)) }},
	{timestampNTZ, delta.TimestampNTZ, func(b array.Builder, n int64) { b.(*array.TimestampBuilder).Append(arrow.Timestamp(n)) }},
	{arrow.BinaryTypes.String, delta.String, func(b array.Builder, n int64) { b.(*array.StringBuilder).Append(fmt.Sprintf("%*dé", n%30, n)) }},
	{arrow.BinaryTypes.Binary, delta.Binary, func(b array.Builder, n int64) {
		b.(*array.BinaryBuilder).Append(bytes.Repeat([]byte{byte(n)}, int(n%9)))
	}},
}

// TestFlatFiles reads files of flat columns value by value: the rows are those that the library's reader of Arrow columns finds, whatever the pages,
// encodings and row groups, and wherever batches end.
func TestFlatFiles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		md := table()
		var fields []arrow.Field
		spread := rapid.SampledFrom([]int64{3, 1 << 20}).Draw(rt, "spread")
		for i := range rapid.IntRange(1, 4).Draw(rt, "columns") {
			ty := rapid.SampledFrom(flatTypes).Draw(rt, "type")
			name := fmt.Sprint("c", i)
			md.Schema.Fields = append(md.Schema.Fields, field(name, ty.delta))
			if i > 0 && rapid.IntRange(0, 4).Draw(rt, "missing") == 0 {
				continue
			}
			fields = append(fields, arrow.Field{Name: name, Type: ty.arrow, Nullable: rapid.IntRange(0, 2).Draw(rt, "nullable") > 0})
		}
		schema := arrow.NewSchema(fields, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		rows := rapid.IntRange(1, 3000).Draw(rt, "rows")
		seed := rapid.Uint64().Draw(rt, "seed")
		nulls := rapid.SampledFrom([]uint64{2, 10, 500}).Draw(rt, "nulls") // one of so many
		for i, f := range fields {
			for range rows {
				seed = seed*6364136223846793005 + 1442695040888963407
				if v := seed >> 33; f.Nullable && v%nulls == 0 {
					b.Field(i).AppendNull()
				} else {
					flatType(f.Type)(b.Field(i), int64(v)%spread)
				}
			}
		}
		var buf bytes.Buffer
		props := parquet.NewWriterProperties(parquet.WithDictionaryDefault(rapid.Bool().Draw(rt, "dictionary")),
			parquet.WithDataPageSize(rapid.SampledFrom([]int64{200, 4000, 1 << 20}).Draw(rt, "page")), parquet.WithBatchSize(64),
			parquet.WithDataPageVersion(rapid.SampledFrom([]parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2}).Draw(rt, "version")),
			parquet.WithMaxRowGroupLength(rapid.SampledFrom([]int64{700, 1 << 20}).Draw(rt, "group")), parquet.WithCompression(compress.Codecs.Snappy))
		w, err := pqarrow.NewFileWriter(schema, &buf, props, pqarrow.DefaultWriterProps())
		if err == nil {
			err = errors.Join(w.Write(b.NewRecordBatch()), w.Close())
		}
		store := object.NewMemory("t")
		if err = errors.Join(err, store.Put(t.Context(), "f", buf.Bytes())); err != nil {
			rt.Fatal(err)
		}
		l, err := NewLayout(md)
		if err != nil {
			rt.Fatal(err)
		}
		f, err := Open(t.Context(), store, l, &delta.Add{Path: "f"})
		if err != nil {
			rt.Fatal(err)
		}
		defer f.Close()
		leaves, ok := f.flatColumns()
		if !ok {
			rt.Fatalf("not taken for flat: %s", schema)
		}
		size := rapid.Int64Range(1, 4000).Draw(rt, "batch")
		got, want := rowsOf(rt, l, f.flatBatches(t.Context(), leaves, size)), rowsOf(rt, l, f.arrowBatches(t.Context(), size))
		if len(got) != rows || len(want) != rows {
			rt.Fatalf("%d rows, the library has %d, and there are %d", len(got), len(want), rows)
		}
		for i := range got {
			if got[i] != want[i] {
				rt.Fatalf("row %d is %s, want %s", i, got[i], want[i])
			}
		}
	})
}

func flatType(t arrow.DataType) func(array.Builder, int64) {
	for _, f := range flatTypes {
		if arrow.TypeEqual(f.arrow, t) {
			return f.put
		}
	}
	return nil
}

func rowsOf(rt *rapid.T, l *Layout, batches iter.Seq2[arrow.RecordBatch, error]) (out []string) {
	for rec, err := range batches {
		if err != nil {
			rt.Fatal(err)
		}
		for i := range int(rec.NumRows()) {
			out = append(out, fmt.Sprint(l.Row(rec, i)))
		}
	}
	return out
}

// TestFlatRefused: a NOT NULL column of a file that has nulls there, or lacks it, is an error.
func TestFlatRefused(t *testing.T) {
	store := object.NewMemory("t")
	writeJSON(t, store, "f", arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true}}, nil), `[{"a":"x"},{"a":null},{"a":"z"}]`)
	for _, name := range []string{"a", "b"} {
		strict := delta.Field{Name: name, Type: delta.String}
		if _, err := read(t, store, "f", table(strict)); !errors.Is(err, errNotNull) {
			t.Errorf("column %s: %v", name, err)
		}
	}
}
