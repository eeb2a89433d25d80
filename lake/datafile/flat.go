package datafile

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// flatColumns finds the leaf columns of a file that has the layout's columns as they are, none of them with others in it: such a file is read value by
// value, without the library's readers of whole Arrow columns, whose making costs as much as a thousand rows. -1 stands for a column that the
// file lacks. False means that this file is read by those: its types or names differ, or are nested.
func (f *File) flatColumns() (leaves []int, ok bool) {
	if f.layout.byID {
		return nil, false
	}
	have := f.reader.MetaData().Schema
	for i := range f.layout.columns {
		c := &f.layout.columns[i]
		leaf := -1
		for n := 0; n < have.NumColumns() && leaf < 0; n++ {
			switch name := have.ColumnRoot(n).Name(); {
			case name == c.field.Name:
				leaf = n
			case strings.EqualFold(name, c.field.Name):
				return nil, false
			}
		}
		if len(c.inner) > 0 || leaf >= 0 && !isStoredAs(have.Column(leaf), c.field.Type) {
			return nil, false
		}
		leaves = append(leaves, leaf)
	}
	return leaves, true
}

// isStoredAs reports whether a file's column has the values of a type one by one, and says so.
func isStoredAs(c *schema.Column, want arrow.DataType) bool {
	if len(c.ColumnPath()) != 1 || c.MaxRepetitionLevel() > 0 {
		return false
	}
	logical := c.LogicalType()
	none := logical == nil || logical.Equals(schema.NoLogicalType{})
	is := func(physical parquet.Type, t schema.LogicalType) bool {
		return c.PhysicalType() == physical && logical != nil && logical.Equals(t)
	}
	plain := func(physical parquet.Type) bool { return c.PhysicalType() == physical && none }
	switch t := want.(type) {
	case *arrow.BooleanType:
		return plain(parquet.Types.Boolean)
	case *arrow.Int32Type:
		return plain(parquet.Types.Int32) || is(parquet.Types.Int32, schema.NewIntLogicalType(32, true))
	case *arrow.Int64Type:
		return plain(parquet.Types.Int64) || is(parquet.Types.Int64, schema.NewIntLogicalType(64, true))
	case *arrow.Float32Type:
		return plain(parquet.Types.Float)
	case *arrow.Float64Type:
		return plain(parquet.Types.Double)
	case *arrow.Date32Type:
		return is(parquet.Types.Int32, schema.DateLogicalType{})
	case *arrow.TimestampType:
		s, ok := logical.(schema.TimestampLogicalType)
		return ok && c.PhysicalType() == parquet.Types.Int64 && s.TimeUnit() == schema.TimeUnitMicros && s.IsAdjustedToUTC() == (t.TimeZone != "")
	case *arrow.StringType:
		return is(parquet.Types.ByteArray, schema.StringLogicalType{})
	case *arrow.BinaryType:
		return plain(parquet.Types.ByteArray)
	}
	return false
}

// flatBatches is AllBatches for a file with flat columns. No batch reaches over a row group's end.
func (f *File) flatBatches(ctx context.Context, leaves []int, size int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for i := range f.reader.NumRowGroups() {
			group, err := f.openFlat(i, leaves)
			for err == nil && group.left > 0 {
				var rec arrow.RecordBatch
				if err = ctx.Err(); err == nil {
					rec, err = f.nextFlat(group, min(size, group.left))
				}
				if err == nil && !yield(rec, nil) {
					group.close()
					return
				}
			}
			group.close()
			if err != nil {
				yield(nil, f.wrap(err))
				return
			}
		}
	}
}

// flatGroup is a row group that is being read.
type flatGroup struct {
	rows, left int64
	columns    []*flatReader // nil for those that the file lacks
	scratch    *flatScratch
}

// flatScratch is what the columns of a row group use one after the other.
type flatScratch struct {
	levels []int16
	texts  [textsAtOnce]parquet.ByteArray // that are in a reader's page
}

var flatScratches = sync.Pool{New: func() any { return new(flatScratch) }}

func (g *flatGroup) close() {
	for _, c := range g.columns {
		if c != nil {
			_ = c.chunk.Close() // it only gives memory back
		}
	}
	clear(g.scratch.texts[:])
	flatScratches.Put(g.scratch)
}

func (f *File) openFlat(i int, leaves []int) (g *flatGroup, err error) {
	defer f.rescue(&err)
	g = &flatGroup{columns: make([]*flatReader, len(leaves)), scratch: flatScratches.Get().(*flatScratch)} // to be closed whatever comes
	from := f.reader.RowGroup(i)
	g.rows, g.left = from.NumRows(), from.NumRows()
	for n, leaf := range leaves {
		if leaf < 0 {
			continue
		}
		meta, err := from.MetaData().ColumnChunk(leaf)
		if err != nil {
			return g, err
		}
		chunk, err := from.Column(leaf)
		if err != nil {
			return g, err
		}
		g.columns[n] = &flatReader{chunk: chunk, bytes: meta.TotalUncompressedSize(), optional: chunk.Descriptor().MaxDefinitionLevel() > 0, scratch: g.scratch}
	}
	return g, nil
}

