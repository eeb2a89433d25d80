package parquetfile

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Stream writes one file batch by batch, for rows that don't fit into memory at once. It gathers batches to row groups, and holds one row group, and the one
// before it until that is known to be not the only one. It is used by one goroutine.
//
// A file of one row group is what Write makes of it. In larger ones dictionaries are decided on by the first row group, and columns of
// floats have no bounds in the file's own statistics, since a NaN may yet come.
type Stream struct {
	out  io.Writer
	opts Options

	pending      []arrow.RecordBatch // of the next row group
	pendingRows  int64
	pendingBytes int64

	first  arrow.RecordBatch   // the first row group, while it is the only one
	file   *pqarrow.FileWriter // nil before the second
	leaves []Leaf              // of the row groups that are complete
	rows   int64
}

// NewStream starts a file. Nothing is written before the first row group is complete.
func NewStream(w io.Writer, opts Options) (*Stream, error) {
	opts, err := opts.Normalize()
	return &Stream{out: w, opts: opts}, err
}

// Write adds a batch. All batches have the schema of the first. The batch's memory is kept until its row group is written: who reuses it after
// a Release must have it on another reference.
func (s *Stream) Write(rec arrow.RecordBatch) error {
	if rec.NumRows() == 0 {
		return nil
	}
	rec.Retain()
	s.pending = append(s.pending, rec)
	s.rows += rec.NumRows()
	s.pendingRows += rec.NumRows()
	s.pendingBytes += MemorySize(rec)
	if s.pendingRows >= s.opts.RowGroupRows || s.pendingBytes >= s.opts.RowGroupBytes {
		return s.flush()
	}
	return nil
}

// Rows is how many rows were written so far.
func (s *Stream) Rows() int64 { return s.rows }

// Pending is about how much memory the rows take that are held and not yet written.
func (s *Stream) Pending() int64 {
	if s.first != nil {
		return s.pendingBytes + MemorySize(s.first)
	}
	return s.pendingBytes
}

// flush makes a row group of what is pending.
func (s *Stream) flush() error {
	rec, err := Join(s.pending)
	if err != nil {
		return err
	}
	s.pending, s.pendingRows, s.pendingBytes = nil, 0, 0
	leaves := Measure(rec)
	for i := range leaves {
		keepBounds(&leaves[i])
	}
	if s.leaves == nil {
		s.leaves, s.first = leaves, rec
		return nil
	}
	if s.file == nil {
		if err := s.start(); err != nil {
			return err
		}
	}
	for i := range s.leaves {
		s.leaves[i].add(&leaves[i])
	}
	return s.group(rec)
}

// start writes the first row group of several.
func (s *Stream) start() (err error) {
	if s.file, err = pqarrow.NewFileWriter(s.first.Schema(), noClose{s.out}, properties(withoutFloats(s.leaves), s.whole()), pqarrow.DefaultWriterProps()); err != nil {
		return fmt.Errorf("start a Parquet file: %w", err)
	}
	err, s.first = s.group(s.first), nil
	return err
}

// whole are the options by which a row group is not divided again.
func (s *Stream) whole() Options {
	o := s.opts
	o.RowGroupRows = math.MaxInt32
	return o
}

func (s *Stream) group(rec arrow.RecordBatch) (err error) {
	defer rescue(&err)
	if err := s.file.Write(rec); err != nil {
		return fmt.Errorf("write a Parquet file: %w", err)
	}
	return nil
}

// Close ends the file, which must have a row, and tells what is in it; Distinct is known only if there was one row group. The writer below
// stays open.
func (s *Stream) Close() (_ []Leaf, err error) {
	defer rescue(&err)
	if s.pendingRows > 0 {
		if err := s.flush(); err != nil {
			return nil, err
		}
	}
	switch {
	case s.leaves == nil:
		return nil, fmt.Errorf("end a Parquet file: it has no rows")
	case s.file == nil:
		return s.leaves, Write(s.out, s.first, s.leaves, s.whole())
	}
	if err := s.file.Close(); err != nil {
		return nil, fmt.Errorf("end a Parquet file: %w", err)
	}
	return s.leaves, nil
}

// Join makes one batch of several, of which there is at least one.
func Join(batches []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(batches) == 1 {
		return batches[0], nil
	}
	schema := batches[0].Schema()
	columns := make([]arrow.Array, schema.NumFields())
	var rows int64
	for _, b := range batches {
		rows += b.NumRows()
	}
	for i := range columns {
		parts := make([]arrow.Array, len(batches))
		for n, b := range batches {
			parts[n] = b.Column(i)
		}
		var err error
		if columns[i], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("join batches: %w", err)
		}
	}
	return array.NewRecordBatch(schema, columns, rows), nil
}

// MemorySize is about how much memory the rows of a batch take.
func MemorySize(rec arrow.RecordBatch) (n int64) {
	for _, c := range rec.Columns() {
		n += int64(c.Data().SizeInBytes())
	}
	return n
}

// withoutFloats marks the columns whose footers get no bounds.
func withoutFloats(leaves []Leaf) []Leaf {
	out := append([]Leaf(nil), leaves...)
	for i := range out {
		switch out[i].Type.(type) {
		case *arrow.Float32Type, *arrow.Float64Type:
			out[i].HasNaN = true
		}
	}
	return out
}

// keepBounds makes bounds outlive their batch.
func keepBounds(l *Leaf) {
	l.Min.Bytes, l.Max.Bytes = bytes.Clone(l.Min.Bytes), bytes.Clone(l.Max.Bytes)
}

// add sums up one more row group.
func (l *Leaf) add(o *Leaf) {
	unbound := l.Rows > l.Nulls && !l.HasBounds || o.Rows > o.Nulls && !o.HasBounds // values of which one side has no true bounds
	switch {
	case unbound:
		l.HasBounds = false
	case !o.HasBounds:
	case !l.HasBounds:
		l.HasBounds, l.Min, l.Max = true, o.Min, o.Max
	default:
		if less(l.Type, o.Min, l.Min) {
			l.Min = o.Min
		}
		if less(l.Type, l.Max, o.Max) {
			l.Max = o.Max
		}
	}
	l.Rows += o.Rows
	l.Nulls += o.Nulls
	l.HasNaN = l.HasNaN || o.HasNaN
	l.Distinct = 0 // nobody knows how many values they have in common
}

// less compares two bounds of one type.
func less(t arrow.DataType, a, b Value) bool {
	switch t.(type) {
	case *arrow.Float32Type, *arrow.Float64Type:
		return a.Float < b.Float
	case *arrow.StringType:
		return bytes.Compare(a.Bytes, b.Bytes) < 0
	case *arrow.Decimal128Type:
		return a.Decimal.Less(b.Decimal)
	}
	return a.Int < b.Int
}
