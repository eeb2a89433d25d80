package serde_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	oracle "github.com/twmb/avro"

	"github.com/tributary-io/tributary/serde"
)

// evolution reads values written with one schema as another, with the library behind serde.Avro and with an independent one.
func evolution[T any](t *testing.T, name, writer, reader string, value any, want T) {
	t.Helper()
	w, err := oracle.Parse(writer)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	body, err := w.Encode(value)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	reg := serde.NewMemoryRegistry()
	defer reg.Close()
	id, err := reg.Register(t.Context(), "s", writer)
	if err != nil {
		t.Fatal(err)
	}
	s := serde.Avro[T](reg, reader)
	if err := serde.Check(s); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	got, err := s.Decode(append(serde.AppendFrame(nil, int32(id)), body...))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", name, d)
	}
	resolved, err := oracle.Resolve(w, oracle.MustParse(reader))
	if err != nil {
		t.Errorf("%s: the oracle refuses: %v", name, err)
		return
	}
	var theirs T
	if _, err := resolved.Decode(body, &theirs); err != nil {
		t.Errorf("%s: the oracle: %v", name, err)
	} else if d := cmp.Diff(want, theirs); d != "" {
		t.Errorf("%s: the oracle differs: %s", name, d)
	}
}

func record(fields ...string) string {
	return `{"type":"record","name":"R","namespace":"n","fields":[` + strings.Join(fields, ",") + `]}`
}

func TestAvroEvolution(t *testing.T) {
	type one struct {
		A string `avro:"a"`
	}
	type two struct {
		A string `avro:"a"`
		B int64  `avro:"b"`
	}
	const (
		a = `{"name":"a","type":"string"}`
		b = `{"name":"b","type":"long"}`
	)
	evolution(t, "field added with a default", record(a), record(a, `{"name":"b","type":"long","default":7}`),
		map[string]any{"a": "x"}, two{"x", 7})
	evolution(t, "field dropped", record(`{"name":"gone","type":{"type":"array","items":"string"}}`, a), record(a),
		map[string]any{"a": "x", "gone": []string{"y", "z"}}, one{"x"})
	evolution(t, "fields in another order", record(b, a), record(a, b), map[string]any{"a": "x", "b": int64(1)}, two{"x", 1})
	evolution(t, "int as long", record(a, `{"name":"b","type":"int"}`), record(a, b), map[string]any{"a": "x", "b": 1}, two{"x", 1})
	evolution(t, "renamed with an alias", record(`{"name":"old","type":"string"}`), record(`{"name":"a","type":"string","aliases":["old"]}`),
		map[string]any{"old": "x"}, one{"x"})
	evolution(t, "bytes as string", record(`{"name":"a","type":"bytes"}`), record(a), map[string]any{"a": []byte("x")}, one{"x"})

	type nullable struct {
		A *string `avro:"a"`
	}
	x := "x"
	evolution(t, "made nullable", record(a), record(`{"name":"a","type":["null","string"]}`), map[string]any{"a": "x"}, nullable{&x})
	evolution(t, "decimal and time made nullable",
		record(`{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}}`, `{"name":"t","type":{"type":"long","logicalType":"timestamp-millis"}}`),
		record(`{"name":"d","type":["null",{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}]}`, `{"name":"t","type":["null",{"type":"long","logicalType":"timestamp-millis"}]}`),
		map[string]any{"d": []byte{4, 226}, "t": time.UnixMilli(1780272000123)},
		struct {
			D serde.Decimal `avro:"d"`
			T *time.Time    `avro:"t"`
		}{serde.DecimalOf(1250), new(time.UnixMilli(1780272000123).UTC())})
	evolution(t, "null added first", record(`{"name":"a","type":["string","null"]}`), record(`{"name":"a","type":["null","string"]}`),
		map[string]any{"a": nil}, nullable{nil})
	evolution(t, "nullable field added", record(b), record(b, `{"name":"a","type":["null","string"],"default":null}`),
		map[string]any{"b": int64(1)}, struct {
			A *string `avro:"a"`
			B int64   `avro:"b"`
		}{nil, 1})

	type number struct {
		A float64 `avro:"a"`
	}
	for _, from := range []string{"int", "long", "float"} {
		evolution(t, from+" as double", record(`{"name":"a","type":"`+from+`"}`), record(`{"name":"a","type":"double"}`),
			map[string]any{"a": 3}, number{3})
	}

	enum := func(def string, symbols ...string) string {
		return `{"name":"a","type":{"type":"enum","name":"E"` + def + `,"symbols":["` + strings.Join(symbols, `","`) + `"]}}`
	}
	evolution(t, "enum reordered", record(enum("", "p", "q")), record(enum("", "q", "p")), map[string]any{"a": "p"}, one{"p"})
	evolution(t, "enum symbol unknown, with a default", record(enum("", "p", "q")), record(enum(`,"default":"other"`, "p", "other")),
		map[string]any{"a": "q"}, one{"other"})

	type nested struct {
		L []two          `avro:"l"`
		M map[string]two `avro:"m"`
	}
	inner := func(fields ...string) string {
		r := `{"type":"record","name":"I","fields":[` + strings.Join(fields, ",") + `]}`
		return record(`{"name":"l","type":{"type":"array","items":`+r+`}}`, `{"name":"m","type":{"type":"map","values":"I"}}`)
	}
	v := map[string]any{"a": "x", "gone": int64(9)}
	evolution(t, "nested in an array and a map", inner(`{"name":"gone","type":"long"}`, a), inner(a, `{"name":"b","type":"long","default":5}`),
		map[string]any{"l": []any{v, v}, "m": map[string]any{"k": v}}, nested{[]two{{"x", 5}, {"x", 5}}, map[string]two{"k": {"x", 5}}})
}

