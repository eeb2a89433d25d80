package delta

import (
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// appendParsedStats turns the statistics that some checkpoints hold as structs (stats_parsed) back into an add action's JSON.
// Values without a JSON form (NaN) and of types without bounds are left out, which is always right.
func appendParsedStats(dst []byte, a arrow.Array, i int) []byte {
	s, ok := a.(*array.Struct)
	if !ok {
		return appendParsedValue(dst, a, i)
	}
	dst = append(dst, '{')
	first := true
	for n, f := range s.DataType().(*arrow.StructType).Fields() {
		member := s.Field(n)
		if member.IsNull(i) {
			continue
		}
		start := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, f.Name), ':')
		before := len(dst)
		if dst = appendParsedStats(dst, member, i); len(dst) == before {
			dst = dst[:start]
			continue
		}
		first = false
	}
	return append(dst, '}')
}

// appendParsedValue appends one value, or nothing.
func appendParsedValue(dst []byte, a arrow.Array, i int) []byte {
	float := func(v float64) []byte {
		if out := AppendFloatStat(dst, v, !math.Signbit(v)); out != nil {
			return out
		}
		return dst
	}
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.AppendBool(dst, a.Value(i))
	case *array.Int8:
		return AppendIntStat(dst, int64(a.Value(i)))
	case *array.Int16:
		return AppendIntStat(dst, int64(a.Value(i)))
	case *array.Int32:
		return AppendIntStat(dst, int64(a.Value(i)))
	case *array.Int64:
		return AppendIntStat(dst, a.Value(i))
	case *array.Float32:
		return float(float64(a.Value(i)))
	case *array.Float64:
		return float(a.Value(i))
	case *array.Date32:
		return AppendDateStat(dst, int32(a.Value(i)))
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		return AppendTimestampStat(dst, a.Value(i).ToTime(t.Unit).UnixMicro(), t.TimeZone != "")
	case *array.Decimal128:
		return AppendDecimalStat(dst, a.Value(i).BigInt(), int(a.DataType().(*arrow.Decimal128Type).Scale))
	case array.StringLike:
		return appendJSONString(dst, a.Value(i))
	}
	return dst
}
