package lake

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tributary-io/tributary/lake/delta"
)

// group is the rows of a batch with the same partition values.
type group struct {
	values map[string]*string
	rows   []int32
}

// groupRows divides the rows of a record by the values of the partition columns, in the order of first appearance.
func groupRows(rec arrow.RecordBatch, l *layout) (groups map[string]*group, order []string, err error) {
	groups = map[string]*group{}
	var key []byte
	values := make([]*string, len(l.partitions))
	var last string
	for i := range int(rec.NumRows()) {
		key = key[:0]
		for n, col := range l.partitions {
			if values[n], err = partitionValue(rec.Column(col), i); err != nil {
				return nil, nil, fmt.Errorf("partition column %s: %w", l.Schema.Fields[col].Name, err)
			}
			key = appendKey(key, values[n])
		}
		if g := groups[last]; g != nil && last == string(key) {
			g.rows = append(g.rows, int32(i))
			continue
		}
		last = string(key)
		g := groups[last]
		if g == nil {
			g = &group{values: map[string]*string{}}
			for n, col := range l.partitions {
				g.values[l.Schema.Fields[col].Name] = kept(values[n])
			}
			groups[last] = g
			order = append(order, last)
		}
		g.rows = append(g.rows, int32(i))
	}
	return groups, order, nil
}

// kept copies a text out of the batch's memory, which is used again.
func kept(v *string) *string {
	if v == nil {
		return nil
	}
	s := strings.Clone(*v)
	return &s
}

// appendKey appends a value so that different lists of values give different keys.
func appendKey(dst []byte, v *string) []byte {
	if v == nil {
		return append(dst, 'n')
	}
	return append(fmt.Appendf(dst, "%d:", len(*v)), *v...)
}

// partitionValue serializes a value as the log wants it; nil is a null.
func partitionValue(a arrow.Array, i int) (*string, error) {
	if a.IsNull(i) {
		return nil, nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return delta.PartitionBool(a.Value(i)), nil
	case *array.Int8:
		return delta.PartitionInt(int64(a.Value(i))), nil
	case *array.Int16:
		return delta.PartitionInt(int64(a.Value(i))), nil
	case *array.Int32:
		return delta.PartitionInt(int64(a.Value(i))), nil
	case *array.Int64:
		return delta.PartitionInt(a.Value(i)), nil
	case *array.Float32:
		return delta.PartitionFloat(float64(a.Value(i)), 32), nil
	case *array.Float64:
		return delta.PartitionFloat(a.Value(i), 64), nil
	case *array.Date32:
		return delta.PartitionDate(int32(a.Value(i))), nil
	case *array.Timestamp:
		return delta.PartitionTimestamp(int64(a.Value(i)), a.DataType().(*arrow.TimestampType).TimeZone != ""), nil
	case *array.Decimal128:
		return delta.PartitionDecimal(a.Value(i).BigInt(), int(a.DataType().(*arrow.Decimal128Type).Scale)), nil
	case *array.String:
		return delta.PartitionString(a.Value(i))
	}
	return nil, fmt.Errorf("a column of type %s can't be a partition column", a.DataType())
}
