package keyed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/tributary-io/tributary/lake/columns"
)

// Hash stands for a key: the 128 bits of XXH3 over its canonical bytes. That two of a billion keys share one has a chance of about 1 in 10^21.
type Hash [16]byte

// Sum hashes a key's canonical bytes.
func Sum(key []byte) Hash { return xxh3.Hash128(key).Bytes() }

// Tags of values in a key's canonical bytes. They are durable.
const (
	tagInteger = 1 // eight bytes, big-endian: integers of any width, dates (days), timestamps (microseconds)
	tagBoolean = 2 // one byte
	tagText    = 3 // length as uvarint, then UTF-8
	tagBinary  = 4 // length as uvarint, then bytes
	tagDecimal = 5 // as text: digits without needless zeros
)

// ErrNullKey says that a key column is null.
var ErrNullKey = errors.New("a key column is null, so that the row has no key")

// CanKey reports whether a column of the kind may be part of a key.
func CanKey(k columns.Kind) bool {
	switch k {
	case columns.Float, columns.Double, columns.List, columns.Map, columns.Struct:
		return false
	}
	return true
}

func appendInteger(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, tagInteger), uint64(v))
}

func appendBoolean(dst []byte, v bool) []byte {
	if v {
		return append(dst, tagBoolean, 1)
	}
	return append(dst, tagBoolean, 0)
}

func appendText[T string | []byte](dst []byte, tag byte, v T) []byte {
	dst = binary.AppendUvarint(append(dst, tag), uint64(len(v)))
	return append(dst, v...)
}

// appendDecimal takes an unscaled value. 1.50 with two digits behind the point and 1.5 with one are the same key.
func appendDecimal(dst []byte, unscaled *big.Int, scale int) []byte {
	text := unscaled.String()
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	if len(text) <= scale {
		text = strings.Repeat("0", scale+1-len(text)) + text
	}
	whole, fraction := text[:len(text)-scale], strings.TrimRight(text[len(text)-scale:], "0")
	if fraction != "" {
		whole += "." + fraction
	}
	if negative {
		whole = "-" + whole
	}
	return appendText(dst, tagDecimal, whole)
}

// AppendColumn appends the i-th value of a batch's column to a key. scale is that of a decimal column.
func AppendColumn(dst []byte, c *columns.Column, scale, i int) ([]byte, error) {
	if c.IsNullAt(i) {
		return dst, ErrNullKey
	}
	switch c.Kind() {
	case columns.Boolean:
		return appendBoolean(dst, c.BoolAt(i)), nil
	case columns.String:
		return appendText(dst, tagText, c.BytesAt(i)), nil
	case columns.Binary:
		return appendText(dst, tagBinary, c.BytesAt(i)), nil
	case columns.Decimal:
		return appendDecimal(dst, c.DecimalAt(i).BigInt(), scale), nil
	}
	return appendInteger(dst, c.IntAt(i)), nil
}

// AppendPartition appends the value of a partition column, in the Go types that the log's values are read as (int64, bool, string, *big.Int
// unscaled), to a key.
func AppendPartition(dst []byte, v any, scale int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return dst, ErrNullKey
	case int64:
		return appendInteger(dst, v), nil
	case bool:
		return appendBoolean(dst, v), nil
	case string:
		return appendText(dst, tagText, v), nil
	case *big.Int:
		return appendDecimal(dst, v, scale), nil
	}
	return dst, fmt.Errorf("a value of type %T can't be part of a key", v)
}

// AppendArrow appends the i-th value of a data file's column to a key.
func AppendArrow(dst []byte, a arrow.Array, i int) ([]byte, error) {
	if a.IsNull(i) {
		return dst, ErrNullKey
	}
	switch a := a.(type) {
	case *array.Boolean:
		return appendBoolean(dst, a.Value(i)), nil
	case *array.String:
		return appendText(dst, tagText, a.Value(i)), nil
	case *array.LargeString:
		return appendText(dst, tagText, a.Value(i)), nil
	case *array.Binary:
		return appendText(dst, tagBinary, a.Value(i)), nil
	case *array.LargeBinary:
		return appendText(dst, tagBinary, a.Value(i)), nil
	case *array.FixedSizeBinary:
		return appendText(dst, tagBinary, a.Value(i)), nil
	case *array.Decimal128:
		return appendDecimal(dst, a.Value(i).BigInt(), int(a.DataType().(*arrow.Decimal128Type).Scale)), nil
	}
	v, err := arrowInteger(a, i)
	return appendInteger(dst, v), err
}

// arrowInteger reads integers, dates and timestamps; timestamps in microseconds, rounded down.
func arrowInteger(a arrow.Array, i int) (int64, error) {
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i)), nil
	case *array.Int16:
		return int64(a.Value(i)), nil
	case *array.Int32:
		return int64(a.Value(i)), nil
	case *array.Int64:
		return a.Value(i), nil
	case *array.Date32:
		return int64(a.Value(i)), nil
	case *array.Timestamp:
		v := int64(a.Value(i))
		switch a.DataType().(*arrow.TimestampType).Unit {
		case arrow.Second:
			return v * 1_000_000, nil
		case arrow.Millisecond:
			return v * 1000, nil
		case arrow.Nanosecond:
			return columns.FloorDiv(v, 1000), nil
		}
		return v, nil
	}
	return 0, fmt.Errorf("a column of type %s is no key or order", a.DataType())
}
