package parquetfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/columns"
)

func leaf(name string, k columns.Kind) columns.Field {
	return columns.Field{Name: name, Type: columns.Type{Kind: k}}
}

func list(name string, elem columns.Type) columns.Field {
	return columns.Field{Name: name, Type: columns.Type{Kind: columns.List, Elem: &columns.Field{Name: "element", Type: elem}}}
}

// allKinds is a schema with every kind, and fill appends a row to it.
func allKinds() *columns.Schema {
	inner := columns.Type{Kind: columns.Struct, Fields: []columns.Field{leaf("s", columns.String), list("l", columns.Type{Kind: columns.Long})}}
	m := columns.Field{Name: "map", Type: columns.Type{Kind: columns.Map, Elem: &columns.Field{Name: "value", Type: inner}}}
	d := func(name string, p, s int) columns.Field {
		return columns.Field{Name: name, Type: columns.Type{Kind: columns.Decimal, Precision: p, Scale: s}}
	}
	return &columns.Schema{Fields: []columns.Field{
		leaf("bool", columns.Boolean), leaf("byte", columns.Byte), leaf("short", columns.Short), leaf("int", columns.Integer), leaf("long", columns.Long),
		leaf("float", columns.Float), leaf("double", columns.Double), leaf("string", columns.String), leaf("binary", columns.Binary), leaf("date", columns.Date),
		leaf("ts", columns.Timestamp), leaf("ntz", columns.TimestampNTZ), d("d9", 9, 2), d("d18", 18, 4), d("d38", 38, 10),
		{Name: "st", Type: inner}, list("list", inner), m,
	}}
}

func fill(b *columns.Builder, i int) {
	c := b.Columns()
	if i%7 == 6 {
		for at, n := 0, 0; n < len(b.Schema().Fields); n++ {
			if err := b.AppendNull(at); err != nil {
				panic(err)
			}
			at += b.Schema().Fields[n].Type.Width()
		}
		return
	}
	c[0].AppendBool(i%2 == 0)
	c[1].AppendInt8(int8(i))
	c[2].AppendInt16(int16(-i))
	c[3].AppendInt32(int32(i * 1000))
	c[4].AppendInt64(math.MaxInt64 - int64(i))
	c[5].AppendFloat32(float32(i) / 2)
	c[6].AppendFloat64(-float64(i))
	c[7].AppendString(fmt.Sprint("é-", i))
	c[8].AppendBytes([]byte{0, byte(i)})
	c[9].AppendInt32(int32(-i))
	c[10].AppendInt64(int64(i) * 1_000_001)
	c[11].AppendInt64(-int64(i))
	c[12].AppendDecimal(decimal128.FromI64(int64(i)))
	c[13].AppendDecimal(decimal128.FromI64(-int64(i) * 1e15))
	big10, _ := new(big.Int).SetString("99999999999999999999999999999999999999", 10)
	c[14].AppendDecimal(decimal128.FromBigInt(big10))
	inner := func(at, n int) {
		c[at].AppendStruct()
		c[at+1].AppendString("s")
		for range n {
			c[at+3].AppendInt64(int64(n))
		}
		c[at+2].AppendEnd(&c[at+3])
	}
	inner(15, i%3)
	for n := range i % 3 {
		inner(20, n)
	}
	c[19].AppendEnd(&c[20])
	c[25].AppendString("k")
	inner(26, 2)
	c[24].AppendEnd(&c[25])
}

