package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet/file"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/columns"
)

// boundOf writes a bound of ours as a number or text that can be compared with the footer's.
func boundOf(l *Leaf, v Value) any {
	switch l.Type.(type) {
	case *arrow.StringType:
		return string(v.Bytes)
	case *arrow.Float32Type, *arrow.Float64Type:
		return v.Float + 0 // -0.0 and 0.0 are one
	case *arrow.Decimal128Type:
		return v.Decimal.BigInt().String()
	}
	return fmt.Sprint(v.Int)
}

// footerOf reads a bound of the footer in the same form.
func footerOf(l *Leaf, raw []byte) any {
	switch l.Type.(type) {
	case *arrow.StringType:
		return string(raw)
	case *arrow.Float32Type:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))) + 0
	case *arrow.Float64Type:
		return math.Float64frombits(binary.LittleEndian.Uint64(raw)) + 0
	case *arrow.Decimal128Type:
		if len(raw) > 8 {
			n := new(big.Int).SetBytes(raw)
			if raw[0]&0x80 != 0 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
			}
			return n.String()
		}
	}
	if len(raw) == 4 {
		return fmt.Sprint(int32(binary.LittleEndian.Uint32(raw)))
	}
	return fmt.Sprint(int64(binary.LittleEndian.Uint64(raw)))
}

// TestFootersAgreeWithMeasure draws numbers, texts and decimals, and compares the bounds that readers find in the file with ours.
func TestFootersAgreeWithMeasure(t *testing.T) {
	d := func(name string, p int) columns.Field {
		return columns.Field{Name: name, Type: columns.Type{Kind: columns.Decimal, Precision: p, Scale: 1}}
	}
	schema := &columns.Schema{Fields: []columns.Field{leaf("byte", columns.Byte), leaf("int", columns.Integer), leaf("long", columns.Long), leaf("float", columns.Float),
		leaf("double", columns.Double), leaf("text", columns.String), leaf("date", columns.Date), leaf("ts", columns.Timestamp), d("d9", 9), d("d18", 18), d("d38", 38)}}
	rapid.Check(t, func(t *rapid.T) {
		b := columns.NewBuilder(schema)
		c := b.Columns()
		small := rapid.Bool().Draw(t, "small") // few values, so that columns get dictionaries
		num := func(bits int) int64 {
			n := rapid.Int64().Draw(t, "n") >> (64 - bits)
			if small {
				n %= 3
			}
			return n
		}
		for range rapid.IntRange(1, 60).Draw(t, "rows") {
			appends := []func(){
				func() { c[0].AppendInt8(int8(num(8))) }, func() { c[1].AppendInt32(int32(num(32))) }, func() { c[2].AppendInt64(num(64)) },
				func() { c[3].AppendFloat32(float32(num(20)) / 2) }, func() { c[4].AppendFloat64(-float64(num(40))) }, func() { c[5].AppendString(fmt.Sprint(num(16))) },
				func() { c[6].AppendInt32(int32(num(20))) }, func() { c[7].AppendInt64(num(50)) }, func() { c[8].AppendDecimal(decimal128.FromI64(num(29))) },
				func() { c[9].AppendDecimal(decimal128.FromI64(num(59))) },
				func() {
					c[10].AppendDecimal(decimal128.FromBigInt(new(big.Int).Mul(big.NewInt(num(60)), big.NewInt(num(60)))))
				},
			}
			for i, f := range appends {
				if rapid.IntRange(0, 5).Draw(t, "null") == 0 {
					if err := b.AppendNull(i); err != nil {
						t.Fatal(err)
					}
				} else {
					f()
				}
			}
			if err := b.EndRow(); err != nil {
				t.Fatal(err)
			}
		}
		rec := b.Record()
		leaves := Measure(rec)
		var buf bytes.Buffer
		if err := Write(&buf, rec, leaves, Options{}); err != nil {
			t.Fatal(err)
		}
		compareFooter(t, leaves, buf.Bytes())
	})
}

func compareFooter(t *rapid.T, leaves []Leaf, data []byte) {
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	for i := range leaves {
		l := &leaves[i]
		cc, err := pf.MetaData().RowGroup(0).ColumnChunk(i)
		if err != nil {
			t.Fatal(err)
		}
		st, err := cc.Statistics()
		if err != nil || st == nil {
			t.Fatalf("%s: no statistics: %v", l.Path, err)
		}
		if st.NullCount() != l.Nulls || st.HasMinMax() && !l.HasBounds {
			t.Fatalf("%s: the footer has %d nulls and bounds %v, we have %d and %v", l.Path, st.NullCount(), st.HasMinMax(), l.Nulls, l.HasBounds)
		}
		if !st.HasMinMax() {
			continue
		}
		if lo, hi := footerOf(l, st.EncodeMin()), footerOf(l, st.EncodeMax()); lo != boundOf(l, l.Min) || hi != boundOf(l, l.Max) {
			t.Fatalf("%s: the footer says %v to %v, we say %v to %v", l.Path, lo, hi, boundOf(l, l.Min), boundOf(l, l.Max))
		}
	}
}

// TestPageIndex finds the places and bounds of all pages in a file, so that readers can skip pages, but no bounds of columns with NaN.
func TestPageIndex(t *testing.T) {
	schema := &columns.Schema{Fields: []columns.Field{leaf("long", columns.Long), leaf("text", columns.String), leaf("nan", columns.Double)}}
	b := columns.NewBuilder(schema)
	c := b.Columns()
	const rows = 200_000
	for i := range rows {
		c[0].AppendInt64(int64(i) * 1_000_003)
		c[1].AppendString(fmt.Sprintf("%020d", i))
		c[2].AppendFloat64(math.NaN())
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	rec := b.Record()
	defer rec.Release()
	var out bytes.Buffer
	if err := Write(&out, rec, Measure(rec), Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := file.NewParquetReader(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	group, err := r.GetPageIndexReader().RowGroup(0)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"long", "text", "nan"} {
		places, err := group.GetOffsetIndex(i)
		if err != nil || places == nil || len(places.GetPageLocations()) < 2 {
			t.Fatalf("%s: the places of its pages are %v, %v", name, places, err)
		}
		bounds, err := group.GetColumnIndex(i)
		if err != nil {
			t.Fatal(err)
		}
		if name == "nan" {
			if bounds != nil {
				t.Errorf("%s has bounds", name)
			}
			continue
		}
		if bounds == nil {
			t.Fatalf("%s has no bounds of pages", name)
		}
		if n := len(bounds.GetMinValues()); n != len(places.GetPageLocations()) {
			t.Errorf("%s: bounds of %d pages, places of %d", name, n, len(places.GetPageLocations()))
		}
		if name == "text" {
			if lo := string(bounds.GetMinValues()[0]); lo != fmt.Sprintf("%020d", 0) {
				t.Errorf("the first page begins at %s", lo)
			}
		}
	}
}
