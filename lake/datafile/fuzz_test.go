package datafile

import (
	"bytes"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

// fuzzSchema has a column of each kind that flat files are read by.
var fuzzSchema = arrow.NewSchema([]arrow.Field{
	{Name: "n", Type: arrow.PrimitiveTypes.Int64},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
}, nil)

// fuzzFile is a small valid file.
func fuzzFile(f *testing.F, version parquet.DataPageVersion, dictionary bool) []byte {
	b := array.NewRecordBuilder(memory.DefaultAllocator, fuzzSchema)
	for i := range int64(40) {
		b.Field(0).(*array.Int64Builder).Append(i)
		if i%7 == 0 {
			b.Field(1).AppendNull()
			b.Field(2).AppendNull()
			continue
		}
		b.Field(1).(*array.StringBuilder).Append([]string{"a", "longer", ""}[i%3])
		b.Field(2).(*array.BooleanBuilder).Append(i%2 == 0)
	}
	var buf bytes.Buffer
	props := parquet.NewWriterProperties(parquet.WithDataPageVersion(version), parquet.WithDictionaryDefault(dictionary), parquet.WithDataPageSize(64), parquet.WithBatchSize(16))
	w, err := pqarrow.NewFileWriter(fuzzSchema, &buf, props, pqarrow.DefaultWriterProps())
	if err == nil {
		err = errors.Join(w.Write(b.NewRecordBatch()), w.Close())
	}
	if err != nil {
		f.Fatal(err)
	}
	return buf.Bytes()
}

// FuzzFlatFile reads damaged files: an error, or rows, and never more of them than the file says.
func FuzzFlatFile(f *testing.F) {
	for _, dictionary := range []bool{true, false} {
		f.Add(fuzzFile(f, parquet.DataPageV1, dictionary))
		f.Add(fuzzFile(f, parquet.DataPageV2, dictionary))
	}
	layout, err := NewLayout(table(delta.Field{Name: "n", Type: delta.Long}, field("s", delta.String), field("b", delta.Boolean)))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		store := object.NewMemory("t")
		if err := store.Put(t.Context(), "f", data); err != nil {
			t.Fatal(err)
		}
		file, err := Open(t.Context(), store, layout, &delta.Add{Path: "f"})
		if err != nil {
			return
		}
		defer file.Close()
		rows := int64(0)
		for rec, err := range file.AllBatches(t.Context(), 16) {
			if err != nil {
				return
			}
			if rows += rec.NumRows(); rows > 10_000 {
				return // a file may say that it has any number of rows
			}
		}
	})
}
