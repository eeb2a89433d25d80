package parquetfile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Stream writes one file batch by batch, for rows that don't fit into memory at once. Of a row group it holds what is encoded and compressed, and up to
// chunkBytes of rows that aren't yet. It is used by one goroutine.
//
// A file of few rows, or of one batch, is what Write makes of it. In larger ones dictionaries are decided on by the first rows, and columns of
// floats have no bounds in the file's own statistics, since a NaN may yet come.
type Stream struct {
	out     *bufio.Writer
	written int64 // to out
	opts    Options

	pending      []arrow.RecordBatch // not encoded yet
	pendingRows  int64
	pendingBytes int64

	file       rowWriter // nil as long as all rows are pending
	groupRows  int64     // of the row group that is being written
	groupBytes int64     // what its rows took in memory
	endedBytes int64     // what those of row groups before it took in memory
	leaves     []Leaf    // of the rows that are encoded
	rows       int64
}

const (
	// firstBytes is how much of a file's rows is looked at before it is decided which columns get dictionaries.
	firstBytes = 8 << 20
	// Rows are encoded when there are so many of them: each time costs each column some microseconds.
	chunkRows  = 4096
	chunkBytes = 1 << 20
	// writeBuffer is how much of a file is gathered before it is handed to the writer below.
	writeBuffer = 256 << 10
)

// NewStream starts a file. Nothing is written before there are enough rows to tell how.
func NewStream(w io.Writer, opts Options) (*Stream, error) {
	opts, err := opts.Normalize()
	return &Stream{out: bufio.NewWriterSize(w, writeBuffer), opts: opts}, err
}

// output is what the encoder writes to: it counts, and keeps the writer below from being closed, which its owner does.
type output struct{ s *Stream }

func (o output) Write(p []byte) (int, error) {
	n, err := o.s.out.Write(p)
	o.s.written += int64(n)
	return n, err
}

// Write adds a batch. All batches have the schema of the first. The batch's memory may be kept until Close: who reuses it after a Release must
// have it on another reference.
func (s *Stream) Write(rec arrow.RecordBatch) error {
	if rec.NumRows() == 0 {
		return nil
	}
	if s.file == nil && s.pends(s.opts.RowGroupRows, firstBytes) { // so this is not the only row group
		if err := s.start(); err != nil {
			return err
		}
	}
	rec.Retain()
	s.pending = append(s.pending, rec)
	s.rows += rec.NumRows()
	s.pendingRows += rec.NumRows()
	s.pendingBytes += MemorySize(rec)
	if s.file != nil && s.pends(chunkRows, chunkBytes) {
		return s.encode()
	}
	return nil
}

// pends reports whether there are so many rows that aren't encoded, or as many as a row group has.
func (s *Stream) pends(rows, bytes int64) bool {
	return s.pendingRows >= min(rows, s.opts.RowGroupRows) || s.pendingBytes >= min(bytes, s.opts.RowGroupBytes)
}

// Rows is how many rows were written so far.
func (s *Stream) Rows() int64 { return s.rows }

// Size is about how many bytes the rows so far have in the file; after Close exactly what the file has. Rows of the open row group, and pending
// ones, are taken to be like those before them; until a row group has ended, only what is encoded in pages is counted.
func (s *Stream) Size() int64 {
	switch {
	case s.file == nil:
		return s.written
	case s.endedBytes == 0:
		return s.file.TotalCompressedBytes()
	}
	perByte := float64(s.written) / float64(s.endedBytes)
	return s.written + int64(perByte*float64(s.groupBytes+s.pendingBytes))
}

// take returns the rows that aren't encoded as one batch.
func (s *Stream) take() (arrow.RecordBatch, error) {
	rec, err := Join(s.pending)
	s.pending = nil
	return rec, err
}

// start begins the file with the first rows.
func (s *Stream) start() error {
	rec, err := s.take()
	if err != nil {
		return err
	}
	leaves := measureFor(rec, s.groupSize())
	if s.file, err = newRowWriter(rec.Schema(), output{s}, properties(withoutFloats(leaves), s.whole())); err != nil {
		return fmt.Errorf("start a Parquet file: %w", err)
	}
	return s.add(rec, leaves)
}

// groupSize is how many rows like those that are pending make a row group.
func (s *Stream) groupSize() int64 {
	n := float64(s.pendingRows) / float64(max(1, s.pendingBytes)) * float64(s.opts.RowGroupBytes)
	return max(s.pendingRows, min(s.opts.RowGroupRows, int64(n)))
}

// encode encodes what is pending.
func (s *Stream) encode() error {
	rec, err := s.take()
	if err != nil {
		return err
	}
	return s.add(rec, measureFor(rec, 0))
}

// add encodes rows that were pending as part of a row group.
func (s *Stream) add(rec arrow.RecordBatch, leaves []Leaf) (err error) {
	defer rescue(&err)
	for i := range leaves {
		keepBounds(&leaves[i])
	}
	if s.leaves == nil {
		s.leaves = leaves
	} else {
		for i := range s.leaves {
			s.leaves[i].add(&leaves[i])
		}
	}
	if s.groupRows == 0 || s.groupRows >= s.opts.RowGroupRows || s.groupBytes >= s.opts.RowGroupBytes {
		if err := s.file.NewBufferedRowGroupChecked(); err != nil { // ends the one before
			return fmt.Errorf("start a row group of a Parquet file: %w", err)
		}
		s.endedBytes += s.groupBytes
		s.groupRows, s.groupBytes = 0, 0
	}
	s.groupRows += s.pendingRows
	s.groupBytes += s.pendingBytes
	s.pendingRows, s.pendingBytes = 0, 0
	if err := s.file.WriteBuffered(rec); err != nil {
		return fmt.Errorf("write a Parquet file: %w", err)
	}
	return nil
}

// whole are the options by which a row group is not divided again.
func (s *Stream) whole() Options {
	o := s.opts
	o.RowGroupRows = math.MaxInt32
	return o
}

// Close ends the file, which must have a row, and tells what is in it; Distinct is known only if all rows were measured together. The writer below
// stays open.
func (s *Stream) Close() (_ []Leaf, err error) {
	defer rescue(&err)
	if s.rows == 0 {
		return nil, fmt.Errorf("end a Parquet file: it has no rows")
	}
	if s.file == nil {
		rec, err := s.take()
		if err != nil {
			return nil, err
		}
		leaves := Measure(rec)
		for i := range leaves {
			keepBounds(&leaves[i])
		}
		if err := Write(output{s}, rec, leaves, s.whole()); err != nil {
			return nil, err
		}
		return leaves, s.out.Flush()
	}
	if s.pendingRows > 0 {
		if err := s.encode(); err != nil {
			return nil, err
		}
	}
	if err := s.file.Close(); err != nil {
		return nil, fmt.Errorf("end a Parquet file: %w", err)
	}
	s.file = nil
	return s.leaves, s.out.Flush()
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
