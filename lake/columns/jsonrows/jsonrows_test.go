package jsonrows

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/columns/avrorows"
	"github.com/tributary-io/tributary/lake/sink"
)

// reader decodes documents by a declared schema.
type reader struct {
	t   testing.TB
	d   *avrorows.Declared
	dec *Decoder
}

func newReader(t testing.TB, schema string) *reader {
	t.Helper()
	d, errs := avrorows.Declare(avrorows.Text{Schema: schema}, avrorows.Options{})
	if errs != nil {
		t.Fatal(errors.Join(errs...))
	}
	dec, err := NewDecoder(d)
	if err != nil {
		t.Fatal(err)
	}
	return &reader{t, d, dec}
}

func (r *reader) row(data string) (map[string]any, error) {
	b := columns.NewBuilder(&columns.Schema{Fields: r.d.Fields})
	if err := r.dec.Append(b, 0, []byte(data), nil); err != nil {
		return nil, err
	}
	if err := b.EndRow(); err != nil {
		return nil, err
	}
	rec := b.Record()
	row := map[string]any{}
	for i := range r.d.Fields {
		row[r.d.Fields[i].Name] = columns.Value(rec.Column(i), 0)
	}
	return row, nil
}

func recordOf(typ string) string {
	return `{"type":"record","name":"R","fields":[{"name":"f","type":` + typ + `}]}`
}

func TestWholeDocument(t *testing.T) {
	r := newReader(t, `{"type":"record","name":"Order","fields":[
	 {"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null},{"name":"state","type":{"type":"enum","name":"S","symbols":["OPEN","DONE"]},"default":"OPEN"},
	 {"name":"customer","type":{"type":"record","name":"C","fields":[{"name":"zip","type":"string","aliases":["postcode"]},{"name":"vip","type":["boolean","null"]}]}},
	 {"name":"items","type":{"type":"array","items":["null","long"]}},{"name":"by","type":{"type":"map","values":"double"}}]}`)
	for _, prefix := range []string{"", "\x00\x00\x00\x00\x07"} {
		row, err := r.row(prefix + ` { "by" : {"a\"b,}":1.5,"c":2} , "unknown":{"deep":[1,{"x":"]}"}]}, "customer":{"postcode":"1\u00e4"},"items":[1,null,-3], "id":9007199254740993}`)
		want := map[string]any{"id": int64(9007199254740993), "note": nil, "state": "OPEN", "customer": map[string]any{"zip": "1ä", "vip": nil},
			"items": []any{int64(1), nil, int64(-3)}, "by": map[string]any{"a\"b,}": 1.5, "c": 2.0}}
		if diff := cmp.Diff(want, row); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
}

func TestValues(t *testing.T) {
	utc := func(us int64) time.Time { return time.UnixMicro(us).UTC() }
	const (
		dec   = `{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`
		fdec  = `{"type":"fixed","name":"D","size":4,"logicalType":"decimal","precision":9,"scale":2}`
		union = `["null","string","long",{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]},{"type":"record","name":"B","fields":[{"name":"x","type":"int"}]}]`
	)
	member := func(name string, v any) map[string]any {
		m := map[string]any{"string": nil, "long": nil, "A": nil, "B": nil}
		m[name] = v
		return m
	}
	for _, c := range []struct {
		typ, json string
		want      any
		fails     string
	}{
		{`"boolean"`, `true`, true, ""}, {`"boolean"`, `1`, nil, "an integer is not boolean"},
		{`"int"`, `-5`, int32(-5), ""}, {`"int"`, `5.0`, int32(5), ""}, {`"int"`, `"5"`, int32(5), ""}, {`"int"`, `3000000000`, nil, "out of range"}, {`"int"`, `1.5`, nil, "fraction"},
		{`"long"`, `1e3`, int64(1000), ""}, {`"long"`, `99999999999999999999`, nil, "out of range"}, {`"long"`, `null`, nil, "null"},
		{`"double"`, `3`, 3.0, ""}, {`"double"`, `"-Infinity"`, nil, ""}, {`"double"`, `1e999`, nil, "out of range"}, {`"float"`, `1e39`, nil, "out of range"}, {`"double"`, `"x"`, nil, "a text is not double"},
		{`"string"`, `"ä\n"`, "ä\n", ""}, {`"string"`, `{}`, nil, "an object is not string"},
		{`"bytes"`, `"aGk="`, []byte("hi"), ""}, {`"bytes"`, `"_-8"`, []byte{255, 239}, ""}, {`"bytes"`, `"?"`, nil, "base64"},
		{`{"type":"fixed","name":"F","size":2}`, `"aGk"`, []byte("hi"), ""}, {`{"type":"fixed","name":"F","size":3}`, `"aGk"`, nil, "2 bytes"},
		{`{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}`, `"123E4567-e89b-12d3-a456-426614174000"`, "123e4567-e89b-12d3-a456-426614174000", ""},
		{`{"type":"enum","name":"E","symbols":["A"]}`, `"B"`, nil, "none of the symbols"}, {`{"type":"enum","name":"E","symbols":["A","Z"],"default":"Z"}`, `"B"`, "Z", ""},
		{dec, `-0.01`, "-0.01", ""}, {dec, `"1234567.89"`, "1234567.89", ""}, {dec, `1e3`, "1000.00", ""}, {dec, `1.500`, "1.50", ""}, {dec, `0`, "0.00", ""}, {dec, `-1.28`, "-1.28", ""},
		{dec, `1.005`, nil, "behind the point"}, {dec, `12345678.9`, nil, "more digits"}, {dec, `"abc"`, nil, "not a decimal"}, {dec, `1e999999999`, nil, "not a decimal"}, {dec, `"1_0"`, nil, "not a decimal"},
		{fdec, `-1.28`, "-1.28", ""},
		{`{"type":"int","logicalType":"date"}`, `"1969-12-31"`, columns.Day(-1), ""}, {`{"type":"int","logicalType":"date"}`, `3`, columns.Day(3), ""}, {`{"type":"int","logicalType":"date"}`, `"31.12.1969"`, nil, "2006-01-02"},
		{`{"type":"int","logicalType":"time-millis"}`, `"01:00:00.5"`, int64(3600500000), ""}, {`{"type":"long","logicalType":"time-micros"}`, `7`, int64(7), ""},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `"2024-01-02T03:04:05.678+01:00"`, utc(1704161045678000), ""}, {`{"type":"long","logicalType":"timestamp-micros"}`, `"1969-12-31T23:59:59.999999Z"`, utc(-1), ""},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `5`, utc(5000), ""}, {`{"type":"long","logicalType":"timestamp-micros"}`, `"2024-01-02T03:04:05"`, nil, "is not a timestamp-micros"},
		{`{"type":"long","logicalType":"local-timestamp-micros"}`, `"2024-01-02T03:04:05"`, utc(1704164645000000), ""},
		{`{"type":"fixed","name":"Du","size":12,"logicalType":"duration"}`, `{"months":1,"millis":3}`, map[string]any{"months": int64(1), "days": int64(0), "millis": int64(3)}, ""},
		{`{"type":"array","items":"int"}`, `[]`, []any{}, ""}, {`{"type":"array","items":"int"}`, `[1,"x"]`, nil, "field f.element 1"}, {`{"type":"map","values":"int"}`, `{}`, map[string]any{}, ""},
		{union, `"s"`, member("string", "s"), ""}, {union, `7`, member("long", int64(7)), ""}, {union, `null`, nil, ""}, {union, `{"B":{"x":4}}`, member("B", map[string]any{"x": int32(4)}), ""},
		{union, `{"x":4}`, nil, "fits 2 branches"}, {union, `true`, nil, "fits 0 branches"},
		{`["null","int"]`, `"x"`, nil, `"x" is not a int`},
	} {
		row, err := newReader(t, recordOf(c.typ)).row(`{"f":` + c.json + `}`)
		if c.fails != "" {
			var bad *sink.RowError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s as %s: %v, want an error of the row with %q", c.json, c.typ, err, c.fails)
			}
			continue
		}
		if c.json == `"-Infinity"` {
			if f, ok := row["f"].(float64); !ok || f > -1e300 {
				t.Errorf("%s as %s: %v, %v", c.json, c.typ, row["f"], err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, row["f"]); err != nil || diff != "" {
			t.Errorf("%s as %s: %v %s", c.json, c.typ, err, diff)
		}
	}
}

