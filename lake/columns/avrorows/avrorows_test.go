package avrorows

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

func mustDeclare(t testing.TB, schema string) *Declared {
	t.Helper()
	d, errs := Declare(Text{Schema: schema}, Options{})
	if errs != nil {
		t.Fatal(errors.Join(errs...))
	}
	return d
}

// recordOf wraps one field's type in a record.
func recordOf(typ string) string {
	return `{"type":"record","name":"R","fields":[{"name":"f","type":` + typ + `}]}`
}

func TestDeclaredTypes(t *testing.T) {
	for _, c := range []struct{ avro, want string }{
		{`"int"`, "integer"}, {`"long"`, "long"}, {`"float"`, "float"}, {`"double"`, "double"}, {`"boolean"`, "boolean"},
		{`"string"`, "string"}, {`"bytes"`, "binary"}, {`["null","string"]`, "string"}, {`["string","null"]`, "string"}, {`["string"]`, "string"},
		{`{"type":"int","logicalType":"date"}`, "date"},
		{`{"type":"int","logicalType":"time-millis"}`, "long"},
		{`{"type":"long","logicalType":"timestamp-nanos"}`, "timestamp"},
		{`{"type":"long","logicalType":"local-timestamp-millis"}`, "timestamp_ntz"},
		{`{"type":"int","logicalType":"timestamp-millis"}`, "integer"}, // not valid on an int: ignored
		{`{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}`, "decimal(12,2)"},
		{`{"type":"fixed","name":"F","size":4}`, "binary"},
		{`{"type":"fixed","name":"F","size":16,"logicalType":"uuid"}`, "string"},
		{`{"type":"fixed","name":"F","size":12,"logicalType":"duration"}`, "struct<months:long,days:long,millis:long>"},
		{`{"type":"enum","name":"E","symbols":["A"]}`, "string"},
		{`{"type":"array","items":["null",{"type":"map","values":"int"}]}`, "array<map<string,integer>>"},
		{`["int","string",{"type":"record","name":"a.b.Foo","fields":[{"name":"x","type":"int"}]}]`, "struct<int:integer,string:string,Foo:struct<x:integer>>"},
		{`["null",{"type":"fixed","name":"a.X","size":1},{"type":"enum","name":"b.x","symbols":["A"]}]`, "struct<a_X:binary,b_x:string>"},
	} {
		d, errs := Declare(Text{Schema: recordOf(c.avro)}, Options{})
		if errs != nil {
			t.Errorf("%s: %v", c.avro, errors.Join(errs...))
			continue
		}
		if got := d.Fields[0].Type.String(); got != c.want {
			t.Errorf("%s is %s, want %s", c.avro, got, c.want)
		}
	}
	d, errs := Declare(Text{Schema: recordOf(`{"type":"long","logicalType":"local-timestamp-millis"}`)}, Options{LocalAsUTC: true})
	if errs != nil || d.Fields[0].Type.Kind != columns.Timestamp {
		t.Errorf("a local timestamp as UTC: %v, %v", d, errs)
	}
}

func TestDocsAndAttributes(t *testing.T) {
	d := mustDeclare(t, `{"type":"record","name":"R","doc":"the table","fields":[
	 {"name":"id","type":"string","doc":"the id","ods.key":true,"ods.sensitivity":"low"},
	 {"name":"amount","type":["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":2,"ods.unit":"EUR"}],"doc":"how much"},
	 {"name":"s","type":{"type":"enum","name":"E","doc":"of the type","symbols":["A","B"]}},
	 {"name":"void","type":"null"}]}`)
	want := []columns.Field{
		{Name: "id", Type: columns.Type{Kind: columns.String}, Comment: "the id", Metadata: map[string]any{"ods.key": true, "ods.sensitivity": "low"}},
		{Name: "amount", Type: columns.Type{Kind: columns.Decimal, Precision: 9, Scale: 2}, Comment: "how much", Metadata: map[string]any{"ods.unit": "EUR"}},
		{Name: "s", Type: columns.Type{Kind: columns.String}, Comment: "of the type", Metadata: map[string]any{"avro.symbols": "A,B"}},
	}
	if diff := cmp.Diff(want, d.Fields); diff != "" {
		t.Error(diff)
	}
	if d.Doc != "the table" {
		t.Errorf("the table's doc is %q", d.Doc)
	}
}

