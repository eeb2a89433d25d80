package columns

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func leafType(k Kind) Type { return Type{Kind: k} }

func nestedSchema() *Schema {
	inner := []Field{{Name: "s", Type: leafType(String)}, {Name: "n", Type: leafType(Long)}}
	return &Schema{Fields: []Field{
		{Name: "id", Type: leafType(Long), NotNull: true},
		{Name: "b", Type: leafType(Boolean)},
		{Name: "list", Type: Type{Kind: List, Elem: &Field{Name: "element", Type: Type{Kind: Struct, Fields: inner}}}},
		{Name: "map", Type: Type{Kind: Map, Elem: &Field{Name: "value", Type: leafType(Double)}}},
		{Name: "deep", Type: Type{Kind: Struct, Fields: []Field{{Name: "x", Type: Type{Kind: List, Elem: &Field{Name: "element", Type: leafType(Binary)}}}, {Name: "y", Type: leafType(Date)}}}},
	}}
}

// model is a row of nestedSchema as plain values; fill appends it and stops after a number of steps, as a failing plan would.
type model struct {
	id   int64
	b    *bool
	list []*item // nil: null; an item may be null, too
	m    map[string]float64
	deep *deepItem
}

type item struct {
	s string
	n *int64
}

type deepItem struct {
	x [][]byte
	y int32
}

// fill appends the row; at most `steps` appends are made.
func (r *model) fill(b *Builder, steps int) bool {
	c := b.Columns()
	n := 0
	do := func(f func()) bool {
		if n++; n > steps {
			return false
		}
		f()
		return true
	}
	if !do(func() { c[0].AppendInt64(r.id) }) {
		return false
	}
	if !do(func() {
		if r.b == nil {
			b.AppendNull(1)
		} else {
			c[1].AppendBool(*r.b)
		}
	}) {
		return false
	}
	if r.list == nil {
		if !do(func() { b.AppendNull(2) }) {
			return false
		}
	} else {
		for _, it := range r.list {
			if it == nil {
				if !do(func() { b.AppendNull(3) }) {
					return false
				}
				continue
			}
			if !do(func() { c[3].AppendStruct() }) || !do(func() { c[4].AppendString(it.s) }) || !do(func() {
				if it.n == nil {
					b.AppendNull(5)
				} else {
					c[5].AppendInt64(*it.n)
				}
			}) {
				return false
			}
		}
		if !do(func() { c[2].AppendEnd(&c[3]) }) {
			return false
		}
	}
	if r.m == nil {
		if !do(func() { b.AppendNull(6) }) {
			return false
		}
	} else {
		for k, v := range r.m {
			if !do(func() { c[7].AppendString(k) }) || !do(func() { c[8].AppendFloat64(v) }) {
				return false
			}
		}
		if !do(func() { c[6].AppendEnd(&c[7]) }) {
			return false
		}
	}
	if r.deep == nil {
		return do(func() { b.AppendNull(9) })
	}
	if !do(func() { c[9].AppendStruct() }) {
		return false
	}
	for _, x := range r.deep.x {
		if !do(func() { c[11].AppendBytes(x) }) {
			return false
		}
	}
	return do(func() { c[10].AppendEnd(&c[11]) }) && do(func() { c[12].AppendInt32(r.deep.y) })
}

func (r *model) want() map[string]any {
	out := map[string]any{"id": r.id, "b": nil, "list": nil, "map": nil, "deep": nil}
	if r.b != nil {
		out["b"] = *r.b
	}
	if r.list != nil {
		l := []any{}
		for _, it := range r.list {
			if it == nil {
				l = append(l, nil)
				continue
			}
			e := map[string]any{"s": it.s, "n": nil}
			if it.n != nil {
				e["n"] = *it.n
			}
			l = append(l, e)
		}
		out["list"] = l
	}
	if r.m != nil {
		m := map[string]any{}
		for k, v := range r.m {
			m[k] = v
		}
		out["map"] = m
	}
	if r.deep != nil {
		x := []any{}
		for _, v := range r.deep.x {
			x = append(x, append([]byte{}, v...))
		}
		out["deep"] = map[string]any{"x": x, "y": Day(r.deep.y)}
	}
	return out
}

