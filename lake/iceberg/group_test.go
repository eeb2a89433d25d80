package iceberg_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	icebergo "github.com/apache/iceberg-go"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/iceberg"
)

// TestGroupsAreThoseOfIceberg compares how rows are divided with what iceberg-go makes of each value.
func TestGroupsAreThoseOfIceberg(t *testing.T) {
	time := []icebergo.Transform{icebergo.IdentityTransform{}, icebergo.YearTransform{}, icebergo.MonthTransform{}, icebergo.DayTransform{}, icebergo.BucketTransform{NumBuckets: 5}}
	plain := []icebergo.Transform{icebergo.IdentityTransform{}, icebergo.BucketTransform{NumBuckets: 5}, icebergo.TruncateTransform{Width: 3}}
	cases := []struct {
		typ    icebergo.Type
		fns    []icebergo.Transform
		append func(*rapid.T, array.Builder)
		arrow  arrow.DataType
	}{
		{icebergo.PrimitiveTypes.TimestampTz, append(time, icebergo.HourTransform{}), func(t *rapid.T, b array.Builder) {
			b.(*array.TimestampBuilder).Append(arrow.Timestamp(rapid.Int64Range(-4e15, 4e15).Draw(t, "us")))
		}, arrow.FixedWidthTypes.Timestamp_us},
		{icebergo.PrimitiveTypes.Date, time, func(t *rapid.T, b array.Builder) {
			b.(*array.Date32Builder).Append(arrow.Date32(rapid.Int32Range(-40000, 40000).Draw(t, "days")))
		}, arrow.FixedWidthTypes.Date32},
		{icebergo.PrimitiveTypes.Int64, plain, func(t *rapid.T, b array.Builder) {
			b.(*array.Int64Builder).Append(rapid.Int64Range(-20, 20).Draw(t, "n"))
		}, arrow.PrimitiveTypes.Int64},
		{icebergo.PrimitiveTypes.Int32, plain, func(t *rapid.T, b array.Builder) {
			b.(*array.Int32Builder).Append(rapid.Int32Range(-20, 20).Draw(t, "n"))
		}, arrow.PrimitiveTypes.Int32},
		{icebergo.PrimitiveTypes.String, plain, func(t *rapid.T, b array.Builder) {
			b.(*array.StringBuilder).Append(rapid.StringN(0, 5, -1).Draw(t, "s"))
		}, arrow.BinaryTypes.String},
		{icebergo.DecimalTypeOf(9, 2), plain, func(t *rapid.T, b array.Builder) {
			b.(*array.Decimal128Builder).Append(decimal128.FromI64(rapid.Int64Range(-500, 500).Draw(t, "d")))
		}, &arrow.Decimal128Type{Precision: 9, Scale: 2}},
		{icebergo.PrimitiveTypes.Bool, plain[:1], func(t *rapid.T, b array.Builder) {
			b.(*array.BooleanBuilder).Append(rapid.Bool().Draw(t, "b"))
		}, arrow.FixedWidthTypes.Boolean},
	}
	for _, c := range cases {
		for _, fn := range c.fns {
			t.Run(fmt.Sprint(c.typ, fn), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					b := array.NewBuilder(memory.DefaultAllocator, c.arrow)
					for range rapid.IntRange(1, 30).Draw(t, "rows") {
						if rapid.IntRange(0, 9).Draw(t, "null") == 0 {
							b.AppendNull()
						} else {
							c.append(t, b)
						}
					}
					a := b.NewArray()
					of, values, err := iceberg.Partitions(fn, c.typ, a)
					if err != nil {
						t.Fatal(err)
					}
					groups := map[string]int{}
					for i := range a.Len() {
						want := "null"
						if !a.IsNull(i) {
							want = fmt.Sprint(fn.Apply(icebergo.Optional[icebergo.Literal]{Valid: true, Val: iceberg.Literal(a, i, c.typ)}).Val)
						}
						if n, seen := groups[want]; seen && n != of[i] {
							t.Fatalf("row %d is in group %d, but %s is the value of group %d", i, of[i], want, n)
						}
						groups[want] = of[i]
					}
					if len(groups) != len(values) {
						t.Fatalf("%d groups, want %d", len(values), len(groups))
					}
				})
			})
		}
	}
}

func TestBounds(t *testing.T) {
	for in, want := range map[string]string{"": "", "abc": "abc", "0123456789abcdef": "0123456789abcdef", "0123456789abcdefg": "0123456789abcdeg",
		"0123456789abcde\U0010FFFFx": "0123456789abcdf", "0123456789abcde\uD7FFx": "0123456789abcde\uE000"} {
		if got, ok := iceberg.UpperText([]byte(in)); !ok || string(got) != want {
			t.Errorf("the upper bound of %q is %q, want %q", in, got, want)
		}
	}
	if _, ok := iceberg.UpperText([]byte("\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFFx")); ok {
		t.Error("there is no upper bound of the greatest characters")
	}
	for _, n := range []int64{0, 1, -1, 127, 128, -128, -129, 255, 256, -32768, 1 << 40, -1 << 40} {
		got, err := icebergo.LiteralFromBytes(icebergo.DecimalTypeOf(20, 0), iceberg.DecimalBytes(big.NewInt(n)))
		if err != nil || got.String() != fmt.Sprint(n) {
			t.Errorf("%d as bytes is %v, %v", n, got, err)
		}
	}
}
