package columns

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Value returns the i-th value of an Arrow array as a plain Go value: nil for a null; bool, int8 to int64, float32, float64,
// string, []byte; Day for a date, time.Time in UTC for both kinds of timestamp, the exact decimal text for a decimal; []any for a
// list, map[string]any for a map and for a struct. It serves tools and tests, not hot paths.
func Value(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return a.Value(i)
	case *array.Int16:
		return a.Value(i)
	case *array.Int32:
		return a.Value(i)
	case *array.Int64:
		return a.Value(i)
	case *array.Float32:
		return a.Value(i)
	case *array.Float64:
		return a.Value(i)
	case *array.String:
		return string([]byte(a.Value(i)))
	case *array.LargeString:
		return string([]byte(a.Value(i)))
	case *array.Binary:
		return append([]byte{}, a.Value(i)...)
	case *array.FixedSizeBinary:
		return append([]byte{}, a.Value(i)...)
	case *array.Date32:
		return Day(a.Value(i))
	case *array.Timestamp:
		return a.Value(i).ToTime(a.DataType().(*arrow.TimestampType).Unit)
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	}
	return nestedValue(a, i)
}

func nestedValue(a arrow.Array, i int) any {
	switch a := a.(type) {
	case *array.Dictionary:
		return Value(a.Dictionary(), a.GetValueIndex(i))
	case *array.Map:
		out := map[string]any{}
		from, to := a.ValueOffsets(i)
		for j := from; j < to; j++ {
			out[fmt.Sprint(Value(a.Keys(), int(j)))] = Value(a.Items(), int(j))
		}
		return out
	case array.ListLike:
		out := []any{}
		from, to := a.ValueOffsets(i)
		for j := from; j < to; j++ {
			out = append(out, Value(a.ListValues(), int(j)))
		}
		return out
	case *array.Struct:
		out := map[string]any{}
		for j, f := range a.DataType().(*arrow.StructType).Fields() {
			out[f.Name] = Value(a.Field(j), i)
		}
		return out
	}
	return fmt.Sprintf("%s of type %s", a.ValueStr(i), a.DataType())
}

// Row returns one row of a record as plain Go values by column name. See Value.
func Row(rec arrow.RecordBatch, i int) map[string]any {
	out := make(map[string]any, rec.NumCols())
	for j, f := range rec.Schema().Fields() {
		out[f.Name] = Value(rec.Column(j), i)
	}
	return out
}