func drawModel(t *rapid.T) *model {
	r := &model{id: rapid.Int64().Draw(t, "id")}
	if rapid.Bool().Draw(t, "hasB") {
		v := rapid.Bool().Draw(t, "b")
		r.b = &v
	}
	if rapid.Bool().Draw(t, "hasList") {
		r.list = []*item{}
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			if rapid.Bool().Draw(t, "nullItem") {
				r.list = append(r.list, nil)
				continue
			}
			it := &item{s: rapid.StringN(0, 5, -1).Draw(t, "s")}
			if rapid.Bool().Draw(t, "hasN") {
				v := rapid.Int64().Draw(t, "n")
				it.n = &v
			}
			r.list = append(r.list, it)
		}
	}
	if rapid.Bool().Draw(t, "hasMap") {
		r.m = rapid.MapOfN(rapid.StringN(0, 3, -1), rapid.Float64(), 0, 3).Draw(t, "m")
		if r.m == nil {
			r.m = map[string]float64{}
		}
	}
	if rapid.Bool().Draw(t, "hasDeep") {
		r.deep = &deepItem{x: rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 3), 0, 3).Draw(t, "x"), y: rapid.Int32Range(-100000, 100000).Draw(t, "y")}
	}
	return r
}

// TestBuilderRollback appends rows, breaks some off after any number of steps, and expects the Arrow record to hold exactly the
// whole ones; Gather must agree for any choice of rows.
func TestBuilderRollback(t *testing.T) {
	b := NewBuilder(nestedSchema()) // reused, as a sink reuses it
	rapid.Check(t, func(t *rapid.T) {
		b.Reset()
		var want []map[string]any
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			r := drawModel(t)
			steps := 1 << 20
			if rapid.Bool().Draw(t, "fails") {
				steps = rapid.IntRange(0, 12).Draw(t, "steps")
			}
			if !r.fill(b, steps) {
				b.Rollback()
				continue
			}
			if err := b.EndRow(); err != nil {
				t.Fatal(err)
			}
			want = append(want, r.want())
		}
		if err := b.Complete(); err != nil {
			t.Fatal(err)
		}
		if b.Rows() != len(want) {
			t.Fatalf("%d rows, want %d", b.Rows(), len(want))
		}
		compareRecord(t, b, want)
		var idx []int32
		var picked []map[string]any
		for i := range want {
			if rapid.Bool().Draw(t, "pick") {
				idx = append(idx, int32(i))
				picked = append(picked, want[i])
			}
		}
		compareRecord(t, b.Gather(b.Schema(), []int{0, 1, 2, 3, 4}, idx), picked)
	})
}

func compareRecord(t *rapid.T, b *Builder, want []map[string]any) {
	rec := b.Record()
	defer rec.Release()
	var got []map[string]any
	for i := range int(rec.NumRows()) {
		got = append(got, Row(rec, i))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
}

func TestBuilderRefusesNullInNotNull(t *testing.T) {
	b := NewBuilder(nestedSchema())
	if err := b.AppendNull(0); err == nil {
		t.Fatal("null in a NOT NULL column was taken")
	}
}

func TestBuilderBytesGrowWithContent(t *testing.T) {
	b := NewBuilder(&Schema{Fields: []Field{{Name: "n", Type: leafType(Long)}, {Name: "s", Type: leafType(String)}}})
	c := b.Columns()
	before := b.Bytes()
	for range 100 {
		c[0].AppendInt64(1)
		c[1].AppendString("0123456789")
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.Bytes()-before, int64(100*(8+4+10)); got != want {
		t.Fatalf("100 rows take %d bytes, want %d", got, want)
	}
}

func TestSchemaCheckNamesEveryProblem(t *testing.T) {
	s := &Schema{Fields: []Field{
		{Name: "a", Type: leafType(Long)}, {Name: "A", Type: leafType(Long)}, {Name: "x y", Type: leafType(Long)},
		{Name: "d", Type: Type{Kind: Decimal, Precision: 39}},
		{Name: "s", Type: Type{Kind: Struct, Fields: []Field{{Name: "e", Type: Type{Kind: Struct}}}}},
	}}
	var all []string
	for _, err := range s.Check() {
		all = append(all, err.Error())
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"field A: ", "field x y: ", "field d: ", "field s.e: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no problem for %q in:\n%s", want, text)
		}
	}
	if len(all) != 4 {
		t.Errorf("%d problems, want 4:\n%s", len(all), text)
	}
}

