package datafile

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// writeJSON writes rows as a Parquet file of the given Arrow schema, as another writer may have done.
func writeJSON(t *testing.T, store object.Store, name string, schema *arrow.Schema, rows string) {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, nil, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), name, buf.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// read reads a file by a table's schema; each row is printed.
func read(t *testing.T, store object.Store, name string, md *delta.Metadata) (rows []string, err error) {
	t.Helper()
	l, err := NewLayout(md)
	if err != nil {
		return nil, err
	}
	f, err := Open(t.Context(), store, l, &delta.Add{Path: name})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for rec, err := range f.Batches(t.Context(), 2) {
		if err != nil {
			return nil, err
		}
		if !rec.Schema().Equal(l.Arrow()) {
			t.Errorf("a batch has the schema %v, not %v", rec.Schema(), l.Arrow())
		}
		for i := range int(rec.NumRows()) {
			rows = append(rows, fmt.Sprint(l.Row(rec, i)))
		}
	}
	if f.Rows() != int64(len(rows)) {
		t.Errorf("the file says %d rows, %d came", f.Rows(), len(rows))
	}
	return rows, nil
}

func table(fields ...delta.Field) *delta.Metadata {
	return &delta.Metadata{Schema: &delta.StructType{Fields: fields}, Configuration: map[string]string{}}
}

func field(name string, t delta.Type) delta.Field {
	return delta.Field{Name: name, Type: t, Nullable: true}
}

// TestWidening reads every type that may have been another when the file was written, and refuses those that would lose something.
func TestWidening(t *testing.T) {
	store := object.NewMemory("t")
	tz := func(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u, TimeZone: "UTC"} }
	for i, c := range []struct {
		have  arrow.DataType
		value string
		want  delta.Type
		out   string // or a part of the error, behind "!"
	}{
		{arrow.PrimitiveTypes.Int8, `-7`, delta.Long, "-7"},
		{arrow.PrimitiveTypes.Int16, `-700`, delta.Integer, "-700"},
		{arrow.PrimitiveTypes.Int32, `-7`, delta.Long, "-7"},
		{arrow.PrimitiveTypes.Int32, `-7`, delta.Double, "-7"},
		{arrow.PrimitiveTypes.Int64, `7`, delta.Integer, "!doesn't become"},
		{arrow.PrimitiveTypes.Int64, `7`, delta.Double, "!doesn't become"},
		{arrow.PrimitiveTypes.Float32, `1.5`, delta.Double, "1.5"},
		{arrow.PrimitiveTypes.Float64, `1.5`, delta.Float, "!doesn't become"},
		{arrow.PrimitiveTypes.Int32, `12`, delta.Decimal(12, 2), "12.00"},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, `"-1.25"`, delta.Decimal(20, 4), "-1.2500"},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, `"1.25"`, delta.Decimal(5, 3), "!doesn't become"},
		{arrow.FixedWidthTypes.Date32, `"1969-12-31"`, delta.TimestampNTZ, "1969-12-31 00:00:00 +0000 UTC"},
		{arrow.FixedWidthTypes.Date32, `"1969-12-31"`, delta.Timestamp, "!doesn't become"},
		{tz(arrow.Millisecond), `"2026-01-02 03:04:05.678Z"`, delta.Timestamp, "2026-01-02 03:04:05.678 +0000 UTC"},
		{tz(arrow.Nanosecond), `"1969-12-31 23:59:59.000001Z"`, delta.Timestamp, "1969-12-31 23:59:59.000001 +0000 UTC"},
		{tz(arrow.Nanosecond), `"2026-01-02 03:04:05.123456789Z"`, delta.Timestamp, "!no exact form"},
		{arrow.BinaryTypes.LargeString, `"é"`, delta.String, "é"},
		{arrow.BinaryTypes.String, `"x"`, delta.Long, "!doesn't become"},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, `"d"`, delta.String, "d"},
		{arrow.BinaryTypes.LargeBinary, `"AQI="`, delta.Binary, "[1 2]"},
	} {
		name := fmt.Sprint(i, ".parquet")
		writeJSON(t, store, name, arrow.NewSchema([]arrow.Field{{Name: "c", Type: c.have, Nullable: true}}, nil), `[{"c":`+c.value+`},{"c":null},{"c":`+c.value+`}]`)
		rows, err := read(t, store, name, table(field("c", c.want)))
		if part, fails := strings.CutPrefix(c.out, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s as %s: %v, %v", c.have, c.want, rows, err)
			}
			continue
		}
		want := fmt.Sprintf("[map[c:%s] map[c:<nil>] map[c:%s]]", c.out, c.out)
		if err != nil || fmt.Sprint(rows) != want {
			t.Errorf("%s as %s: %v, %v; want %s", c.have, c.want, rows, err, want)
		}
	}
}

