package keyed

import (
	"errors"
	"strconv"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tributary-io/tributary/lake/columns"
)

// ErrNullOrder says that the order column is null.
var ErrNullOrder = errors.New("the order column is null, so that nobody can tell what the change is newer than")

// CanOrder reports whether a column of the kind can order changes: integers and times by value, texts as LSNs.
func CanOrder(k columns.Kind) bool {
	switch k {
	case columns.Byte, columns.Short, columns.Integer, columns.Long, columns.Date, columns.Timestamp, columns.TimestampNTZ, columns.String:
		return true
	}
	return false
}

// signed makes numbers with a sign compare as numbers without one.
func signed(v int64) uint64 { return uint64(v) ^ 1<<63 }

// OrderOfColumn reads the i-th value of a batch's order column. A text that is no LSN is an error.
func OrderOfColumn(c *columns.Column, i int) (uint64, error) {
	if c.IsNullAt(i) {
		return 0, ErrNullOrder
	}
	if c.Kind() == columns.String {
		text := c.BytesAt(i)
		lsn, err := ParseLSN(unsafe.String(unsafe.SliceData(text), len(text))) // the text isn't kept, but copied into an error
		return uint64(lsn), err
	}
	return signed(c.IntAt(i)), nil
}

// OrderOfArrow reads the i-th value of a data file's order column. A null, which rows of other writers may have, is older than all.
func OrderOfArrow(a arrow.Array, i int) (uint64, error) {
	if a.IsNull(i) {
		return 0, nil
	}
	var text string
	switch a := a.(type) {
	case *array.String:
		text = a.Value(i)
	case *array.LargeString:
		text = a.Value(i)
	default:
		v, err := arrowInteger(a, i)
		return signed(v), err
	}
	lsn, err := ParseLSN(text)
	return uint64(lsn), err
}

// FormatOrder writes an order as a value of the kind of column that it comes from.
func FormatOrder(k columns.Kind, order uint64) string {
	v := int64(order ^ 1<<63)
	switch k {
	case columns.String:
		return LSN(order).String()
	case columns.Date:
		return time.Unix(v*24*60*60, 0).UTC().Format(time.DateOnly)
	case columns.Timestamp, columns.TimestampNTZ:
		return time.UnixMicro(v).UTC().Format(time.RFC3339Nano)
	}
	return strconv.FormatInt(v, 10)
}

// OrderOfPartition reads the order of a partition value; see AppendPartition.
func OrderOfPartition(v any) (uint64, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case int64:
		return signed(v), nil
	case string:
		lsn, err := ParseLSN(v)
		return uint64(lsn), err
	}
	return 0, errors.New("the partition column can't order changes")
}