func (f *File) nextFlat(g *flatGroup, n int64) (_ arrow.RecordBatch, err error) {
	defer f.rescue(&err)
	columns := make([]arrow.Array, len(g.columns))
	for i, r := range g.columns {
		c := &f.layout.columns[i]
		if r == nil {
			columns[i], err = missing(c, int(n))
		} else if columns[i], err = r.next(int(n), g.rows, c.field.Type); err == nil && !c.field.Nullable && columns[i].NullN() > 0 {
			err = errNotNull
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	g.left -= n
	return array.NewRecordBatch(f.layout.schema, columns, n), nil
}

// flatReader reads a column of a row group.
type flatReader struct {
	chunk    file.ColumnChunkReader
	bytes    int64 // that all of its values take
	optional bool
	scratch  *flatScratch

	// of the batch that is being read
	valid []byte // bits of the values that are there; nil as long as all are
	nulls int
}

const (
	textsAtOnce = 1024
	// mostReserved bounds what is reserved by what a file says of itself.
	mostReserved = 4 << 20
)

// next reads so many values; rows is how many the row group has.
func (r *flatReader) next(n int, rows int64, want arrow.DataType) (arrow.Array, error) {
	r.valid, r.nulls = nil, 0
	if len(r.scratch.levels) < n {
		r.scratch.levels = make([]int16, n)
	}
	var values []*memory.Buffer
	var err error
	switch c := r.chunk.(type) {
	case *file.BooleanColumnChunkReader:
		values, err = bitsOf(readValues(r, n, c.ReadBatchInPage))
	case *file.Int32ColumnChunkReader:
		values, err = bytesOf(arrow.Int32Traits.CastToBytes)(readValues(r, n, c.ReadBatchInPage))
	case *file.Int64ColumnChunkReader:
		values, err = bytesOf(arrow.Int64Traits.CastToBytes)(readValues(r, n, c.ReadBatchInPage))
	case *file.Float32ColumnChunkReader:
		values, err = bytesOf(arrow.Float32Traits.CastToBytes)(readValues(r, n, c.ReadBatchInPage))
	case *file.Float64ColumnChunkReader:
		values, err = bytesOf(arrow.Float64Traits.CastToBytes)(readValues(r, n, c.ReadBatchInPage))
	case *file.ByteArrayColumnChunkReader:
		values, err = r.texts(c, n, min(mostReserved, r.bytes/max(1, rows)*int64(n)))
	default:
		err = fmt.Errorf("values of %s", r.chunk.Type())
	}
	if err != nil {
		return nil, err
	}
	var valid *memory.Buffer
	if r.nulls > 0 {
		valid = memory.NewBufferBytes(r.valid)
	}
	data := array.NewData(want, n, append([]*memory.Buffer{valid}, values...), nil, r.nulls, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// definitions is where the levels of at most n values go: nil if the column has none.
func (r *flatReader) definitions(n int) []int16 {
	if !r.optional {
		return nil
	}
	return r.scratch.levels[:n]
}

// mark notes which of the values from a place on are there. It fails if the column ended too early.
func (r *flatReader) mark(at, total, present, n int) error {
	if total == 0 {
		if err := r.chunk.Err(); err != nil {
			return err
		}
		return fmt.Errorf("it ends %d values before the row group", n-at)
	}
	if r.valid == nil && present < total {
		r.valid = make([]byte, bitutil.BytesForBits(int64(n)))
		bitutil.SetBitsTo(r.valid, 0, int64(at), true)
	}
	switch {
	case present == total && r.valid != nil:
		bitutil.SetBitsTo(r.valid, int64(at), int64(total), true)
	case present < total:
		for i, level := range r.scratch.levels[:total] {
			if level > 0 {
				bitutil.SetBit(r.valid, at+i)
			}
		}
	}
	r.nulls += total - present
	return nil
}

// readValues reads n values of fixed width, with zeros for nulls.
func readValues[T any](r *flatReader, n int, read func(int64, []T, []int16, []int16) (int64, int, error)) ([]T, error) {
	out := make([]T, n)
	for at := 0; at < n; {
		total, present, err := read(int64(n-at), out[at:], r.definitions(n-at), nil)
		if err != nil {
			return nil, err
		}
		if err := r.mark(at, int(total), present, n); err != nil {
			return nil, err
		}
		// Values come without gaps: from the last on they move to their places.
		var zero T
		part := out[at : at+int(total)]
		for to, from := len(part)-1, present-1; from < to; to-- {
			if r.scratch.levels[to] > 0 {
				part[to] = part[from]
				from--
			} else {
				part[to] = zero
			}
		}
		at += int(total)
	}
	return out, nil
}

func bytesOf[T any](cast func([]T) []byte) func([]T, error) ([]*memory.Buffer, error) {
	return func(values []T, err error) ([]*memory.Buffer, error) {
		return []*memory.Buffer{memory.NewBufferBytes(cast(values))}, err
	}
}

func bitsOf(values []bool, err error) ([]*memory.Buffer, error) {
	bits := make([]byte, bitutil.BytesForBits(int64(len(values))))
	for i, v := range values {
		if v {
			bitutil.SetBit(bits, i)
		}
	}
	return []*memory.Buffer{memory.NewBufferBytes(bits)}, err
}

// texts reads n values of any length.
func (r *flatReader) texts(c *file.ByteArrayColumnChunkReader, n int, reserve int64) ([]*memory.Buffer, error) {
	offsets, data := make([]int32, 1, n+1), make([]byte, 0, reserve)
	values := r.scratch.texts[:]
	for at := 0; at < n; {
		k := min(n-at, textsAtOnce)
		total, present, err := c.ReadBatchInPage(int64(k), values, r.definitions(k), nil)
		if err != nil {
			return nil, err
		}
		if err := r.mark(at, int(total), present, n); err != nil {
			return nil, err
		}
		next := 0
		for i := range int(total) {
			if present == int(total) || r.scratch.levels[i] > 0 {
				data = append(data, values[next]...)
				next++
			}
			offsets = append(offsets, int32(len(data)))
		}
		if len(data) > math.MaxInt32 {
			return nil, fmt.Errorf("%d bytes in %d rows are more than a batch holds", len(data), at)
		}
		at += int(total)
	}
	return []*memory.Buffer{memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(data)}, nil
}