func buildAll(t testing.TB, rows int) *columns.Builder {
	b := columns.NewBuilder(allKinds())
	for i := range rows {
		fill(b, i)
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Complete(); err != nil {
		t.Fatal(err)
	}
	return b
}

func rowsOf(rec arrow.RecordBatch) (out []map[string]any) {
	for i := range int(rec.NumRows()) {
		out = append(out, columns.Row(rec, i))
	}
	return out
}

// fataler is what testing and rapid have in common.
type fataler interface {
	Helper()
	Fatal(...any)
}

func readBack(t fataler, data []byte) (out []map[string]any, groups int) {
	t.Helper()
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	tbl, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer tbl.Release()
	tr := array.NewTableReader(tbl, 1<<20)
	defer tr.Release()
	for tr.Next() {
		out = append(out, rowsOf(tr.RecordBatch())...)
	}
	return out, pf.NumRowGroups()
}

func TestEveryKindReadsBack(t *testing.T) {
	rec := buildAll(t, 100).Record()
	for _, codec := range []string{"", "SNAPPY", "gzip", "lz4", "uncompressed"} {
		var buf bytes.Buffer
		if err := Write(&buf, rec, Measure(rec), Options{Codec: codec, RowGroupRows: 30}); err != nil {
			t.Fatal(err)
		}
		got, groups := readBack(t, buf.Bytes())
		if d := cmp.Diff(rowsOf(rec), got); d != "" {
			t.Errorf("%s: %s", codec, d)
		}
		if groups != 4 {
			t.Errorf("%d row groups for 100 rows of at most 30 each", groups)
		}
	}
	if err := Write(&bytes.Buffer{}, rec, nil, Options{Codec: "lzo9"}); err == nil || !strings.Contains(err.Error(), "lzo9") {
		t.Errorf("an unknown codec: %v", err)
	}
}

// full fails after some bytes, as a full disk does.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, errors.New("no space")
	}
	return len(p), nil
}

func TestFailingWriterAtAnyByte(t *testing.T) {
	rec := buildAll(t, 20).Record()
	leaves := Measure(rec)
	var buf bytes.Buffer
	if err := Write(&buf, rec, leaves, Options{}); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < buf.Len(); n += 7 {
		f := full(n)
		if err := Write(&f, rec, leaves, Options{}); err == nil || !strings.Contains(err.Error(), "no space") {
			t.Fatalf("a writer that takes %d of %d bytes: %v", n, buf.Len(), err)
		}
	}
}

