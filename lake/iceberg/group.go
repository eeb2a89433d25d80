package iceberg

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	icebergo "github.com/apache/iceberg-go"
	"github.com/twmb/murmur3"
)

// group is the rows of a batch that go into one partition, since all transforms have the same results for them.
type group struct {
	rows   []int32
	values map[int]any // by the ids of partition fields; nil is a null
}

// source is one partition field of the table, and the column of the batch that it looks at.
type source struct {
	fieldID int
	fn      icebergo.Transform
	typ     icebergo.Type // of the column in the table
	array   arrow.Array   // nil: the batch has no such column, every value is null
}

// groupRows divides the rows of a batch by partition, in the order of first appearance. The keys that it compares rows by are
// computed here, without an allocation for each row; what stands in the table's manifests is computed by iceberg-go, once a group.
func groupRows(rows int, sources []source) ([]*group, error) {
	keyers := make([]keyer, len(sources))
	for i, s := range sources {
		var err error
		if keyers[i], err = newKeyer(s); err != nil {
			return nil, err
		}
	}
	groups := map[string]*group{}
	var order []*group
	var key []byte
	var last *group
	var lastKey []byte
	for i := range rows {
		key = key[:0]
		for _, k := range keyers {
			key = k(key, i)
		}
		if last == nil || string(key) != string(lastKey) {
			if last = groups[string(key)]; last == nil {
				values, err := partitionValues(sources, i)
				if err != nil {
					return nil, err
				}
				last = &group{values: values}
				groups[string(key)] = last
				order = append(order, last)
			}
			lastKey = append(lastKey[:0], key...)
		}
		last.rows = append(last.rows, int32(i))
	}
	return order, nil
}

// keyer appends what a transform makes of row i's value, so that different results give different bytes.
type keyer func(key []byte, i int) []byte

func newKeyer(s source) (keyer, error) {
	if s.array == nil {
		return func(key []byte, _ int) []byte { return append(key, 'n') }, nil
	}
	var of keyer
	var err error
	if text := textOf(s.array); text != nil {
		of, err = textKeyer(s, text)
	} else {
		of, err = numberKeyer(s)
	}
	if err != nil {
		return nil, err
	}
	a := s.array
	if a.NullN() == 0 {
		return of, nil
	}
	return func(key []byte, i int) []byte {
		if a.IsNull(i) {
			return append(key, 'n')
		}
		return of(key, i)
	}, nil
}

// textOf gives the bytes of values of a string or binary column; nil for other columns.
func textOf(a arrow.Array) func(i int) []byte {
	switch a := a.(type) {
	case *array.String:
		offsets, data := a.ValueOffsets(), a.ValueBytes()
		base := offsets[0]
		return func(i int) []byte { return data[offsets[i]-base : offsets[i+1]-base] }
	case *array.Binary:
		return a.Value
	}
	return nil
}

func textKeyer(s source, text func(int) []byte) (keyer, error) {
	_, isString := s.array.(*array.String)
	switch fn := s.fn.(type) {
	case icebergo.IdentityTransform:
		return func(key []byte, i int) []byte { return appendText(key, text(i)) }, nil
	case icebergo.BucketTransform:
		return func(key []byte, i int) []byte { return appendBucket(key, text(i), fn.NumBuckets) }, nil
	case icebergo.TruncateTransform:
		return func(key []byte, i int) []byte {
			v := text(i)
			if isString {
				return appendText(key, v[:firstRunes(v, fn.Width)])
			}
			return appendText(key, v[:min(len(v), fn.Width)])
		}, nil
	}
	return nil, unknownTransform(s)
}

// firstRunes is the number of bytes that the first n characters take.
func firstRunes(v []byte, n int) (size int) {
	for range n {
		if size == len(v) {
			break
		}
		_, w := utf8.DecodeRune(v[size:])
		size += w
	}
	return size
}

func appendText(key, v []byte) []byte {
	return append(binary.AppendUvarint(append(key, 'v'), uint64(len(v))), v...)
}

func appendNumber(key []byte, v int64) []byte {
	return binary.LittleEndian.AppendUint64(append(key, 'v'), uint64(v))
}

