package columns

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Column holds the values of one column of a batch, or of one level of a nested column. Exactly the slices that its kind needs
// are used; a null takes a place with a zero value, as Arrow wants it, and its position is kept in nulls: appending a value that
// is not null costs nothing but the value.
type Column struct {
	kind    Kind
	notNull bool

	nulls []int32 // positions of nulls, ascending

	bools []bool
	i8    []int8
	i16   []int16
	i32   []int32 // Integer, Date
	i64   []int64 // Long, Timestamp, TimestampNTZ
	f32   []float32
	f64   []float64
	dec   []decimal128.Num
	data  []byte  // String, Binary
	off   []int32 // String, Binary, List, Map: n+1 offsets
	rows  int     // Struct: number of values
}

func (c *Column) init(kind Kind, notNull bool) {
	c.kind, c.notNull = kind, notNull
	switch kind {
	case String, Binary, List, Map:
		c.off = append(c.off[:0], 0)
	}
}

// Len is the number of values, nulls included.
func (c *Column) Len() int {
	switch c.kind {
	case Boolean:
		return len(c.bools)
	case Byte:
		return len(c.i8)
	case Short:
		return len(c.i16)
	case Integer, Date:
		return len(c.i32)
	case Long, Timestamp, TimestampNTZ:
		return len(c.i64)
	case Float:
		return len(c.f32)
	case Double:
		return len(c.f64)
	case Decimal:
		return len(c.dec)
	case Struct:
		return c.rows
	}
	return len(c.off) - 1
}

// AppendBool appends to a Boolean column.
func (c *Column) AppendBool(v bool) { c.bools = append(c.bools, v) }

// AppendInt8 appends to a Byte column.
func (c *Column) AppendInt8(v int8) { c.i8 = append(c.i8, v) }

// AppendInt16 appends to a Short column.
func (c *Column) AppendInt16(v int16) { c.i16 = append(c.i16, v) }

// AppendInt32 appends to an Integer or Date column.
func (c *Column) AppendInt32(v int32) { c.i32 = append(c.i32, v) }

// AppendInt64 appends to a Long, Timestamp or TimestampNTZ column (the latter in microseconds).
func (c *Column) AppendInt64(v int64) { c.i64 = append(c.i64, v) }

// AppendFloat32 appends to a Float column.
func (c *Column) AppendFloat32(v float32) { c.f32 = append(c.f32, v) }

// AppendFloat64 appends to a Double column.
func (c *Column) AppendFloat64(v float64) { c.f64 = append(c.f64, v) }

// AppendDecimal appends an unscaled value to a Decimal column. The caller has checked that it fits the precision.
func (c *Column) AppendDecimal(v decimal128.Num) { c.dec = append(c.dec, v) }

// AppendBytes appends to a String or Binary column. The caller has checked that a string is valid UTF-8.
func (c *Column) AppendBytes(v []byte) {
	c.data = append(c.data, v...)
	c.off = append(c.off, int32(len(c.data)))
}

// AppendString is AppendBytes for a string.
func (c *Column) AppendString(v string) {
	c.data = append(c.data, v...)
	c.off = append(c.off, int32(len(c.data)))
}

// AppendStruct counts one value of a Struct column, whose fields the caller appends.
func (c *Column) AppendStruct() { c.rows++ }

// AppendEnd ends one value of a List or Map column, whose elements the caller has appended; elems is the element column (for a
// map: the key column).
func (c *Column) AppendEnd(elems *Column) { c.off = append(c.off, int32(elems.Len())) }

// IsEmptyAt reports whether the i-th value of a String column is a text of no characters, not a null.
func (c *Column) IsEmptyAt(i int) bool {
	if c.off[i] != c.off[i+1] {
		return false
	}
	_, null := slices.BinarySearch(c.nulls, int32(i))
	return !null
}

// maxOffset bounds a column's bytes and elements: offsets are 32 bits wide.
const maxOffset = math.MaxInt32

// overflowed reports whether the offsets have wrapped.
func (c *Column) overflowed() bool { return len(c.data) > maxOffset }

// appendZero appends a place without a value, and without children.
func (c *Column) appendZero() {
	switch c.kind {
	case Boolean:
		c.bools = append(c.bools, false)
	case Byte:
		c.i8 = append(c.i8, 0)
	case Short:
		c.i16 = append(c.i16, 0)
	case Integer, Date:
		c.i32 = append(c.i32, 0)
	case Long, Timestamp, TimestampNTZ:
		c.i64 = append(c.i64, 0)
	case Float:
		c.f32 = append(c.f32, 0)
	case Double:
		c.f64 = append(c.f64, 0)
	case Decimal:
		c.dec = append(c.dec, decimal128.Num{})
	case Struct:
		c.rows++
	default:
		c.off = append(c.off, c.off[len(c.off)-1])
	}
}

// truncate cuts the column itself to n values.
func (c *Column) truncate(n int) {
	for len(c.nulls) > 0 && int(c.nulls[len(c.nulls)-1]) >= n {
		c.nulls = c.nulls[:len(c.nulls)-1]
	}
	switch c.kind {
	case Boolean:
		c.bools = c.bools[:n]
	case Byte:
		c.i8 = c.i8[:n]
	case Short:
		c.i16 = c.i16[:n]
	case Integer, Date:
		c.i32 = c.i32[:n]
	case Long, Timestamp, TimestampNTZ:
		c.i64 = c.i64[:n]
	case Float:
		c.f32 = c.f32[:n]
	case Double:
		c.f64 = c.f64[:n]
	case Decimal:
		c.dec = c.dec[:n]
	case Struct:
		c.rows = n
	case String, Binary:
		c.off = c.off[:n+1]
		c.data = c.data[:c.off[n]]
	case List, Map:
		c.off = c.off[:n+1]
	}
}

// valueBytes is the size of one value in the column's slices, apart from the bytes of strings.
func (k Kind) valueBytes() int64 {
	switch k {
	case Boolean, Byte:
		return 1
	case Short:
		return 2
	case Long, Timestamp, TimestampNTZ, Double:
		return 8
	case Decimal:
		return 16
	case Struct:
		return 0
	}
	return 4
}

// bytes is the memory that the column's content takes.
func (c *Column) bytes() int64 {
	return int64(c.Len())*c.kind.valueBytes() + int64(len(c.data)) + int64(len(c.nulls))*4
}

// Kind is the kind of the column's values.
func (c *Column) Kind() Kind { return c.kind }

// IsNullAt reports whether the i-th value is null. It is cheapest for the last one.
func (c *Column) IsNullAt(i int) bool {
	n := len(c.nulls)
	if n == 0 || c.nulls[n-1] < int32(i) {
		return false
	}
	_, null := slices.BinarySearch(c.nulls, int32(i))
	return null
}

// BoolAt is the i-th value of a Boolean column.
func (c *Column) BoolAt(i int) bool { return c.bools[i] }

// IntAt is the i-th value of a column of integers of any width, of dates (days) or of timestamps (microseconds).
func (c *Column) IntAt(i int) int64 {
	switch c.kind {
	case Byte:
		return int64(c.i8[i])
	case Short:
		return int64(c.i16[i])
	case Integer, Date:
		return int64(c.i32[i])
	}
	return c.i64[i]
}

// BytesAt is the i-th value of a String or Binary column. It aliases the column's memory until that is appended to.
func (c *Column) BytesAt(i int) []byte { return c.data[c.off[i]:c.off[i+1]] }

// DecimalAt is the i-th value of a Decimal column, unscaled.
func (c *Column) DecimalAt(i int) decimal128.Num { return c.dec[i] }