// TestParquetTypes pins the physical and logical types that readers of lake tables expect.
func TestParquetTypes(t *testing.T) {
	rec := buildAll(t, 3).Record()
	var buf bytes.Buffer
	if err := Write(&buf, rec, Measure(rec), Options{}); err != nil {
		t.Fatal(err)
	}
	pf, err := file.NewParquetReader(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	var got []string
	for i := range pf.MetaData().Schema.NumColumns() {
		c := pf.MetaData().Schema.Column(i)
		got = append(got, fmt.Sprintf("%s %s %s", c.ColumnPath(), c.PhysicalType(), c.LogicalType()))
	}
	want := []string{
		"bool BOOLEAN None", "byte INT32 Int(bitWidth=8, isSigned=true)", "short INT32 Int(bitWidth=16, isSigned=true)",
		"int INT32 Int(bitWidth=32, isSigned=true)", "long INT64 Int(bitWidth=64, isSigned=true)", "float FLOAT None", "double DOUBLE None",
		"string BYTE_ARRAY String", "binary BYTE_ARRAY None", "date INT32 Date",
		"ts INT64 Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, force_set_converted_type=false)",
		"ntz INT64 Timestamp(isAdjustedToUTC=false, timeUnit=microseconds, is_from_converted_type=false, force_set_converted_type=false)",
		"d9 INT32 Decimal(precision=9, scale=2)", "d18 INT64 Decimal(precision=18, scale=4)", "d38 FIXED_LEN_BYTE_ARRAY Decimal(precision=38, scale=10)",
		"st.s BYTE_ARRAY String", "st.l.list.element INT64 Int(bitWidth=64, isSigned=true)",
		"list.list.element.s BYTE_ARRAY String", "list.list.element.l.list.element INT64 Int(bitWidth=64, isSigned=true)",
		"map.key_value.key BYTE_ARRAY String", "map.key_value.value.s BYTE_ARRAY String", "map.key_value.value.l.list.element INT64 Int(bitWidth=64, isSigned=true)",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for i, l := range leavesOnly(Measure(rec)) {
		if at := strings.Join(l.column, "."); at != pf.MetaData().Schema.Column(i).ColumnPath().String() {
			t.Errorf("leaf %d is thought to be column %s", i, at)
		}
	}
}

func leavesOnly(all []Leaf) (out []Leaf) {
	for _, l := range all {
		switch l.Type.ID() {
		case arrow.LIST, arrow.MAP:
		default:
			out = append(out, l)
		}
	}
	return out
}

// TestMeasureAgainstModel compares null counts and bounds with a plain look at every value.
func TestMeasureAgainstModel(t *testing.T) {
	schema := &columns.Schema{Fields: []columns.Field{leaf("n", columns.Long), leaf("f", columns.Double), leaf("s", columns.String),
		{Name: "st", Type: columns.Type{Kind: columns.Struct, Fields: []columns.Field{leaf("d", columns.Integer)}}},
		{Name: "dec", Type: columns.Type{Kind: columns.Decimal, Precision: 38}}}}
	rapid.Check(t, func(t *rapid.T) {
		b := columns.NewBuilder(schema)
		c := b.Columns()
		var n, d []int64
		var f []float64
		var s []string
		var dec []*big.Int
		nulls := map[string]int64{}
		rows := rapid.IntRange(0, 30).Draw(t, "rows")
		null := func(col int, name string) bool {
			if rapid.IntRange(0, 3).Draw(t, "null") > 0 {
				return false
			}
			nulls[name]++
			if err := b.AppendNull(col); err != nil {
				t.Fatal(err)
			}
			return true
		}
		for range rows {
			if !null(0, "n") {
				n = append(n, rapid.Int64().Draw(t, "n"))
				c[0].AppendInt64(n[len(n)-1])
			}
			if !null(1, "f") {
				f = append(f, rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1)})).Draw(t, "f"))
				c[1].AppendFloat64(f[len(f)-1])
			}
			if !null(2, "s") {
				s = append(s, rapid.StringN(0, 4, -1).Draw(t, "s"))
				c[2].AppendString(s[len(s)-1])
			}
			if !null(3, "d") {
				c[3].AppendStruct()
				if !null(4, "d") {
					d = append(d, int64(rapid.Int32().Draw(t, "d")))
					c[4].AppendInt32(int32(d[len(d)-1]))
				}
			}
			if !null(5, "dec") {
				x := new(big.Int).Mul(big.NewInt(rapid.Int64().Draw(t, "hi")), big.NewInt(rapid.Int64Range(0, 1e6).Draw(t, "lo")))
				dec = append(dec, x)
				c[5].AppendDecimal(decimal128.FromBigInt(x))
			}
			if err := b.EndRow(); err != nil {
				t.Fatal(err)
			}
		}
		leaves := Measure(b.Record())
		for i, name := range []string{"n", "f", "s", "d", "dec"} {
			if leaves[i].Nulls != nulls[name] || leaves[i].Rows != int64(rows) {
				t.Fatalf("%s: %d nulls in %d rows, want %d in %d", name, leaves[i].Nulls, leaves[i].Rows, nulls[name], rows)
			}
		}
		checkInts(t, &leaves[0], n)
		checkInts(t, &leaves[3], d)
		checkFloats(t, &leaves[1], f)
		if leaves[2].HasBounds != (len(s) > 0) {
			t.Fatalf("string bounds of %d values: %v", len(s), leaves[2].HasBounds)
		}
		for _, x := range s {
			if x < string(leaves[2].Min.Bytes) || x > string(leaves[2].Max.Bytes) {
				t.Fatalf("%q is not between %q and %q", x, leaves[2].Min.Bytes, leaves[2].Max.Bytes)
			}
		}
		for _, x := range dec {
			if x.Cmp(leaves[4].Min.Decimal.BigInt()) < 0 || x.Cmp(leaves[4].Max.Decimal.BigInt()) > 0 {
				t.Fatalf("%v is not between %v and %v", x, leaves[4].Min.Decimal.BigInt(), leaves[4].Max.Decimal.BigInt())
			}
		}
	})
}

