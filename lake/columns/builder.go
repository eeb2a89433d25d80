package columns

import (
	"errors"
	"fmt"
)

// Builder holds the rows of one batch as columns. It is not safe for concurrent use.
type Builder struct {
	schema *Schema
	cols   []Column
	ends   []int // for each column: one past its last descendant
	rows   int

	fixed  int64 // bytes a row in columns of fixed width at the top level
	varied []int // the other columns, whose size must be looked at
}

// ErrFull says that a column of the batch would pass 2 GiB. The row has not been added: commit the batch, then add it to the next.
var ErrFull = errors.New("the batch holds 2 GiB in one column: close batches by bytes earlier")

// NewBuilder makes an empty batch. The schema must have passed Check, and is not changed afterwards.
func NewBuilder(s *Schema) *Builder {
	b := &Builder{schema: s, cols: make([]Column, s.Width()), ends: make([]int, s.Width())}
	at := 0
	for i := range s.Fields {
		top := at
		at = b.init(at, &s.Fields[i].Type, s.Fields[i].NotNull)
		if at == top+1 && b.cols[top].off == nil {
			b.fixed += b.cols[top].kind.valueBytes()
			continue
		}
		for j := top; j < at; j++ {
			b.varied = append(b.varied, j)
		}
	}
	return b
}

// init sets up the columns of a type from number at on, and returns the next free number.
func (b *Builder) init(at int, t *Type, notNull bool) int {
	b.cols[at].init(t.Kind, notNull)
	next := at + 1
	switch t.Kind {
	case List:
		next = b.init(next, &t.Elem.Type, t.Elem.NotNull)
	case Map:
		b.cols[next].init(String, true)
		b.ends[next] = next + 1
		next = b.init(next+1, &t.Elem.Type, t.Elem.NotNull)
	case Struct:
		for i := range t.Fields {
			next = b.init(next, &t.Fields[i].Type, t.Fields[i].NotNull)
		}
	}
	b.ends[at] = next
	return next
}

// Schema returns the schema that the builder was made for.
func (b *Builder) Schema() *Schema { return b.schema }

// Columns returns all columns by their pre-order number. Plans append to them.
func (b *Builder) Columns() []Column { return b.cols }

// Rows is the number of whole rows.
func (b *Builder) Rows() int { return b.rows }

// Bytes is the memory that the rows take, without the slack of growing.
func (b *Builder) Bytes() int64 {
	n := b.fixed * int64(b.rows)
	for _, i := range b.varied {
		n += b.cols[i].bytes()
	}
	return n
}

// NullError says that a column which can't hold nulls was given one.
type NullError struct{}

func (*NullError) Error() string { return "null in a column that is declared NOT NULL" }

var errNull = &NullError{}

// AppendNull appends a null to the column with the number. It fails if the column is NOT NULL.
func (b *Builder) AppendNull(col int) error {
	if b.cols[col].notNull {
		return errNull
	}
	b.appendNull(col)
	return nil
}

// appendNull doesn't ask whether the column may be null: below a null struct its fields have no value at all.
func (b *Builder) appendNull(col int) {
	c := &b.cols[col]
	c.nulls = append(c.nulls, int32(c.Len()))
	c.appendZero()
	if c.kind == Struct {
		for child := col + 1; child < b.ends[col]; child = b.ends[child] {
			b.appendNull(child)
		}
	}
}

// EndRow takes what was appended since the last EndRow as one row: exactly one value for each top-level column.
// On ErrFull the row is rolled back.
func (b *Builder) EndRow() error {
	for _, i := range b.varied {
		if b.cols[i].overflowed() {
			b.Rollback()
			return ErrFull
		}
	}
	b.rows++
	return nil
}

// Rollback drops what was appended since the last EndRow. Any column may have had its value or not.
func (b *Builder) Rollback() {
	for at := 0; at < len(b.cols); at = b.ends[at] {
		b.truncate(at, b.rows)
	}
}

// truncate cuts a column and its descendants to n values; descendants of lists are cut to what is left of their elements.
func (b *Builder) truncate(at, n int) {
	c := &b.cols[at]
	c.truncate(n)
	switch c.kind {
	case Struct, List, Map:
		if c.kind != Struct {
			n = int(c.off[n])
		}
		for child := at + 1; child < b.ends[at]; child = b.ends[child] {
			b.truncate(child, n)
		}
	}
}

// Reset empties the builder and keeps its memory. Records made from it are invalid afterwards.
func (b *Builder) Reset() {
	b.rows = 0
	b.Rollback()
}

// Complete reports an error unless every top-level column has exactly the builder's number of rows. It guards plans in tests.
func (b *Builder) Complete() error {
	for at, i := 0, 0; at < len(b.cols); at, i = b.ends[at], i+1 {
		if n := b.cols[at].Len(); n != b.rows {
			return fmt.Errorf("column %s has %d values in %d rows", b.schema.Fields[i].Name, n, b.rows)
		}
	}
	return nil
}
