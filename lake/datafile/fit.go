package datafile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// find returns the place of a column among a file's fields: by id where the table says so, else by its physical name, and by that without
// case, as the reference reader does. -1 if the file lacks it.
func (l *Layout) find(have []arrow.Field, c *column) int {
	if l.byName {
		return slices.IndexFunc(have, func(f arrow.Field) bool { return f.Name == c.name })
	}
	if l.byID {
		for i := range have {
			if id, ok := fieldID(have[i]); ok && id == c.id {
				return i
			}
		}
		return -1
	}
	folded := -1
	for i := range have {
		if have[i].Name == c.field.Name {
			return i
		}
		if folded < 0 && strings.EqualFold(have[i].Name, c.field.Name) {
			folded = i
		}
	}
	return folded
}

func fieldID(f arrow.Field) (int32, bool) {
	text, ok := f.Metadata.GetValue(fieldIDKey)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 32)
	return int32(id), err == nil && id >= 0
}

func hasIDs(fields []arrow.Field) bool {
	for _, f := range fields {
		if _, ok := fieldID(f); ok {
			return true
		}
	}
	return false
}

var errNotNull = errors.New("it is NOT NULL, but the file has nulls there")

// missing makes a column of nulls.
func missing(c *column, n int) (arrow.Array, error) {
	if !c.field.Nullable && n > 0 {
		return nil, errNotNull
	}
	return array.MakeArrayOfNull(memory.DefaultAllocator, c.field.Type, n), nil
}

// fit gives an array the column's type. Values never change: a type that can't be widened to the column's is an error.
func (l *Layout) fit(a arrow.Array, c *column) (arrow.Array, error) {
	if !c.field.Nullable && a.NullN() > 0 {
		return nil, errNotNull
	}
	if d, ok := a.(*array.Dictionary); ok {
		plain, err := compute.CastArray(context.Background(), d, compute.SafeCastOptions(d.Dictionary().DataType()))
		if err != nil {
			return nil, err
		}
		a = plain
	}
	switch want := c.field.Type.(type) {
	case *arrow.StructType:
		if s, ok := a.(*array.Struct); ok {
			return l.fitStruct(s, c, want)
		}
	case *arrow.ListType:
		if a.DataType().ID() == arrow.LIST {
			return l.fitList(a.Data(), c)
		}
	case *arrow.MapType:
		if a.DataType().ID() == arrow.MAP {
			return l.fitMap(a.Data(), c, want)
		}
	default:
		return fitPrimitive(a, c.field.Type)
	}
	return nil, fmt.Errorf("the file has %s, which doesn't become %s", a.DataType(), c.field.Type)
}

func (l *Layout) fitStruct(s *array.Struct, c *column, want *arrow.StructType) (arrow.Array, error) {
	have := s.DataType().(*arrow.StructType).Fields()
	data := s.Data()
	children := make([]arrow.ArrayData, len(c.inner))
	for i := range c.inner {
		m := &c.inner[i]
		at := l.find(have, m)
		n := data.Offset() + data.Len()
		if at < 0 {
			children[i] = array.MakeArrayOfNull(memory.DefaultAllocator, m.field.Type, n).Data()
			continue
		}
		child, err := l.fit(array.MakeFromData(data.Children()[at]), withNulls(m)) // below a null struct members are null, NOT NULL or not
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		children[i] = child.Data()
	}
	return array.MakeFromData(array.NewData(want, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())), nil
}

// withNulls is the column without its NOT NULL.
func withNulls(c *column) *column {
	if c.field.Nullable {
		return c
	}
	out := *c
	out.field.Nullable = true
	return &out
}

func (l *Layout) fitList(data arrow.ArrayData, c *column) (arrow.Array, error) {
	child, err := l.fit(array.MakeFromData(data.Children()[0]), &c.inner[0])
	if err != nil {
		return nil, fmt.Errorf("element: %w", err)
	}
	return array.MakeFromData(array.NewData(c.field.Type, data.Len(), data.Buffers(), []arrow.ArrayData{child.Data()}, data.NullN(), data.Offset())), nil
}