func TestAvroRefusesWhatWouldBeReadWrong(t *testing.T) {
	type num struct {
		A int64 `avro:"a"`
	}
	type dec struct {
		A serde.Decimal `avro:"a"`
	}
	logical := func(typ, logical, more string) string {
		return record(`{"name":"a","type":{"type":"` + typ + `","logicalType":"` + logical + `"` + more + `}}`)
	}
	refused[num](t, logical("long", "timestamp-micros", ""), logical("long", "timestamp-millis", ""),
		"field a was written as timestamp-micros, and is declared as timestamp-millis")
	refused[dec](t, logical("bytes", "decimal", `,"precision":12,"scale":3`), logical("bytes", "decimal", `,"precision":12,"scale":2`),
		"field a was written as decimal(12,3), and is declared as decimal(12,2)")
	refused[dec](t, logical("bytes", "decimal", `,"precision":13,"scale":2`), logical("bytes", "decimal", `,"precision":12,"scale":2`),
		"decimal(13,2)")
	refused[num](t, record(`{"name":"a","type":["null","long"]}`), record(`{"name":"a","type":"long"}`), "not compatible")
	refused[num](t, record(`{"name":"b","type":"long"}`), record(`{"name":"a","type":"long"}`), "field a is missing in writer schema")
	refused[num](t, record(`{"name":"a","type":"string"}`), record(`{"name":"a","type":"long"}`), "not compatible")
	refused[num](t, `{"type":"nonsense"}`, record(`{"name":"a","type":"long"}`), "Avro schema with id 1")

	type tree struct {
		Next *tree `avro:"next"`
	}
	refused[tree](t, record(`{"name":"next","type":["null","R"]}`, `{"name":"more","type":"int"}`), record(`{"name":"next","type":["null","R"]}`), "recursive")
}

// refused checks that nothing written with one schema is read as another, and that it's the record's fault.
func refused[T any](t *testing.T, writer, reader, want string) {
	t.Helper()
	reg := serde.NewMemoryRegistry()
	defer reg.Close()
	if _, err := reg.Register(t.Context(), "s", writer); err != nil {
		t.Fatal(err)
	}
	s := serde.Avro[T](reg, reader)
	if err := serde.Check(s); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		v, err := s.Decode([]byte("\x00\x00\x00\x00\x01\x00\x00\x00"))
		if err == nil || !strings.Contains(err.Error(), want) || serde.Retriable(err) {
			t.Errorf("got %+v, %v, want %q", v, err, want)
		}
	}
}

// A field that became nullable takes another library; what is cut off or too long is noticed there as well.
func TestAvroOtherLibraryIsAsStrict(t *testing.T) {
	type nullable struct {
		A *string `avro:"a"`
	}
	reg := serde.NewMemoryRegistry()
	defer reg.Close()
	if _, err := reg.Register(t.Context(), "s", record(`{"name":"a","type":"string"}`)); err != nil {
		t.Fatal(err)
	}
	s := serde.Avro[nullable](reg, record(`{"name":"a","type":["null","string"]}`))
	data := append(serde.AppendFrame(nil, 1), "\x06abc"...)
	v, err := s.Decode(data)
	if err != nil || *v.A != "abc" {
		t.Fatalf("got %+v, %v", v, err)
	}
	copy(data[5:], "xxxx")
	if *v.A != "abc" {
		t.Errorf("the value aliases its bytes: %q", *v.A)
	}
	for _, body := range []string{"", "\x06ab", "\x06abcd"} {
		if v, err := s.Decode(append(serde.AppendFrame(nil, 1), body...)); err == nil {
			t.Errorf("%q gave %+v", body, v)
		}
	}
}