func TestWhatIsNoDocument(t *testing.T) {
	r := newReader(t, recordOf(`"int"`))
	for _, data := range []string{"", "{", `{"f":1}x`, `{"f":1,"f":2}`, "{\"f\":\"\xff\"}", "\x00\x00\x00\x00\x07", `[1]`, `{}`, `null`} {
		var bad *sink.RowError
		if _, err := r.row(data); !errors.As(err, &bad) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

// FuzzDocuments makes sure that no document ends the program, and that a row is whole or not there.
func FuzzDocuments(f *testing.F) {
	r := newReader(f, `{"type":"record","name":"R","fields":[{"name":"a","type":["null","string","long",{"type":"array","items":"double"}]},
	 {"name":"m","type":{"type":"map","values":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},"default":{}},
	 {"name":"t","type":["null",{"type":"long","logicalType":"timestamp-nanos"}]},{"name":"u","type":["null",{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}]}]}`)
	for _, seed := range []string{`{"a":[1,2.5],"m":{"x":-1.25},"t":"2024-01-02T03:04:05Z","u":null}`, `{"a":{"long":5}}`, ` {"a" : "\u00e4\\" } `, `{"t":-1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := columns.NewBuilder(&columns.Schema{Fields: r.d.Fields})
		if err := r.dec.Append(b, 0, data, nil); err != nil {
			var bad *sink.RowError
			if !errors.As(err, &bad) {
				t.Fatal(err)
			}
			b.Rollback()
			if err := r.dec.Append(b, 0, []byte(`{}`), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.EndRow(); err != nil || b.Record().NumRows() != 1 {
			t.Fatal(err)
		}
	})
}