func checkInts(t *rapid.T, l *Leaf, v []int64) {
	if l.HasBounds != (len(v) > 0) {
		t.Fatalf("bounds of %d values: %v", len(v), l.HasBounds)
	}
	if len(v) == 0 {
		return
	}
	lo, hi := v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	if l.Min.Int != lo || l.Max.Int != hi {
		t.Fatalf("bounds %d and %d, want %d and %d", l.Min.Int, l.Max.Int, lo, hi)
	}
}

func checkFloats(t *rapid.T, l *Leaf, v []float64) {
	lo, hi, nan := math.Inf(1), math.Inf(-1), false
	for _, x := range v {
		nan = nan || math.IsNaN(x)
		lo, hi = math.Min(lo, x), math.Max(hi, x)
	}
	if l.HasNaN != nan || l.HasBounds != (len(v) > 0 && !nan) {
		t.Fatalf("%v: NaN %v, bounds %v", v, l.HasNaN, l.HasBounds)
	}
	if l.HasBounds && (l.Min.Float != lo || l.Max.Float != hi) {
		t.Fatalf("bounds %v and %v, want %v and %v", l.Min.Float, l.Max.Float, lo, hi)
	}
}

func TestDistinctEstimateAndDictionaries(t *testing.T) {
	const rows = 50_000
	schema := &columns.Schema{Fields: []columns.Field{leaf("few", columns.String), leaf("unique", columns.String), leaf("some", columns.Long),
		leaf("third", columns.Long), leaf("constant", columns.Double), leaf("null", columns.Integer)}}
	b := columns.NewBuilder(schema)
	c := b.Columns()
	h := uint64(1)
	for i := range rows {
		h = mix(h + uint64(i))
		c[0].AppendString([]string{"placed", "shipped", "returned"}[h%3])
		c[1].AppendString(fmt.Sprintf("%016x", h))
		c[2].AppendInt64(int64(h % 5000))
		c[3].AppendInt64(int64(h % (rows / 3)))
		c[4].AppendFloat64(1)
		if err := b.AppendNull(5); err != nil {
			t.Fatal(err)
		}
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	rec := b.Record()
	leaves := Measure(rec)
	for i, want := range []struct {
		distinct   float64
		dictionary bool
	}{{3, true}, {rows, false}, {5000, true}, {rows / 3 * 0.95, false}, {1, true}, {1, true}} {
		l := &leaves[i]
		if got := float64(l.Distinct); got < want.distinct*0.75 || got > want.distinct*1.35 {
			t.Errorf("%s: about %v different values, want %v", l.Path, got, want.distinct)
		}
		if l.dictionary != want.dictionary {
			t.Errorf("%s: dictionary %v", l.Path, l.dictionary)
		}
	}
	var buf bytes.Buffer
	if err := Write(&buf, rec, leaves, Options{}); err != nil {
		t.Fatal(err)
	}
	pf, err := file.NewParquetReader(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	for i := range leaves {
		cc, err := pf.MetaData().RowGroup(0).ColumnChunk(i)
		if err != nil {
			t.Fatal(err)
		}
		if has := cc.HasDictionaryPage(); has != leaves[i].dictionary {
			t.Errorf("%s has a dictionary page: %v", leaves[i].Path, has)
		}
	}
	if got, _ := readBack(t, buf.Bytes()); !cmp.Equal(rowsOf(rec), got, cmpopts.EquateNaNs()) {
		t.Error("the rows read back differ")
	}
}

// TestDictionariesReadBack writes columns with few values, with and without nulls, over several row groups and pages.
func TestDictionariesReadBack(t *testing.T) {
	few := []string{"", "placed", "geliefert 😀", "a much longer value than the others, which come next"}
	rapid.Check(t, func(t *rapid.T) {
		b := columns.NewBuilder(&columns.Schema{Fields: []columns.Field{leaf("s", columns.String), leaf("n", columns.Long), leaf("full", columns.String)}})
		c := b.Columns()
		nulls := rapid.IntRange(0, 4).Draw(t, "nulls")
		for i := range rapid.IntRange(1, 400).Draw(t, "rows") {
			if nulls > 0 && i%5 < nulls {
				if err := b.AppendNull(0); err != nil {
					t.Fatal(err)
				}
			} else {
				c[0].AppendString(few[(i*7+i/11)%len(few)])
			}
			c[1].AppendInt64(int64(i % 3))
			c[2].AppendString(few[i/100%len(few)])
			if err := b.EndRow(); err != nil {
				t.Fatal(err)
			}
		}
		rec := b.Record()
		var buf bytes.Buffer
		if err := Write(&buf, rec, Measure(rec), Options{RowGroupRows: rapid.Int64Range(1, 500).Draw(t, "group")}); err != nil {
			t.Fatal(err)
		}
		got, _ := readBack(t, buf.Bytes())
		if d := cmp.Diff(rowsOf(rec), got); d != "" {
			t.Fatal(d)
		}
		checkFooterBounds(t, buf.Bytes(), got)
	})
}

// checkFooterBounds compares the footer's bounds of column 0, a string, with the rows of each row group.
func checkFooterBounds(t *rapid.T, data []byte, rows []map[string]any) {
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	for g := range pf.NumRowGroups() {
		md := pf.MetaData().RowGroup(g)
		group := rows[:md.NumRows()]
		rows = rows[md.NumRows():]
		var all []string
		nulls := int64(0)
		for _, r := range group {
			if s, ok := r["s"].(string); ok {
				all = append(all, s)
			} else {
				nulls++
			}
		}
		cc, err := md.ColumnChunk(0)
		if err != nil {
			t.Fatal(err)
		}
		st, err := cc.Statistics()
		if err != nil || st == nil {
			t.Fatal("no statistics", err)
		}
		if st.NullCount() != nulls {
			t.Fatalf("group %d: %d nulls, want %d", g, st.NullCount(), nulls)
		}
		if st.HasMinMax() && (len(all) == 0 || string(st.EncodeMin()) != slices.Min(all) || string(st.EncodeMax()) != slices.Max(all)) {
			t.Fatalf("group %d: bounds %q and %q of %q", g, st.EncodeMin(), st.EncodeMax(), all)
		}
	}
}

// TestNaNHasNoFooterBounds guards against readers that skip a file with a NaN because the footer's bounds leave it out.
func TestNaNHasNoFooterBounds(t *testing.T) {
	b := columns.NewBuilder(&columns.Schema{Fields: []columns.Field{leaf("f", columns.Double)}})
	for _, x := range []float64{1, math.NaN()} {
		b.Columns()[0].AppendFloat64(x)
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	rec := b.Record()
	var buf bytes.Buffer
	if err := Write(&buf, rec, Measure(rec), Options{}); err != nil {
		t.Fatal(err)
	}
	checkNoFooterBounds(t, buf.Bytes(), 0)
}

// checkNoFooterBounds wants the footer to say nothing of a column's bounds.
func checkNoFooterBounds(t *testing.T, data []byte, column int) {
	t.Helper()
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	cc, err := pf.MetaData().RowGroup(0).ColumnChunk(column)
	if err != nil {
		t.Fatal(err)
	}
	if set, _ := cc.StatsSet(); set {
		st, _ := cc.Statistics()
		if st.HasMinMax() {
			t.Error("the footer has bounds for a column with a NaN")
		}
	}
}

// TestStructNullsHideChildren measures a record whose null struct has a child with a value, as other makers of Arrow leave them.
func TestStructNullsHideChildren(t *testing.T) {
	child := array.NewData(arrow.PrimitiveTypes.Int64, 3, []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes([]int64{10, 99, 30}))}, nil, 0, 0)
	dt := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	sa := array.NewStructData(array.NewData(dt, 3, []*memory.Buffer{memory.NewBufferBytes([]byte{0b101})}, []arrow.ArrayData{child}, 1, 0))
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "st", Type: dt, Nullable: true}}, nil), []arrow.Array{sa}, 3)
	l := Measure(rec)[0]
	if l.Nulls != 1 || l.Min.Int != 10 || l.Max.Int != 30 {
		t.Errorf("%d nulls between %d and %d", l.Nulls, l.Min.Int, l.Max.Int)
	}
}