// appendBucket appends the bucket of a value's hashed form (specification, Appendix B).
func appendBucket(key, hashed []byte, buckets int) []byte {
	return appendNumber(key, int64(murmur3.Sum32(hashed)&math.MaxInt32)%int64(buckets))
}

const (
	microsPerHour = int64(time.Hour / time.Microsecond)
	microsPerDay  = 24 * microsPerHour
)

// numberKeyer serves columns whose values fit into 64 bits, and decimals.
func numberKeyer(s source) (keyer, error) {
	if d, ok := s.array.(*array.Decimal128); ok {
		return decimalKeyer(s, d)
	}
	number := numberOf(s.array)
	if number == nil {
		return nil, fmt.Errorf("a column of type %s can't be partitioned by", s.array.DataType())
	}
	unit := int64(1) // of the column in a day: dates count days
	if s.array.DataType().ID() == arrow.TIMESTAMP {
		unit = microsPerDay
	}
	switch fn := s.fn.(type) {
	case icebergo.IdentityTransform:
		return func(key []byte, i int) []byte { return appendNumber(key, number(i)) }, nil
	case icebergo.HourTransform:
		return func(key []byte, i int) []byte { return appendNumber(key, floorDiv(number(i), microsPerHour)) }, nil
	case icebergo.DayTransform:
		return func(key []byte, i int) []byte { return appendNumber(key, floorDiv(number(i), unit)) }, nil
	case icebergo.MonthTransform:
		return func(key []byte, i int) []byte {
			y, m, _ := dayOf(floorDiv(number(i), unit))
			return appendNumber(key, int64(y)*12+int64(m))
		}, nil
	case icebergo.YearTransform:
		return func(key []byte, i int) []byte {
			y, _, _ := dayOf(floorDiv(number(i), unit))
			return appendNumber(key, int64(y))
		}, nil
	case icebergo.BucketTransform:
		return func(key []byte, i int) []byte {
			var buf [8]byte
			binary.LittleEndian.PutUint64(buf[:], uint64(number(i)))
			return appendBucket(key, buf[:], fn.NumBuckets)
		}, nil
	case icebergo.TruncateTransform:
		return func(key []byte, i int) []byte { return appendNumber(key, floorDiv(number(i), int64(fn.Width))) }, nil
	}
	return nil, unknownTransform(s)
}

func dayOf(days int64) (int, time.Month, int) { return time.Unix(days*86400, 0).UTC().Date() }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// decimalKeyer compares decimals by what iceberg-go makes of each: they are rare as partition columns.
func decimalKeyer(s source, a *array.Decimal128) (keyer, error) {
	return func(key []byte, i int) []byte {
		v := s.fn.Apply(icebergo.Optional[icebergo.Literal]{Valid: true, Val: literal(a, i, s.typ)})
		return appendText(key, []byte(v.Val.String()))
	}, nil
}

func unknownTransform(s source) error {
	return fmt.Errorf("the transform %v on a column of type %s is not known to this writer", s.fn, s.array.DataType())
}

// numberOf reads a column's values as 64-bit numbers; nil if they aren't.
func numberOf(a arrow.Array) func(i int) int64 {
	switch a := a.(type) {
	case *array.Boolean:
		return func(i int) int64 {
			if a.Value(i) {
				return 1
			}
			return 0
		}
	case *array.Int32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int64:
		return a.Value
	case *array.Date32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Timestamp:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Float32:
		return func(i int) int64 { return int64(math.Float32bits(a.Value(i))) }
	case *array.Float64:
		return func(i int) int64 { return int64(math.Float64bits(a.Value(i))) }
	}
	return nil
}

// partitionValues computes the values of a row's partition as manifests have them.
func partitionValues(sources []source, row int) (map[int]any, error) {
	out := make(map[int]any, len(sources))
	for _, s := range sources {
		out[s.fieldID] = nil
		if s.array == nil || s.array.IsNull(row) {
			continue
		}
		v := s.fn.Apply(icebergo.Optional[icebergo.Literal]{Valid: true, Val: literal(s.array, row, s.typ)})
		if !v.Valid {
			return nil, unknownTransform(s)
		}
		out[s.fieldID] = v.Val.Any()
	}
	return out, nil
}
