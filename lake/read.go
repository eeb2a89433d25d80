package lake

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"time"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/datafile"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

// Row is a row of a table as plain Go values by column name; see columns.Value for what stands for what. Columns that a file
// lacks are nil.
type Row = map[string]any

// ReadRows reads all rows of a table's newest version, file by file in no particular order. It is for
// tests, tools and examples. Column mapping, widened types and deletion vectors are understood; types such as variant are refused.
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
		layout, err := datafile.NewLayout(md)
		if err != nil {
			yield(nil, fmt.Errorf("table %s: %w", place, err))
			return
		}
		for add, err := range snap.Files(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			for row, err := range readFile(ctx, store, layout, md, &add) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// readBatch is how many rows are decoded at once.
const readBatch = 4096

// readFile yields the rows of one data file, with its partition values.
func readFile(ctx context.Context, store object.Store, l *datafile.Layout, md *delta.Metadata, add *delta.Add) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		fail := func(err error) { yield(nil, fmt.Errorf("data file %s: %w", add.Path, err)) }
		fixed, err := partitionRow(md, add)
		if err != nil {
			fail(err)
			return
		}
		f, err := datafile.Open(ctx, store, l, add)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		for rec, err := range f.Batches(ctx, readBatch) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range int(rec.NumRows()) {
				row := l.Row(rec, i)
				maps.Copy(row, fixed)
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// partitionRow reads the partition values of a file in the form of columns.Value, and what is in no file: columns of nulls only.
func partitionRow(md *delta.Metadata, add *delta.Add) (Row, error) {
	row := Row{}
	for _, name := range md.PartitionColumns {
		f, _ := md.Schema.Field(name)
		v, err := delta.ParsePartition(f.Type, md.PartitionValue(add, name))
		if err != nil {
			return nil, fmt.Errorf("partition column %s: %w", name, err)
		}
		row[name] = plainPartition(f.Type.(delta.Primitive), v)
	}
	for _, f := range md.Schema.Fields {
		if f.Type == delta.Void {
			row[f.Name] = nil
		}
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
