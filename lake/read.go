package lake

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/big"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

// Row is a row of a table as plain Go values by column name; see columns.Value for what stands for what. Columns that a file
// lacks are nil.
type Row = map[string]any

// ReadRows reads all rows of a table's newest version, file by file in no particular order. It holds one data file in memory. It
// is for tests, tools and examples: tables with deletion vectors or column mapping, which this package never writes, are refused.
func ReadRows(ctx context.Context, place string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		store, err := openToRead(ctx, place)
		if err != nil {
			yield(nil, err)
			return
		}
		for row, err := range readStore(ctx, store, place) {
			if !yield(row, err) {
				return
			}
		}
	}
}

func readStore(ctx context.Context, store object.Store, place string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		t, err := delta.Open(ctx, store, delta.Options{})
		if err != nil {
			yield(nil, err)
			return
		}
		snap, err := t.Snapshot(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		md := snap.Head.Metadata
		if mode := md.Configuration["delta.columnMapping.mode"]; mode != "" && mode != "none" {
			yield(nil, unreadable(place, "column mapping"))
			return
		}
		for add, err := range snap.Files(ctx) {
			if err == nil && add.DeletionVector != nil {
				err = unreadable(place, "deletion vectors")
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for row, err := range readFile(ctx, store, md, &add) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// readFile yields the rows of one data file, with its partition values.
func readFile(ctx context.Context, store object.Store, md *delta.Metadata, add *delta.Add) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		fail := func(err error) { yield(nil, fmt.Errorf("data file %s: %w", add.Path, err)) }
		fixed, err := partitionRow(md, add)
		if err != nil {
			fail(err)
			return
		}
		name, err := add.Name()
		if err != nil {
			fail(err)
			return
		}
		data, err := store.Get(ctx, name)
		if err != nil {
			fail(err)
			return
		}
		pf, err := file.NewParquetReader(bytes.NewReader(data))
		if err != nil {
			fail(err)
			return
		}
		defer pf.Close()
		fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: 4096}, memory.DefaultAllocator)
		if err != nil {
			fail(err)
			return
		}
		rr, err := fr.GetRecordReader(ctx, nil, nil)
		if err != nil {
			fail(err)
			return
		}
		defer rr.Release()
		for rr.Next() {
			if !yieldRows(rr.RecordBatch(), md, fixed, yield) {
				return
			}
		}
		if err := rr.Err(); err != nil {
			fail(err)
		}
	}
}

func yieldRows(rec arrow.RecordBatch, md *delta.Metadata, fixed Row, yield func(Row, error) bool) bool {
	places := make([]int, len(md.Schema.Fields))
	for i, f := range md.Schema.Fields {
		places[i] = slices.IndexFunc(rec.Schema().Fields(), func(a arrow.Field) bool { return a.Name == f.Name })
	}
	for n := range int(rec.NumRows()) {
		row := make(Row, len(places))
		for i, f := range md.Schema.Fields {
			v, isFixed := fixed[f.Name]
			switch {
			case isFixed:
				row[f.Name] = v
			case places[i] >= 0:
				row[f.Name] = conform(f.Type, columns.Value(rec.Column(places[i]), n))
			default:
				row[f.Name] = nil
			}
		}
		if !yield(row, nil) {
			return false
		}
	}
	return true
}

// conform adds the members of structs that a file from before a change of schema lacks.
func conform(t delta.Type, v any) any {
	switch t := t.(type) {
	case *delta.StructType:
		m, ok := v.(map[string]any)
		if !ok {
			return v
		}
		for _, f := range t.Fields {
			m[f.Name] = conform(f.Type, m[f.Name])
		}
	case *delta.ArrayType:
		l, _ := v.([]any)
		for i := range l {
			l[i] = conform(t.Element, l[i])
		}
	case *delta.MapType:
		m, _ := v.(map[string]any)
		for k := range m {
			m[k] = conform(t.Value, m[k])
		}
	}
	return v
}

// partitionRow reads the partition values of a file in the form of columns.Value.
func partitionRow(md *delta.Metadata, add *delta.Add) (Row, error) {
	row := Row{}
	for _, name := range md.PartitionColumns {
		f, _ := md.Schema.Field(name)
		v, err := delta.ParsePartition(f.Type, add.PartitionValues[name])
		if err != nil {
			return nil, fmt.Errorf("partition column %s: %w", name, err)
		}
		row[name] = plainPartition(f.Type.(delta.Primitive), v)
	}
	return row, nil
}

func plainPartition(t delta.Primitive, v any) any {
	switch x := v.(type) {
	case int64:
		switch t {
		case delta.Byte:
			return int8(x)
		case delta.Short:
			return int16(x)
		case delta.Integer:
			return int32(x)
		case delta.Date:
			return columns.Day(x)
		case delta.Timestamp, delta.TimestampNTZ:
			return time.UnixMicro(x).UTC()
		}
	case float64:
		if t == delta.Float {
			return float32(x)
		}
	case *big.Int:
		_, scale, _ := t.DecimalParts()
		return new(big.Rat).SetFrac(x, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale)
	}
	return v
}
