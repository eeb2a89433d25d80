package parquetfile

import (
	"bytes"
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// textColumn writes text (or bytes) with a dictionary into one column of a row group. The library's writer makes a slice of slices of each batch and an
// allocation for each value that it hashes; here values are looked up in place, in a table that gives them the numbers which the library's dictionary has
// for them, and written as numbers. A value that comes for the first time is handed to the library, which so numbers it as the table does.
type textColumn struct {
	ctx     context.Context
	out     *file.ByteArrayColumnChunkWriter
	encoder dictionaryEncoder
	table   textTable
	numbers []int32  // of the rows that are being written
	first   []int    // those of them whose value is new
	page    uint32   // counts the pages that are being filled, and more
	seen    []uint32 // by number: the page whose bounds have it already
}

// dictionaryEncoder is what is needed of the library's encoder of dictionaries.
type dictionaryEncoder interface {
	NumEntries() int
	// AddRawSize counts bytes of values, by which pages end.
	AddRawSize(n int64)
}

const (
	// textBatch is how many rows are looked up and written together: what the library writes before it looks whether a page is full.
	textBatch = 1024
	// manyNew is how many of them may be new before it is cheaper to leave all to the library.
	manyNew = 32
)

// newTextColumn is nil for columns that aren't text with a dictionary.
func newTextColumn(ctx context.Context, cw file.ColumnChunkWriter) *textColumn {
	out, ok := cw.(*file.ByteArrayColumnChunkWriter)
	if !ok {
		return nil
	}
	encoder, ok := out.CurrentEncoder().(dictionaryEncoder)
	if !ok {
		return nil
	}
	return &textColumn{ctx: ctx, out: out, encoder: encoder, table: newTextTable(), page: 1}
}

// write adds values; levels are nil for a column without nulls.
func (c *textColumn) write(a arrow.Array, levels []int16) error {
	for from := 0; from < a.Len(); from += textBatch {
		part, partLevels := slice(a, levels, from, min(from+textBatch, a.Len()))
		err := c.writePart(part, partLevels)
		part.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// hasDictionary is false when the dictionary has become too large and the library goes on without.
func (c *textColumn) hasDictionary() bool {
	return c.out.CurrentEncoder().Encoding() == parquet.Encodings.PlainDict
}

func (c *textColumn) writePart(a arrow.Array, levels []int16) error {
	if !c.hasDictionary() || c.table.size() != c.encoder.NumEntries() {
		return c.writeValues(a, levels)
	}
	values := textOf(a)
	c.lookUp(values)
	if len(c.first) > manyNew {
		return c.writeValues(a, levels)
	}
	from := 0
	for _, at := range c.first {
		if err := c.writeNumbers(values, levels, from, at); err != nil {
			return err
		}
		one, oneLevel := slice(a, levels, at, at+1)
		err := c.writeValues(one, oneLevel)
		one.Release()
		if err != nil {
			return err
		}
		if from = at + 1; !c.hasDictionary() {
			rest, restLevels := slice(a, levels, from, a.Len())
			defer rest.Release()
			return c.writeValues(rest, restLevels)
		}
	}
	return c.writeNumbers(values, levels, from, a.Len())
}

// writeValues leaves rows to the library.
func (c *textColumn) writeValues(a arrow.Array, levels []int16) error {
	if a.Len() == 0 {
		return nil
	}
	c.page++ // these rows may be the first of a page, whose statistics then don't look new to count
	return pqarrow.WriteArrowToColumn(c.ctx, c.out, a, levels, nil, levels != nil)
}

// lookUp finds the numbers of all values, and which of them are new.
func (c *textColumn) lookUp(values text) {
	c.numbers, c.first = c.numbers[:0], c.first[:0]
	for i := range values.len() {
		if values.a.IsNull(i) {
			c.numbers = append(c.numbers, 0)
			continue
		}
		n, isNew := c.table.number(values.at(i))
		c.numbers = append(c.numbers, n)
		if isNew {
			c.first = append(c.first, i)
		}
	}
	for len(c.seen) < c.table.size() {
		c.seen = append(c.seen, 0)
	}
}

// writeNumbers writes rows whose values are in the library's dictionary.
func (c *textColumn) writeNumbers(values text, levels []int16, from, to int) error {
	if from == to {
		return nil
	}
	nulls := c.count(values, from, to)
	buffers := []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(c.numbers[from:to]))}
	if nulls > 0 {
		valid := make([]byte, bitutil.BytesForBits(int64(to-from)))
		bitutil.CopyBitmap(values.a.NullBitmapBytes(), values.a.Data().Offset()+from, to-from, valid, 0)
		buffers[0] = memory.NewBufferBytes(valid)
	}
	if levels != nil {
		levels = levels[from:to]
	}
	data := array.NewData(arrow.PrimitiveTypes.Int32, to-from, buffers, nil, nulls, 0)
	defer data.Release()
	numbers := array.NewInt32Data(data)
	defer numbers.Release()
	return c.out.WriteDictIndices(numbers, levels, nil)
}

// count brings what the library knows of the page up to date with rows that it gets as numbers: bounds, nulls and size. It returns the nulls.
func (c *textColumn) count(values text, from, to int) (nulls int) {
	var size int64
	stats, _ := c.out.PageStatistics().(*metadata.ByteArrayStatistics)
	if stats != nil && stats.NumValues() == 0 {
		c.page++
	}
	var lo, hi []byte
	for i := from; i < to; i++ {
		if values.a.IsNull(i) {
			nulls++
			continue
		}
		n := c.numbers[i]
		v := c.table.value(n)
		size += int64(len(v) + arrow.Uint32SizeBytes)
		if c.seen[n] == c.page {
			continue
		}
		c.seen[n] = c.page
		if lo == nil || bytes.Compare(v, lo) < 0 {
			lo = v
		}
		if hi == nil || bytes.Compare(v, hi) > 0 {
			hi = v
		}
	}
	c.encoder.AddRawSize(size)
	if stats != nil {
		stats.IncNulls(int64(nulls))
		stats.IncNumValues(int64(to - from - nulls))
		if lo != nil {
			stats.SetMinMax(lo, hi)
		}
	}
	return nulls
}

// text is an array of text or bytes.
type text struct {
	a       arrow.Array
	offsets []int32
	data    []byte
}

func textOf(a arrow.Array) text {
	t := text{a: a, offsets: a.(interface{ ValueOffsets() []int32 }).ValueOffsets()}
	if b := a.Data().Buffers()[2]; b != nil {
		t.data = b.Bytes()
	}
	return t
}

func (t text) len() int { return t.a.Len() }

func (t text) at(i int) []byte { return t.data[t.offsets[i]:t.offsets[i+1]] }
