package datafile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

// File is one open data file. It is used by one goroutine, and closed by who opened it.
type File struct {
	name   string
	source *object.Reader
	reader *file.Reader
	layout *Layout
	// deleted are the rows that the file's deletion vector names, counted from 0; nil: none.
	deleted *roaring.Bitmap
}

// Open opens a file that an add action names, and reads its deletion vector.
func Open(ctx context.Context, store object.Store, l *Layout, add *delta.Add) (_ *File, err error) {
	name, err := add.Name()
	if err != nil {
		return nil, err
	}
	f := &File{name: name, layout: l}
	defer f.rescue(&err)
	if f.source, err = object.OpenReader(ctx, store, name, add.Size); err != nil {
		return nil, fmt.Errorf("data file %s: %w", name, err)
	}
	if add.DeletionVector != nil {
		if f.deleted, err = delta.DeletedRows(ctx, store, add.DeletionVector); err != nil {
			return nil, fmt.Errorf("data file %s: %w", name, err)
		}
	}
	if f.reader, err = file.NewParquetReader(f.source, file.WithReadProps(parquet.NewReaderProperties(pageBuffers{}))); err != nil {
		return nil, f.wrap(err)
	}
	return f, nil
}

// rescue turns panics of the Parquet library, which come from damaged files, into errors.
func (f *File) rescue(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("data file %s: parquet: %v", f.name, p)
	}
}

func (f *File) wrap(err error) error {
	if failed := f.source.Err(); failed != nil {
		err = errors.Join(failed, err)
	}
	return fmt.Errorf("data file %s: %w", f.name, err)
}

// Rows is the number of rows in the file, those that a deletion vector names among them.
func (f *File) Rows() int64 { return f.reader.NumRows() }

// Deleted are the rows that the file's deletion vector names, counted from 0. It isn't to be changed.
func (f *File) Deleted() *roaring.Bitmap {
	if f.deleted == nil {
		return roaring.New()
	}
	return f.deleted
}

// Close ends the reading.
func (f *File) Close() error { return f.reader.Close() }

// Batches yields the rows in their order, but for those that the file's deletion vector names, as batches of at most size rows in the layout's
// columns (Layout.Arrow). A batch is valid until the next one is asked for; who keeps it longer calls Retain.
func (f *File) Batches(ctx context.Context, size int64) iter.Seq2[arrow.RecordBatch, error] {
	if f.deleted == nil {
		return f.AllBatches(ctx, size)
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		first := int64(0)
		for rec, err := range f.AllBatches(ctx, size) {
			n := int64(0)
			if err == nil {
				n = rec.NumRows()
				rec, err = live(ctx, rec, first, f.deleted)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			first += n
			if rec.NumRows() > 0 && !yield(rec, nil) {
				return
			}
		}
	}
}

// live drops deleted rows from a batch whose first row has the given place in the file.
func live(ctx context.Context, rec arrow.RecordBatch, first int64, deleted *roaring.Bitmap) (arrow.RecordBatch, error) {
	keep := array.NewBooleanBuilder(memory.DefaultAllocator)
	all := true
	for i := range rec.NumRows() {
		gone := deleted.Contains(uint32(first + i))
		keep.Append(!gone)
		all = all && !gone
	}
	if all {
		return rec, nil
	}
	return compute.FilterRecordBatch(ctx, rec, keep.NewArray(), compute.DefaultFilterOptions())
}

// AllBatches is Batches with the deleted rows, so that a row's place in the file is its place in the sequence.
func (f *File) AllBatches(ctx context.Context, size int64) iter.Seq2[arrow.RecordBatch, error] {
	if leaves, ok := f.flatColumns(); ok {
		return f.flatBatches(ctx, leaves, size)
	}
	return f.arrowBatches(ctx, size)
}

// arrowBatches is AllBatches for any file.
func (f *File) arrowBatches(ctx context.Context, size int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		rows, err := f.records(ctx, size)
		if err != nil {
			yield(nil, f.wrap(err))
			return
		}
		defer rows.Release()
		for {
			rec, err := f.next(rows)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, f.wrap(err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func (f *File) records(ctx context.Context, size int64) (_ pqarrow.RecordReader, err error) {
	defer f.rescue(&err)
	fr, err := pqarrow.NewFileReader(f.reader, pqarrow.ArrowReadProperties{BatchSize: size, PreAllocBinaryData: true}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	return fr.GetRecordReader(ctx, f.wanted(), nil)
}

// wanted lists the file's leaf columns that belong to the layout's columns; nil for all, where they can't be told by name or none is there.
func (f *File) wanted() (out []int) {
	if f.layout.byID {
		return nil
	}
	schema := f.reader.MetaData().Schema
	for i := range schema.NumColumns() {
		name := schema.ColumnRoot(i).Name()
		if slices.ContainsFunc(f.layout.columns, func(c column) bool { return strings.EqualFold(c.field.Name, name) }) {
			out = append(out, i)
		}
	}
	return out
}

func (f *File) next(rows pqarrow.RecordReader) (_ arrow.RecordBatch, err error) {
	defer f.rescue(&err)
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	return f.layout.conform(rows.RecordBatch())
}

// FromNames brings rows that were made for the table, by the names of its schema, into the layout's columns, as they are to be written.
func (l *Layout) FromNames(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	by := *l
	by.byID, by.byName = false, true
	return by.conform(rec)
}

// conform brings a batch as a file has it into the layout's columns.
func (l *Layout) conform(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	have := rec.Schema().Fields()
	if l.byID && rec.NumCols() > 0 && !hasIDs(have) {
		return nil, errors.New("its columns have no ids, by which the table finds them (column mapping mode id)")
	}
	out := make([]arrow.Array, len(l.columns))
	for i := range l.columns {
		c := &l.columns[i]
		var err error
		if at := l.find(have, c); at >= 0 {
			out[i], err = l.fit(rec.Column(at), c)
		} else {
			out[i], err = missing(c, int(rec.NumRows()))
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return array.NewRecordBatch(l.schema, out, rec.NumRows()), nil
}
