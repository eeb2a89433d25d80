package parquetfile

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Stream writes one file batch by batch, for rows that don't fit into memory at once. It is used by one goroutine.
//
// What can't be known before the end is decided otherwise than Write does: dictionaries by the first batch, and columns of floats have no
// bounds in the file's own statistics, since a NaN may yet come.
type Stream struct {
	w      io.Writer
	opts   Options
	fw     *pqarrow.FileWriter // nil before the first batch
	leaves []Leaf
	rows   int64
}

// NewStream starts a file. Nothing is written before the first batch.
func NewStream(w io.Writer, opts Options) (*Stream, error) {
	opts, err := opts.Normalize()
	return &Stream{w: w, opts: opts}, err
}

// Write adds a batch. All batches have the schema of the first; none is kept.
func (s *Stream) Write(rec arrow.RecordBatch) (err error) {
	defer func() {
		if p := recover(); p != nil { // see Write
			err = fmt.Errorf("write a Parquet file: %v", p)
		}
	}()
	leaves := Measure(rec)
	if s.fw == nil {
		for i := range leaves {
			keepBounds(&leaves[i])
		}
		s.leaves = leaves
		if s.fw, err = pqarrow.NewFileWriter(rec.Schema(), noClose{s.w}, properties(withoutFloats(leaves), s.opts), pqarrow.DefaultWriterProps()); err != nil {
			return fmt.Errorf("start a Parquet file: %w", err)
		}
	} else {
		for i := range leaves {
			s.leaves[i].add(&leaves[i])
		}
	}
	s.rows += rec.NumRows()
	if err := s.fw.WriteBuffered(rec); err != nil {
		return fmt.Errorf("write a Parquet file: %w", err)
	}
	return nil
}

// Rows is how many rows were written so far.
func (s *Stream) Rows() int64 { return s.rows }

// Bytes is about how many bytes were written so far.
func (s *Stream) Bytes() int64 {
	if s.fw == nil {
		return 0
	}
	return s.fw.TotalBytesWritten() + s.fw.RowGroupTotalCompressedBytes()
}

// Close ends the file, which must have a batch, and tells what is in it. The writer below stays open.
func (s *Stream) Close() ([]Leaf, error) {
	if s.fw == nil {
		return nil, fmt.Errorf("end a Parquet file: it has no rows")
	}
	if err := s.fw.Close(); err != nil {
		return nil, fmt.Errorf("end a Parquet file: %w", err)
	}
	return s.leaves, nil
}

// withoutFloats marks the columns whose footers get no bounds.
func withoutFloats(leaves []Leaf) []Leaf {
	out := slices.Clone(leaves)
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

// add sums up one more batch. Distinct becomes the larger of both: nobody knows how many values they have in common.
func (l *Leaf) add(o *Leaf) {
	unbound := l.Rows > l.Nulls && !l.HasBounds || o.Rows > o.Nulls && !o.HasBounds // values of which one side has no true bounds
	switch {
	case unbound:
		l.HasBounds = false
	case !o.HasBounds:
	case !l.HasBounds:
		l.HasBounds, l.Min, l.Max = true, o.Min, o.Max
		keepBounds(l)
	default:
		if less(l.Type, o.Min, l.Min) {
			l.Min = o.Min
			l.Min.Bytes = bytes.Clone(o.Min.Bytes)
		}
		if less(l.Type, l.Max, o.Max) {
			l.Max = o.Max
			l.Max.Bytes = bytes.Clone(o.Max.Bytes)
		}
	}
	l.Rows += o.Rows
	l.Nulls += o.Nulls
	l.HasNaN = l.HasNaN || o.HasNaN
	l.Distinct = max(l.Distinct, o.Distinct)
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