func TestDecimalFromBytes(t *testing.T) {
	for _, c := range []struct {
		bytes     []byte
		precision int
		want      string // unscaled; "" is an error
	}{
		{nil, 5, ""},
		{[]byte{0xff}, 5, "-1"},
		{[]byte{0x00, 0x80}, 5, "128"},
		{[]byte{0x80}, 5, "-128"},
		{[]byte{0x00, 0x00, 0x01}, 1, "1"},
		{[]byte{0x0a}, 1, ""},
		{make([]byte, 40), 5, "0"},
		{append([]byte{0, 0, 0, 0, 0, 0, 0, 0}, []byte{0x7f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}...), 38, ""},
		{append([]byte{1}, make([]byte, 16)...), 38, ""},
	} {
		got, err := DecimalFromBytes(c.bytes, c.precision)
		if (err != nil) != (c.want == "") || err == nil && got.BigInt().String() != c.want {
			t.Errorf("%x: got %v, %v, want %q", c.bytes, got.BigInt(), err, c.want)
		}
	}
}

func TestDecimalFromBytesAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "bytes")
		want := new(big.Int).SetBytes(b)
		if b[0]&0x80 != 0 {
			want.Sub(want, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		p := rapid.IntRange(1, 38).Draw(t, "precision")
		fits := want.CmpAbs(powersTen[p]) < 0
		got, err := DecimalFromBytes(b, p)
		if (err == nil) != fits || err == nil && got.BigInt().Cmp(want) != 0 {
			t.Fatalf("%x at precision %d: got %v, %v; want %v, fits %v", b, p, got.BigInt(), err, want, fits)
		}
	})
}

func TestDecimalFromRat(t *testing.T) {
	for _, c := range []struct{ in, want string }{{"1.5", "150"}, {"-0.01", "-1"}, {"0.001", ""}, {"1/3", ""}, {"999.99", "99999"}, {"1000", ""}} {
		r, _ := new(big.Rat).SetString(c.in)
		got, err := DecimalFromRat(r, 5, 2)
		if (err != nil) != (c.want == "") || err == nil && got.BigInt().String() != c.want {
			t.Errorf("%s: got %v, %v, want %q", c.in, got.BigInt(), err, c.want)
		}
	}
}

func TestDay(t *testing.T) {
	zone := time.FixedZone("", -11*3600)
	for _, c := range []struct {
		t    time.Time
		want string
	}{
		{time.Date(1969, 12, 31, 23, 0, 0, 0, time.UTC), "1969-12-31"},
		{time.Date(2026, 6, 1, 0, 30, 0, 0, zone), "2026-06-01"},
		{time.Time{}, "0001-01-01"},
	} {
		d := DayOf(c.t)
		if d.String() != c.want {
			t.Errorf("%v: %v, want %s", c.t, d, c.want)
		}
		var back Day
		if err := back.UnmarshalText([]byte(c.want)); err != nil || back != d {
			t.Errorf("%s reads back as %v, %v", c.want, back, err)
		}
	}
}

func TestMicrosRange(t *testing.T) {
	if _, err := Micros(time.Unix(1<<60, 0)); err == nil {
		t.Error("a time out of range was taken")
	}
	if us, err := Micros(time.Unix(0, -1)); err != nil || us != -1 {
		t.Errorf("one nanosecond before 1970 is %d µs, %v; want -1", us, err)
	}
	if _, ok := MillisToMicros(1 << 60); ok {
		t.Error("an overflow wasn't seen")
	}
}

func ExampleType_String() {
	t := Type{Kind: List, Elem: &Field{Type: Type{Kind: Struct, Fields: []Field{{Name: "price", Type: Type{Kind: Decimal, Precision: 12, Scale: 2}}}}}}
	fmt.Println(&t)
	// Output: array<struct<price:decimal(12,2)>>
}