// nested is a file's schema with ids in places, and what is inside of structs, lists and maps.
func nested() *arrow.Schema {
	id := func(n string) arrow.Metadata { return arrow.NewMetadata([]string{fieldIDKey}, []string{n}) }
	inner := arrow.StructOf(arrow.Field{Name: "p-b", Type: arrow.PrimitiveTypes.Int32, Nullable: true, Metadata: id("3")})
	return arrow.NewSchema([]arrow.Field{
		{Name: "p-l", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: inner, Nullable: true}), Nullable: true, Metadata: id("2")},
		{Name: "p-a", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: id("1")},
		{Name: "p-m", Type: arrow.MapOf(arrow.BinaryTypes.String, inner), Nullable: true, Metadata: id("4")},
	}, nil)
}

const nestedRows = `[{"p-a":"x","p-l":[{"p-b":1},null,{"p-b":null}],"p-m":[{"key":"k","value":{"p-b":5}}]},
	{"p-a":null,"p-l":null,"p-m":null},{"p-a":"y","p-l":[],"p-m":[]}]`

// TestMapping finds columns by their physical names or ids at every depth, and adds those that the file lacks.
func TestMapping(t *testing.T) {
	store := object.NewMemory("t")
	writeJSON(t, store, "f", nested(), nestedRows)
	mapped := func(name string, id int, physical string, typ delta.Type) delta.Field {
		f := field(name, typ)
		f.Metadata = f.Metadata.With("delta.columnMapping.id", id).With("delta.columnMapping.physicalName", physical)
		return f
	}
	inner := func(suffix string) *delta.StructType {
		return &delta.StructType{Fields: []delta.Field{mapped("new", 9, "p-new"+suffix, delta.Date), mapped("b", 3, "p-b"+suffix, delta.Long)}}
	}
	for mode, suffix := range map[string]string{delta.MappingName: "", delta.MappingID: "-other"} {
		md := table(mapped("a", 1, "p-a"+suffix, delta.String), mapped("l", 2, "p-l"+suffix, &delta.ArrayType{Element: inner(suffix), ContainsNull: true}),
			mapped("m", 4, "p-m"+suffix, &delta.MapType{Key: delta.String, Value: inner(suffix), ValueContainsNull: true}), mapped("z", 8, "p-z", delta.Long))
		md.Configuration["delta.columnMapping.mode"] = mode
		rows, err := read(t, store, "f", md)
		want := "[map[a:x l:[map[b:1 new:<nil>] <nil> map[b:<nil> new:<nil>]] m:map[k:map[b:5 new:<nil>]] z:<nil>]" +
			" map[a:<nil> l:<nil> m:<nil> z:<nil>] map[a:y l:[] m:map[] z:<nil>]]"
		if err != nil || fmt.Sprint(rows) != want {
			t.Errorf("mode %s: %v, %v\nwant %s", mode, rows, err, want)
		}
	}
	md := table(field("a", delta.String))
	md.Configuration["delta.columnMapping.mode"] = delta.MappingName
	if _, err := read(t, store, "f", md); err == nil || !strings.Contains(err.Error(), "no id") {
		t.Errorf("a column without an id: %v", err)
	}
	writeJSON(t, store, "bare", arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String}}, nil), `[{"a":"x"}]`)
	md = table(mapped("a", 1, "a", delta.String))
	md.Configuration["delta.columnMapping.mode"] = delta.MappingID
	if _, err := read(t, store, "bare", md); err == nil || !strings.Contains(err.Error(), "no ids") {
		t.Errorf("a file without ids in mode id: %v", err)
	}
}

