package parquetfile

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Leaf is what was measured of one column that is not a struct: one reached through structs only, a list or map among them (then
// only nulls are counted), or one inside a list or map (then Nested is set, and only Distinct is measured).
type Leaf struct {
	// Path are the field names from the top, as in the Arrow schema.
	Path []string
	// Type is the column's Arrow type.
	Type arrow.DataType
	// Nested is set for a leaf inside a list or map.
	Nested bool
	// Rows counts the batch's rows; for a nested leaf its values.
	Rows int64
	// Nulls counts the rows in which the column, or a struct around it, is null.
	Nulls int64
	// Min and Max bound all values that are not null. HasBounds is false where there are none, or none that would be true for
	// every reader: for columns of nulls, columns with a NaN, booleans, binary and nested types.
	Min, Max  Value
	HasBounds bool
	// HasNaN is set if a NaN was seen.
	HasNaN bool
	// Distinct estimates the number of different values, from a sample. 0 if it wasn't estimated.
	Distinct int64

	column     []string // path in the Parquet schema
	dictionary bool     // Write gives the column a dictionary
}

// Value is one bound. The field that counts goes by the Arrow type: Int for integers, dates (days) and timestamps
// (microseconds), Float for both kinds of floats, Bytes for strings, Decimal for decimals (unscaled).
type Value struct {
	Int     int64
	Float   float64
	Bytes   []byte // aliases the batch
	Decimal decimal128.Num
}

// Measure looks at the values of a batch. Leaves come in the order of the columns, a list or map before what is in it.
func Measure(rec arrow.RecordBatch) []Leaf { return measureFor(rec, rec.NumRows()) }

// measureFor is Measure of the first rows of so many in a row group, whose dictionaries are decided on. 0: nothing is to be decided, only Distinct
// isn't estimated.
func measureFor(rec arrow.RecordBatch, groupRows int64) []Leaf {
	var out []Leaf
	times := float64(groupRows) / float64(max(1, rec.NumRows()))
	for i, f := range rec.Schema().Fields() {
		out = measure(out, place{path: []string{f.Name}, column: []string{f.Name}, times: times}, rec.Column(i))
	}
	return out
}

// place is where a column stands.
type place struct {
	path, column []string // in the Arrow and in the Parquet schema
	outer        []bool   // validity of the structs around it, nil if none of them has nulls
	nested       bool
	times        float64 // the values of a row group, as a multiple of those at hand; 0: dictionaries are decided on
}

func (p place) inside(name string, column ...string) place {
	return place{path: extend(p.path, name), column: extend(p.column, column...), nested: true, times: p.times}
}

// measure appends the leaves of one column.
func measure(out []Leaf, p place, a arrow.Array) []Leaf {
	if s, ok := a.(*array.Struct); ok {
		outer := and(p.outer, s)
		for i, f := range s.DataType().(*arrow.StructType).Fields() {
			out = measure(out, place{extend(p.path, f.Name), extend(p.column, f.Name), outer, p.nested, p.times}, s.Field(i))
		}
		return out
	}
	l := Leaf{Path: p.path, Type: a.DataType(), Rows: int64(a.Len()), Nested: p.nested, column: p.column}
	if !p.nested {
		l.bounds(a, validity(a, p.outer))
	}
	switch a := a.(type) {
	case *array.Map:
		out = measure(append(out, l), p.inside("key", "key_value", "key"), a.Keys())
		return measure(out, p.inside("value", "key_value", "value"), a.Items())
	case array.ListLike:
		return measure(append(out, l), p.inside("element", "list", "element"), a.ListValues())
	}
	if p.times > 0 {
		l.sample(a, p.times)
	}
	return append(out, l)
}

func extend(path []string, names ...string) []string {
	return append(path[:len(path):len(path)], names...)
}

// and combines the validity of the structs around with that of a struct.
func and(outer []bool, a arrow.Array) []bool {
	if a.NullN() == 0 {
		return outer
	}
	out := make([]bool, a.Len())
	for i := range out {
		out[i] = a.IsValid(i) && (outer == nil || outer[i])
	}
	return out
}

// validity is nil if every value counts.
func validity(a arrow.Array, outer []bool) []bool {
	if a.NullN() == 0 {
		return outer
	}
	return and(outer, a)
}

// bounds sets null count and bounds.
func (l *Leaf) bounds(a arrow.Array, valid []bool) {
	for _, ok := range valid {
		if !ok {
			l.Nulls++
		}
	}
	if l.Nulls == l.Rows {
		return
	}
	l.HasBounds = true
	switch a := a.(type) {
	case *array.Int8:
		intBounds(l, a.Int8Values(), valid)
	case *array.Int16:
		intBounds(l, a.Int16Values(), valid)
	case *array.Int32:
		intBounds(l, a.Int32Values(), valid)
	case *array.Int64:
		intBounds(l, a.Int64Values(), valid)
	case *array.Date32:
		intBounds(l, a.Date32Values(), valid)
	case *array.Timestamp:
		intBounds(l, a.TimestampValues(), valid)
	case *array.Float32:
		floatBounds(l, a.Float32Values(), valid)
	case *array.Float64:
		floatBounds(l, a.Float64Values(), valid)
	case *array.Decimal128:
		l.decimalBounds(a.Values(), valid)
	case *array.String:
		l.stringBounds(a, valid)
	default:
		l.HasBounds = false
	}
}

func intBounds[T ~int8 | ~int16 | ~int32 | ~int64](l *Leaf, v []T, valid []bool) {
	var lo, hi T
	if valid == nil {
		lo, hi = v[0], v[0]
		for _, x := range v {
			lo, hi = min(lo, x), max(hi, x)
		}
	} else {
		first := true
		for i, x := range v {
			switch {
			case !valid[i]:
			case first:
				lo, hi, first = x, x, false
			default:
				lo, hi = min(lo, x), max(hi, x)
			}
		}
	}
	l.Min.Int, l.Max.Int = int64(lo), int64(hi)
}

func floatBounds[T ~float32 | ~float64](l *Leaf, v []T, valid []bool) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, t := range v {
		if valid != nil && !valid[i] {
			continue
		}
		x := float64(t)
		if x != x {
			l.HasBounds, l.HasNaN = false, true
			return
		}
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
	}
	l.Min.Float, l.Max.Float = lo, hi
}