// A length or a count in a corrupt record must be found out at once, also in what is only skipped: not after 2^60 steps, not after
// an allocation of what it says, and not with the stack full.
func TestAvroCorruptLengths(t *testing.T) {
	type lists struct {
		A []string         `avro:"a"`
		M map[string]int64 `avro:"m"`
	}
	schema := record(`{"name":"a","type":{"type":"array","items":"string"}}`, `{"name":"m","type":{"type":"map","values":"long"}}`)
	s, reg := prepared[lists](t, schema)
	skipping := serde.Avro[struct{}](reg, schema)
	raw := serde.AvroBytes(reg, schema)
	const most = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" // 2^63-1
	const least = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	for _, body := range []string{
		most, least, least + least, "\x02" + most, // elements of an array, the size of a block, the length of a string
		"\x02\x01", "\x02\x04", // a string of -1 bytes, and one that isn't there
		"\x00" + most, "\x00" + least, "\x00\x02", "\x00\x02\x02k", // the same of the map
		"\x01\x00\x02x\x00\x00", "\x01\x08\x02x\x00\x00", // blocks that say a wrong size
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", // a number of more than ten bytes
	} {
		data := append(serde.AppendFrame(nil, 1), body...)
		if v, err := s.Decode(data); err == nil {
			t.Errorf("%q gave %+v", body, v)
		}
		if _, err := skipping.Decode(data); err == nil {
			t.Errorf("%q was skipped", body)
		}
		if _, err := raw.Decode(data); err == nil {
			t.Errorf("%q passed", body)
		}
	}
	for _, good := range []string{"\x00\x00", "\x02\x02x\x00\x01\x06\x02k\x02\x00", "\x02\x02x\x02\x02y\x00\x00"} {
		data := append(serde.AppendFrame(nil, 1), good...)
		_, errS := s.Decode(data)
		_, errSkip := skipping.Decode(data)
		if _, errRaw := raw.Decode(data); errS != nil || errSkip != nil || errRaw != nil {
			t.Errorf("%q: %v, %v, %v", good, errS, errSkip, errRaw)
		}
	}

	type tree struct {
		Next *tree `avro:"next"`
	}
	deep, reg := prepared[tree](t, record(`{"name":"next","type":["null","R"]}`))
	data := append(serde.AppendFrame(nil, 1), strings.Repeat("\x02", 10_000_000)+"\x00"...)
	if _, err := deep.Decode(data); err == nil {
		t.Error("ten million nested values were decoded")
	}
	if _, err := serde.AvroBytes(reg, record(`{"name":"next","type":["null","R"]}`)).Decode(data); err == nil {
		t.Error("ten million nested values passed")
	}
}

func TestAvroBytesOfAnyType(t *testing.T) {
	for _, c := range []struct{ schema, good, bad string }{
		{`"null"`, "", "x"},
		{`"boolean"`, "\x01", "\x02"},
		{`"int"`, "\x02", "\x80"},
		{`"float"`, "1234", "123"},
		{`"double"`, "12345678", "123456789"},
		{`"string"`, "\x02x", "\x04x"},
		{`["null","long"]`, "\x02\x02", "\x04\x02"},
		{`{"type":"enum","name":"E","symbols":["a","b"]}`, "\x02", "\x04"},
		{`{"type":"fixed","name":"F","size":2}`, "12", "1"},
	} {
		reg := serde.NewMemoryRegistry()
		defer reg.Close()
		if _, err := reg.Register(t.Context(), "s", c.schema); err != nil {
			t.Fatal(err)
		}
		raw := serde.AvroBytes(reg, c.schema)
		if _, err := raw.Decode(append(serde.AppendFrame(nil, 1), c.good...)); err != nil {
			t.Errorf("%s: %q: %v", c.schema, c.good, err)
		}
		if _, err := raw.Decode(append(serde.AppendFrame(nil, 1), c.bad...)); err == nil {
			t.Errorf("%s: %q passed", c.schema, c.bad)
		}
	}
}
