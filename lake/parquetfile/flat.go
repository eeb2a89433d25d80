package parquetfile

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// rowWriter encodes batches into one file.
type rowWriter interface {
	// NewBufferedRowGroupChecked ends the row group before, and begins one that takes any number of batches.
	NewBufferedRowGroupChecked() error
	// WriteBuffered adds a batch to the row group.
	WriteBuffered(rec arrow.RecordBatch) error
	// TotalCompressedBytes is what is encoded so far, in bytes.
	TotalCompressedBytes() int64
	// Close ends the file.
	Close() error
}

// newRowWriter starts a file of batches of a schema.
func newRowWriter(schema *arrow.Schema, w io.Writer, props *parquet.WriterProperties) (rowWriter, error) {
	if isFlat(schema) {
		return newFlatWriter(schema, w, props)
	}
	return pqarrow.NewFileWriter(schema, noClose{w}, props, pqarrow.DefaultWriterProps())
}

// isFlat reports whether no column has others in it.
func isFlat(schema *arrow.Schema) bool {
	for _, f := range schema.Fields() {
		switch f.Type.ID() {
		case arrow.STRUCT, arrow.LIST, arrow.MAP:
			return false
		}
	}
	return true
}

// flatWriter is a rowWriter for columns that have no others in them: whether a value is there is all that their levels say. It does what the library's
// writer does, but for the hashing of text columns with dictionaries (see textColumn), and without bitmaps for columns without nulls.
type flatWriter struct {
	ctx    context.Context
	schema *arrow.Schema
	file   *file.Writer
	group  file.BufferedRowGroupWriter
	text   []*textColumn // of the row group; nil for columns of other types
	ones   []int16       // levels of values that are there
	levels []int16       // of the column that is being written
}

func newFlatWriter(schema *arrow.Schema, w io.Writer, props *parquet.WriterProperties) (*flatWriter, error) {
	arrowProps := pqarrow.DefaultWriterProps()
	converted, err := pqarrow.ToParquet(schema, props, arrowProps)
	if err != nil {
		return nil, err
	}
	out, err := file.NewParquetWriterWithError(noClose{w}, converted.Root(), file.WithWriterProps(props))
	if err != nil {
		return nil, err
	}
	return &flatWriter{ctx: pqarrow.NewArrowWriteContext(context.Background(), &arrowProps), schema: schema, file: out}, nil
}

func (f *flatWriter) NewBufferedRowGroupChecked() (err error) {
	if err := f.endGroup(); err != nil {
		return err
	}
	if f.group, err = f.file.AppendBufferedRowGroupChecked(); err != nil {
		return err
	}
	f.text = make([]*textColumn, f.schema.NumFields())
	for i := range f.text {
		cw, err := f.group.Column(i)
		if err != nil {
			return err
		}
		f.text[i] = newTextColumn(f.ctx, cw)
	}
	return nil
}

func (f *flatWriter) endGroup() error {
	if f.group == nil {
		return nil
	}
	return f.group.Close()
}

func (f *flatWriter) WriteBuffered(rec arrow.RecordBatch) error {
	for i, field := range f.schema.Fields() {
		cw, err := f.group.Column(i)
		if err != nil {
			return err
		}
		a := rec.Column(i)
		var levels []int16
		if field.Nullable {
			levels = f.levelsOf(a)
		} else if a.NullN() > 0 {
			return fmt.Errorf("column %s has nulls, and must not", field.Name)
		}
		if f.text[i] != nil {
			err = f.text[i].write(a, levels)
		} else {
			err = pqarrow.WriteArrowToColumn(f.ctx, cw, a, levels, nil, field.Nullable)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", field.Name, err)
		}
	}
	return nil
}

// levelsOf are the definition levels of a column that may have nulls, valid until the next call.
func (f *flatWriter) levelsOf(a arrow.Array) []int16 {
	n := a.Len()
	for len(f.ones) < n {
		f.ones = append(f.ones, 1)
	}
	if a.NullN() == 0 {
		return f.ones[:n]
	}
	f.levels = append(f.levels[:0], f.ones[:n]...)
	for i := range f.levels {
		if a.IsNull(i) {
			f.levels[i] = 0
		}
	}
	return f.levels
}

func (f *flatWriter) TotalCompressedBytes() int64 { return f.file.TotalCompressedBytes() }

func (f *flatWriter) Close() error {
	if err := f.endGroup(); err != nil {
		return err
	}
	return f.file.Close()
}

// slice is rows of an array with their levels, which are nil for a column without nulls.
func slice(a arrow.Array, levels []int16, from, to int) (arrow.Array, []int16) {
	if levels != nil {
		levels = levels[from:to]
	}
	return array.NewSlice(a, int64(from), int64(to)), levels
}