func (l *Leaf) decimalBounds(v []decimal128.Num, valid []bool) {
	first := true
	for i, x := range v {
		switch {
		case valid != nil && !valid[i]:
		case first:
			l.Min.Decimal, l.Max.Decimal, first = x, x, false
		case x.Less(l.Min.Decimal):
			l.Min.Decimal = x
		case l.Max.Decimal.Less(x):
			l.Max.Decimal = x
		}
	}
}

// stringBounds orders by bytes, which for UTF-8 is the order of code points. Most values are told from the bounds by their first
// eight bytes, taken as a number.
func (l *Leaf) stringBounds(a *array.String, valid []bool) {
	off, data := a.ValueOffsets(), a.ValueBytes()
	base := off[0]
	lo, hi := []byte(nil), []byte(nil)
	var loHead, hiHead uint64
	for i := range a.Len() {
		if valid != nil && !valid[i] {
			continue
		}
		from, to := off[i]-base, off[i+1]-base
		h := head(data, from, to)
		if lo == nil {
			x := append([]byte{}, data[from:to]...)
			lo, hi, loHead, hiHead = x, x, h, h
			continue
		}
		if h > loHead && h < hiHead {
			continue
		}
		if x := data[from:to]; h < loHead || h == loHead && bytes.Compare(x, lo) < 0 {
			lo, loHead = x, h
		} else if h > hiHead || h == hiHead && bytes.Compare(x, hi) > 0 {
			hi, hiHead = x, h
		}
	}
	l.Min.Bytes, l.Max.Bytes = lo, hi
}

// head returns the first eight bytes of data[from:to], most significant first, filled up with zeros.
func head(data []byte, from, to int32) uint64 {
	n := to - from
	if int(from)+8 <= len(data) {
		h := binary.BigEndian.Uint64(data[from:])
		if n < 8 {
			h &^= 1<<(8*(8-n)) - 1
		}
		return h
	}
	var last [8]byte
	copy(last[:], data[from:to])
	return binary.BigEndian.Uint64(last[:])
}
