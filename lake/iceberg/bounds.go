package iceberg

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	icebergo "github.com/apache/iceberg-go"

	"github.com/tributary-io/tributary/lake/parquetfile"
)

const (
	// boundRunes is the length that bounds of strings are cut to: Iceberg's default metrics mode is truncate(16).
	boundRunes = 16
	// maxBounded is how many columns of a file have statistics, as Iceberg's writers hold it by default.
	maxBounded = 100
)

// fileStats are the statistics that a manifest has of a file, by field id.
type fileStats struct {
	values, nulls map[int]int64
	lower, upper  map[int][]byte
}

// newFileStats translates what was measured of a file.
func newFileStats(schema *icebergo.Schema, leaves []parquetfile.Leaf) fileStats {
	s := fileStats{map[int]int64{}, map[int]int64{}, map[int][]byte{}, map[int][]byte{}}
	for i := range leaves {
		l := &leaves[i]
		if l.Nested || len(s.values) == maxBounded {
			continue
		}
		f, ok := findPath(schema.Fields(), l.Path)
		if _, leaf := f.Type.(icebergo.PrimitiveType); !ok || !leaf {
			continue
		}
		s.values[f.ID], s.nulls[f.ID] = l.Rows, l.Nulls
		if !l.HasBounds {
			continue
		}
		s.lower[f.ID] = bound(l, &l.Min, f.Type)
		if str, ok := l.Type.(*arrow.StringType); ok && str != nil {
			s.lower[f.ID] = l.Min.Bytes[:firstRunes(l.Min.Bytes, boundRunes)]
			if upper, ok := upperText(l.Max.Bytes); ok {
				s.upper[f.ID] = upper
			}
			continue
		}
		s.upper[f.ID] = bound(l, &l.Max, f.Type)
	}
	return s
}

// findPath finds a field by its names from the top, through structs.
func findPath(fields []icebergo.NestedField, path []string) (icebergo.NestedField, bool) {
	for i := range fields {
		if fields[i].Name != path[0] {
			continue
		}
		if len(path) == 1 {
			return fields[i], true
		}
		s, ok := fields[i].Type.(*icebergo.StructType)
		if !ok {
			return icebergo.NestedField{}, false
		}
		return findPath(s.FieldList, path[1:])
	}
	return icebergo.NestedField{}, false
}

// bound serializes a bound by the type that the table has for it (specification, Appendix D).
func bound(l *parquetfile.Leaf, v *parquetfile.Value, typ icebergo.Type) []byte {
	switch l.Type.(type) {
	case *arrow.Float32Type, *arrow.Float64Type:
		if typ.Equals(icebergo.PrimitiveTypes.Float64) {
			return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v.Float))
		}
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v.Float)))
	case *arrow.Decimal128Type:
		return decimalBytes(v.Decimal.BigInt())
	case *arrow.Int64Type, *arrow.TimestampType:
		return binary.LittleEndian.AppendUint64(nil, uint64(v.Int))
	}
	if typ.Equals(icebergo.PrimitiveTypes.Int64) {
		return binary.LittleEndian.AppendUint64(nil, uint64(v.Int))
	}
	return binary.LittleEndian.AppendUint32(nil, uint32(v.Int))
}

// upperText cuts an upper bound: where characters go, the last that stays is raised. ok is false if none can be.
func upperText(v []byte) (out []byte, ok bool) {
	n := firstRunes(v, boundRunes)
	if n == len(v) {
		return v, true
	}
	for n > 0 {
		r, w := utf8.DecodeLastRune(v[:n])
		n -= w
		if r++; r == 0xD800 {
			r = 0xE000 // no character lies between
		}
		if r <= utf8.MaxRune && w > 0 && r-1 != utf8.RuneError {
			return utf8.AppendRune(append([]byte{}, v[:n]...), r), true
		}
	}
	return nil, false
}