func (l *Layout) fitMap(data arrow.ArrayData, c *column, want *arrow.MapType) (arrow.Array, error) {
	entries := data.Children()[0]
	children := make([]arrow.ArrayData, 2)
	for i, what := range []string{"key", "value"} {
		child, err := l.fit(array.MakeFromData(entries.Children()[i]), &c.inner[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		children[i] = child.Data()
	}
	inner := array.NewData(want.Elem(), entries.Len(), entries.Buffers(), children, entries.NullN(), entries.Offset())
	return array.MakeFromData(array.NewData(want, data.Len(), data.Buffers(), []arrow.ArrayData{inner}, data.NullN(), data.Offset())), nil
}

// fitPrimitive widens values.
func fitPrimitive(a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	have := a.DataType()
	if arrow.TypeEqual(have, want) {
		return a, nil
	}
	if t, ok := have.(*arrow.TimestampType); ok && want.ID() == arrow.TIMESTAMP {
		return fitTimestamp(a, t, want.(*arrow.TimestampType))
	}
	if !widens(have, want) {
		return nil, fmt.Errorf("the file has %s, which doesn't become %s", have, want)
	}
	if have.ID() == arrow.DATE32 {
		return dateToTimestamp(a.(*array.Date32), want.(*arrow.TimestampType)), nil
	}
	return compute.CastArray(context.Background(), a, compute.SafeCastOptions(want))
}

// widens reports whether every value of a type is one of the other: what the table feature typeWidening allows, and other ways of
// storing the same values.
func widens(have, want arrow.DataType) bool {
	switch want.ID() {
	case arrow.INT16, arrow.INT32, arrow.INT64:
		return arrow.IsSignedInteger(have.ID()) && have.(arrow.FixedWidthDataType).BitWidth() < want.(arrow.FixedWidthDataType).BitWidth()
	case arrow.FLOAT64:
		return have.ID() == arrow.FLOAT32 || have.ID() == arrow.INT8 || have.ID() == arrow.INT16 || have.ID() == arrow.INT32
	case arrow.TIMESTAMP:
		return have.ID() == arrow.DATE32 && want.(*arrow.TimestampType).TimeZone == ""
	case arrow.STRING:
		return have.ID() == arrow.LARGE_STRING || have.ID() == arrow.BINARY
	case arrow.BINARY:
		return have.ID() == arrow.LARGE_BINARY || have.ID() == arrow.FIXED_SIZE_BINARY
	case arrow.DECIMAL128:
		w := want.(*arrow.Decimal128Type)
		if d, ok := have.(arrow.DecimalType); ok {
			return d.GetScale() <= w.Scale && d.GetPrecision()-d.GetScale() <= w.Precision-w.Scale
		}
		return arrow.IsSignedInteger(have.ID())
	}
	return false
}

// fitTimestamp brings timestamps to microseconds. Files don't always say whether theirs are in UTC: the table does. Nanoseconds are an error
// where they would be lost.
func fitTimestamp(a arrow.Array, have, want *arrow.TimestampType) (arrow.Array, error) {
	v := a.(*array.Timestamp).TimestampValues()
	factor, divisor := arrow.Timestamp(1), arrow.Timestamp(1)
	switch have.Unit {
	case arrow.Second:
		factor = 1_000_000
	case arrow.Millisecond:
		factor = 1000
	case arrow.Nanosecond:
		divisor = 1000
	}
	out := make([]arrow.Timestamp, len(v))
	for i, x := range v {
		y := x / divisor * factor
		if y/factor*divisor != x && a.IsValid(i) {
			return nil, fmt.Errorf("timestamp %d of unit %s has no exact form in microseconds", x, have.Unit)
		}
		out[i] = y
	}
	return timestamps(out, a, want), nil
}

func dateToTimestamp(a *array.Date32, want *arrow.TimestampType) arrow.Array {
	out := make([]arrow.Timestamp, a.Len())
	for i, d := range a.Date32Values() {
		out[i] = arrow.Timestamp(d) * 24 * 60 * 60 * 1_000_000
	}
	return timestamps(out, a, want)
}

// timestamps makes an array of values with the nulls of another.
func timestamps(values []arrow.Timestamp, nulls arrow.Array, want *arrow.TimestampType) arrow.Array {
	b := array.NewTimestampBuilder(memory.DefaultAllocator, want)
	valid := make([]bool, len(values))
	for i := range valid {
		valid[i] = nulls.IsValid(i)
	}
	b.AppendValues(values, valid)
	return b.NewArray()
}