// TestRefused names what can't be read.
func TestRefused(t *testing.T) {
	store := object.NewMemory("t")
	writeJSON(t, store, "f", arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true}}, nil), `[{"a":null}]`)
	strict := field("a", delta.String)
	strict.Nullable = false
	for want, md := range map[string]*delta.Metadata{"NOT NULL": table(strict), "variant": table(field("v", delta.Variant))} {
		if _, err := read(t, store, "f", md); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	lacks := field("b", delta.Long)
	lacks.Nullable = false
	if _, err := read(t, store, "f", table(lacks)); err == nil || !strings.Contains(err.Error(), "column b") {
		t.Errorf("a NOT NULL column that the file lacks: %v", err)
	}
	if err := store.Put(t.Context(), "torn", []byte("PAR1 and then nothing")); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, store, "torn", table(field("a", delta.String))); err == nil || !strings.Contains(err.Error(), "torn") {
		t.Errorf("a torn file: %v", err)
	}
	if _, err := read(t, store, "gone", table(field("a", delta.String))); err == nil {
		t.Error("a file that isn't there was read")
	}
}

// TestBatchesOutliveTheirFile keeps batches while other files are read: memory that is used again was not theirs.
func TestBatchesOutliveTheirFile(t *testing.T) {
	store := object.NewMemory("t")
	schema := arrow.NewSchema([]arrow.Field{{Name: "p-a", Type: arrow.BinaryTypes.String}, {Name: "p-n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "p-d", Type: &arrow.Decimal128Type{Precision: 30}}, {Name: "p-t", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}}}, nil)
	l, err := NewLayout(table(field("p-a", delta.String), field("p-n", delta.Long), field("p-d", delta.Decimal(30, 0)), field("p-t", delta.String)))
	if err != nil {
		t.Fatal(err)
	}
	var kept []arrow.RecordBatch
	var want []string
	for i := range 20 {
		var rows []string
		for n := range 50 {
			x := 1_000_000*i + n
			rows = append(rows, fmt.Sprintf(`{"p-a":"text %d","p-n":%d,"p-d":"%d","p-t":"tag %d"}`, x, x, x, x%7))
			want = append(want, fmt.Sprintf("map[p-a:text %d p-d:%d p-n:%d p-t:tag %d]", x, x, x, x%7))
		}
		name := fmt.Sprint(i, ".parquet")
		writeJSON(t, store, name, schema, "["+strings.Join(rows, ",")+"]")
		f, err := Open(t.Context(), store, l, &delta.Add{Path: name})
		if err != nil {
			t.Fatal(err)
		}
		for rec, err := range f.Batches(t.Context(), 20) {
			if err != nil {
				t.Fatal(err)
			}
			rec.Retain()
			kept = append(kept, rec)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, rec := range kept {
		for i := range int(rec.NumRows()) {
			got = append(got, fmt.Sprint(l.Row(rec, i)))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("row %d is %s, want %s", i, got[i], want[i])
		}
	}
}

// TestPageBuffers grows, keeps and hands out memory of every size, also what isn't its own.
func TestPageBuffers(t *testing.T) {
	var p pageBuffers
	for _, size := range []int{0, 1, 4095, 4096, 4097, 1 << 20, 1 << 22, 1<<22 + 1} {
		b := p.Allocate(size)
		if len(b) != size {
			t.Fatalf("%d bytes, want %d", len(b), size)
		}
		for i := range b {
			b[i] = byte(i)
		}
		more := p.Reallocate(size*2+1, b)
		if len(more) != size*2+1 {
			t.Fatalf("%d bytes, want %d", len(more), size*2+1)
		}
		for i := range size {
			if more[i] != byte(i) {
				t.Fatalf("byte %d of %d is lost", i, size)
			}
		}
		p.Free(more)
		p.Free(more[:0:0])
		p.Free(nil)
		if again := p.Allocate(size); len(again) != size {
			t.Fatalf("%d bytes, want %d", len(again), size)
		}
	}
}