func TestRefusedSchemas(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]}]}`, "field next: record R contains itself"},
		{`{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"A","type":"int"}]}`, "field A: its name differs from a only in case"},
		{recordOf(`{"type":"bytes","logicalType":"decimal","precision":39,"scale":2}`), "field f: a decimal of 39 digits"},
		{recordOf(`{"type":"array","items":{"type":"bytes","logicalType":"big-decimal"}}`), "field f.element: a big-decimal"},
		{recordOf(`{"type":"map","values":"null"}`), "field f.value: maps of nulls"},
		{recordOf(`"null"`), "no columns"},
		{recordOf(`{"type":"record","name":"E","fields":[]}`), "field f: a struct without fields"},
		{`{"type":"record","name":"R","fields":[{"name":"f","type":"int","delta.generationExpression":"1"}]}`, "is reserved"},
		{`{"type":"record"`, "the Avro schema"},
	} {
		_, errs := Declare(Text{Schema: c.schema}, Options{})
		if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.schema, err, c.want)
		}
	}
}

func TestMismatches(t *testing.T) {
	for _, c := range []struct{ writer, declared, want string }{
		{`"string"`, `"int"`, "field f: the writer's string can't be read as the declared int"},
		{`"long"`, `"int"`, "no promotion"},
		{`["null","string"]`, `"int"`, "field f"},
		{`{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`, `{"type":"bytes","logicalType":"decimal","precision":9,"scale":3}`, "precision or scale differ"},
		{`{"type":"fixed","name":"F","size":4}`, `{"type":"fixed","name":"F","size":5}`, "the sizes differ"},
		{`{"type":"enum","name":"E","symbols":["A"]}`, `{"type":"enum","name":"E","symbols":["B"]}`, "no symbol is in both"},
		{`"boolean"`, `["null","string","int"]`, "no branch"},
	} {
		_, err := mustDeclare(t, recordOf(c.declared)).Plan(Text{Schema: recordOf(c.writer)})
		var mm *MismatchError
		if !errors.As(err, &mm) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %s: got %v, want %q", c.writer, c.declared, err, c.want)
		}
	}
	_, err := mustDeclare(t, `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}`).
		Plan(Text{Schema: `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`})
	if err == nil || !strings.Contains(err.Error(), "field b") {
		t.Errorf("a field without a default: %v", err)
	}
}

// read plans and decodes one field.
func read(t *testing.T, writer, declared string, data []byte) (any, error) {
	t.Helper()
	d := mustDeclare(t, recordOf(declared))
	p, err := d.Plan(Text{Schema: recordOf(writer)})
	if err != nil {
		t.Fatal(err)
	}
	row, err := decode(d, p, data)
	return row["f"], err
}

func TestValues(t *testing.T) {
	const dec = `{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`
	for _, c := range []struct {
		name, writer, declared string
		data                   []byte
		want                   any
		fails                  string
	}{
		{"a unit's change keeps the instant", `{"type":"long","logicalType":"timestamp-millis"}`, `{"type":"long","logicalType":"timestamp-micros"}`, []byte{4}, int64(2000), ""},
		{"a bare number has the declared unit", `"int"`, `{"type":"long","logicalType":"timestamp-millis"}`, []byte{4}, int64(2000), ""},
		{"nanoseconds are rounded down", `{"type":"long","logicalType":"timestamp-nanos"}`, `{"type":"long","logicalType":"timestamp-nanos"}`, []byte{1}, int64(-1), ""},
		{"decimal of no bytes", dec, dec, []byte{0}, nil, "zero bytes"},
		{"decimal minus a cent", dec, dec, []byte{2, 0xff}, "-0.01", ""},
		{"decimal too large", dec, dec, []byte{12, 1, 0, 0, 0, 0, 0}, nil, "precision"},
		{"null for a declared string", `["null","string"]`, `"string"`, []byte{0}, nil, "can't be read"},
		{"a string for a declared string", `["null","string"]`, `"string"`, []byte{2, 2, 'x'}, "x", ""},
		{"unknown symbol without default", `{"type":"enum","name":"E","symbols":["A","B"]}`, `{"type":"enum","name":"E","symbols":["A"]}`, []byte{2}, nil, "symbol 1"},
		{"symbol out of range", `{"type":"enum","name":"E","symbols":["A","B"]}`, `{"type":"enum","name":"E","symbols":["A","B"]}`, []byte{4}, nil, "of which there are 2"},
		{"int too long", `"int"`, `"long"`, []byte{0xfe, 0xff, 0xff, 0xff, 0x1f}, nil, "32 bits"},
		{"number too long", `"long"`, `"long"`, []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, nil, "64 bits"},
		{"short", `"double"`, `"double"`, []byte{1, 2}, nil, "in the middle"},
		{"left over", `"int"`, `"int"`, []byte{2, 2}, nil, "left after"},
		{"not UTF-8", `"string"`, `"string"`, []byte{2, 0xff}, nil, "UTF-8"},
		{"length too large", `"string"`, `"string"`, []byte{200, 1, 'x'}, nil, "announced"},
		{"negative length", `"bytes"`, `"bytes"`, []byte{1}, nil, "announced"},
		{"blocks with sizes", `{"type":"array","items":"int"}`, `{"type":"array","items":"int"}`, []byte{3, 4, 2, 4, 2, 6, 0}, []any{int32(1), int32(2), int32(3)}, ""},
		{"millis overflow", `{"type":"long","logicalType":"timestamp-millis"}`, `{"type":"long","logicalType":"timestamp-millis"}`, []byte{254, 255, 255, 255, 255, 255, 255, 255, 255, 1}, nil, "range"},
	} {
		got, err := read(t, c.writer, c.declared, c.data)
		if c.fails != "" {
			var re *sink.RowError
			if !errors.As(err, &re) || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: got %v, %v", c.name, got, err)
			}
			continue
		}
		if us, ok := c.want.(int64); ok {
			c.want = time.UnixMicro(us).UTC()
		}
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", c.name, err, d)
		}
	}
}

// TestEmptyItemsAreBounded reads counts of items that take no bytes, which a few bytes can make as large as they like.
func TestEmptyItemsAreBounded(t *testing.T) {
	d := mustDeclare(t, `{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"array","items":
	 {"type":"record","name":"I","fields":[{"name":"x","type":"int","default":7}]}}}]}`)
	p, err := d.Plan(Text{Schema: `{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"array","items":{"type":"record","name":"I","fields":[]}}},
	 {"name":"gone","type":{"type":"array","items":"null"}}]}`})
	if err != nil {
		t.Fatal(err)
	}
	huge := []byte{254, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0}
	if row, err := decode(d, p, append([]byte{4, 0}, huge...)); err != nil || len(row["f"].([]any)) != 2 {
		t.Errorf("got %v, %v", row, err)
	}
	if _, err := decode(d, p, append(huge, 0)); err == nil || !strings.Contains(err.Error(), "no bytes") {
		t.Errorf("items without end: %v", err)
	}
}

func TestSkippedRecursionIsBounded(t *testing.T) {
	w := `{"type":"record","name":"R","fields":[{"name":"f","type":"int"},{"name":"next","type":["null","R"]}]}`
	d := mustDeclare(t, recordOf(`"int"`))
	p, err := d.Plan(Text{Schema: w})
	if err != nil {
		t.Fatal(err)
	}
	if row, err := decode(d, p, []byte{2, 2, 4, 2, 6, 0}); err != nil || row["f"] != int32(1) {
		t.Errorf("got %v, %v", row, err)
	}
	deep := append([]byte(strings.Repeat("\x02\x02", 1<<20)), 2, 0)
	if _, err := decode(d, p, deep); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("a million levels: %v", err)
	}
}

func TestReferencesAndRootUnion(t *testing.T) {
	addr := `{"type":"record","name":"x.Addr","fields":[{"name":"zip","type":"string"}]}`
	main := `{"type":"record","name":"x.R","fields":[{"name":"a","type":"Addr"},{"name":"b","type":["null","x.Addr"]}]}`
	d, errs := Declare(Text{Schema: main, References: []string{addr}}, Options{})
	if errs != nil {
		t.Fatal(errors.Join(errs...))
	}
	p, err := d.Plan(Text{Schema: main, References: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	row, err := decode(d, p, []byte{2, 'z', 2, 2, 'y'})
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"zip": "z"}, "b": map[string]any{"zip": "y"}}, row); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if p, err = d.Plan(Text{Schema: `["string","x.R"]`, References: []string{addr, main}}); err != nil {
		t.Fatal(err)
	}
	if row, err = decode(d, p, []byte{2, 2, 'z', 0}); err != nil || row["b"] != nil {
		t.Errorf("got %v, %v", row, err)
	}
	if _, err = decode(d, p, []byte{0, 2, 'z'}); err == nil {
		t.Error("a string was read as the record")
	}
}

// source is a registry of two schemas; asking for id 3 fails as if it were down.
type source struct{ asked int }

func (s *source) SchemaByID(id int) (Text, error) {
	s.asked++
	switch id {
	case 1:
		return Text{Schema: recordOf(`"int"`)}, nil
	case 2:
		return Text{Schema: recordOf(`"string"`)}, nil
	case 3:
		return Text{}, errors.New("connection refused")
	}
	return Text{}, fmt.Errorf("%w: %d", ErrUnknownSchema, id)
}

func (s *source) SchemaByGUID(g [16]byte) (Text, error) { return s.SchemaByID(int(g[15])) }

func TestFraming(t *testing.T) {
	d := mustDeclare(t, recordOf(`"long"`))
	src := &source{}
	dec, err := NewDecoder(d, src)
	if err != nil {
		t.Fatal(err)
	}
	guid := make([]byte, 17)
	guid[0], guid[16] = 1, 1
	header := func(v []byte) []sink.Header {
		return []sink.Header{{Key: "other"}, {Key: "__value_schema_id", Value: v}}
	}
	b := columns.NewBuilder(&columns.Schema{Fields: d.Fields})
	for _, c := range []struct {
		data    []byte
		headers []sink.Header
		fails   string
		row     bool // the row is bad, not the registry
	}{
		{[]byte{0, 0, 0, 0, 1, 4}, nil, "", false},
		{[]byte{0, 0, 0, 0, 1, 6}, nil, "", false},
		{[]byte{4}, header([]byte{0, 0, 0, 0, 1}), "", false},
		{[]byte{4}, header(guid), "", false},
		{[]byte{4}, header([]byte{7}), "header", true},
		{nil, nil, "empty", true},
		{[]byte{0}, nil, "too few", true},
		{[]byte{0, 0, 0, 0}, nil, "too few", true},
		{[]byte(`{"f":1}`), nil, "0x7b", true},
		{[]byte{0, 0, 0, 0, 2, 2, 'x'}, nil, "can't be read", true},
		{[]byte{0, 0, 0, 0, 9, 2}, nil, "no such schema", true},
		{[]byte{0, 0, 0, 0, 3, 2}, nil, "connection refused", false},
	} {
		err := dec.Append(b, 0, c.data, c.headers)
		if c.fails == "" {
			if err != nil || b.EndRow() != nil {
				t.Errorf("%x: %v", c.data, err)
			}
			continue
		}
		b.Rollback()
		var re *sink.RowError
		if err == nil || !strings.Contains(err.Error(), c.fails) || errors.As(err, &re) != c.row {
			t.Errorf("%x: got %v", c.data, err)
		}
	}
	if b.Rows() != 4 {
		t.Errorf("%d rows, want 4", b.Rows())
	}
	if src.asked != 5 {
		t.Errorf("the source was asked %d times, want once for each of id 1, GUID, 2, 9 and 3", src.asked)
	}
}

func TestRootThatIsNoRecord(t *testing.T) {
	d, errs := Declare(Text{Schema: `["null",{"type":"array","items":"long"}]`}, Options{Name: "numbers"})
	if errs != nil {
		t.Fatal(errors.Join(errs...))
	}
	p, err := d.Plan(Text{Schema: `{"type":"array","items":"int"}`})
	if err != nil {
		t.Fatal(err)
	}
	row, err := decode(d, p, []byte{4, 2, 4, 0})
	if diff := cmp.Diff(map[string]any{"numbers": []any{int64(1), int64(2)}}, row); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestUnknownSchemasAreAskedForNowAndThen(t *testing.T) {
	src := &source{}
	d := mustDeclare(t, recordOf(`"long"`))
	dec, err := NewDecoder(d, src)
	if err != nil {
		t.Fatal(err)
	}
	b := columns.NewBuilder(&columns.Schema{Fields: d.Fields})
	for range 2*1000 + 3 {
		var re *sink.RowError
		if err := dec.Append(b, 0, []byte{0, 0, 0, 0, 9, 2}, nil); !errors.As(err, &re) {
			t.Fatal(err)
		}
		b.Rollback()
	}
	if src.asked != 3 {
		t.Errorf("asked %d times for %d records of an unknown schema, want 3", src.asked, 2*1000+3)
	}
}

const flatSchema = `{"type":"record","name":"Order","fields":[
 {"name":"event_id","type":"string"},{"name":"order_id","type":"string"},{"name":"customer_id","type":"string"},
 {"name":"status","type":{"type":"enum","name":"S","symbols":["placed","shipped","delivered","returned"]}},
 {"name":"currency","type":["null","string"]},{"name":"amount","type":"double"},{"name":"quantity","type":"int"},
 {"name":"event_time","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"ingest_time","type":{"type":"long","logicalType":"timestamp-millis"}},
 {"name":"total","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}}]}`

func flatRecord(t testing.TB) []byte {
	data, err := avro.MustParse(flatSchema).Encode(map[string]any{"event_id": "6f1c2a7e-1234-1234-1234-123456789012", "order_id": "o-123456", "customer_id": "c-12345",
		"status": "shipped", "currency": "EUR", "amount": 12.5, "quantity": 3, "event_time": int64(1780000000000000), "ingest_time": int64(1780000000000), "total": "12.50"})
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{0, 0, 0, 0, 1}, data...)
}

type oneSchema struct{}

func (oneSchema) SchemaByID(int) (Text, error) { return Text{Schema: flatSchema}, nil }

func TestFlatRecordsDontAllocate(t *testing.T) {
	d := mustDeclare(t, flatSchema)
	dec, err := NewDecoder(d, oneSchema{})
	if err != nil {
		t.Fatal(err)
	}
	b := columns.NewBuilder(&columns.Schema{Fields: d.Fields})
	data := flatRecord(t)
	row := func() {
		if err := dec.Append(b, 0, data, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 {
		row()
	}
	b.Reset()
	if n := testing.AllocsPerRun(4000, row); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func BenchmarkFlatRecord(b *testing.B) {
	d := mustDeclare(b, flatSchema)
	dec, err := NewDecoder(d, oneSchema{})
	if err != nil {
		b.Fatal(err)
	}
	bl := columns.NewBuilder(&columns.Schema{Fields: d.Fields})
	data := flatRecord(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%50000 == 0 {
			bl.Reset()
		}
		if err := dec.Append(bl, 0, data, nil); err != nil {
			b.Fatal(err)
		}
		if err := bl.EndRow(); err != nil {
			b.Fatal(err)
		}
	}
}
