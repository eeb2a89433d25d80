package lake

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// localStore makes a table's folder and the store on it.
func localStore(t testing.TB) (dir string, store object.Store) {
	t.Helper()
	dir = t.TempDir()
	store, err := object.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, store
}

type nested struct {
	S string   `json:"s"`
	L []int64  `json:"l"`
	D *big.Rat `lake:"d,decimal(5,1)"`
}

type everyType struct {
	N      int64             `json:"n"`
	Bool   *bool             `json:"bool"`
	Byte   *int8             `json:"byte"`
	Short  *int16            `json:"short"`
	Int    *int32            `json:"int"`
	Long   *int64            `json:"long"`
	Float  *float32          `json:"float"`
	Double *float64          `json:"double"`
	Text   *string           `lake:"text,ods.pii=true,ods.sensitivity=high,comment=a text: ä, \"quoted\""`
	Bin    []byte            `json:"bin"`
	Date   *columns.Day      `json:"date"`
	TS     *time.Time        `json:"ts"`
	D9     *big.Rat          `lake:"d9,decimal(9,2)"`
	D18    *big.Rat          `lake:"d18,decimal(18,4)"`
	D38    *big.Rat          `lake:"d38,decimal(38,10)"`
	UUID   *[16]byte         `json:"uuid"`
	Struct *nested           `json:"struct"`
	List   []*nested         `json:"list"`
	Map    map[string]*int32 `json:"map"`
}

func p[T any](v T) *T { return &v }

func rat(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }

func everyTypeRows() []everyType {
	return []everyType{
		{N: 0},
		{N: 1, Bool: p(true), Byte: p(int8(-128)), Short: p(int16(32767)), Int: p(int32(math.MinInt32)), Long: p(int64(math.MaxInt64)), Float: p(float32(1.5)),
			Double: p(-2.5e300), Text: p("héllo \U0001F600"), Bin: []byte{0, 255}, Date: p(columns.Day(-1)), TS: p(time.UnixMicro(1780000000298999)), D9: rat("-1234567.89"),
			D18: rat("12345678901234.5678"), D38: rat("1234567890123456789012345678.0123456789"), UUID: &[16]byte{0x12, 15: 0xff},
			Struct: &nested{"in", []int64{1, 2}, rat("1.5")}, List: []*nested{{S: "a"}, nil, {S: "b", L: []int64{}}}, Map: map[string]*int32{"k": p(int32(7)), "z": nil}},
		{N: 2, Bool: p(false), Byte: p(int8(127)), Short: p(int16(-1)), Int: p(int32(0)), Long: p(int64(math.MinInt64)), Float: p(float32(math.Inf(1))),
			Double: p(math.Copysign(0, -1)), Text: p(""), Bin: []byte{}, Date: p(columns.Day(20605)), TS: p(time.UnixMicro(-1)), D9: rat("0"),
			D18: rat("-0.0001"), D38: rat("-9999999999999999999999999999.9999999999"), UUID: &[16]byte{}, Struct: &nested{}, List: []*nested{}, Map: map[string]*int32{}},
	}
}

// everyTypeWant is what rows 1 and 2 are for the independent readers.
var everyTypeWant = []map[string]string{
	{"bool": "true", "byte": "-128", "short": "32767", "int": "-2147483648", "long": "9223372036854775807", "float": "1.5", "double": "-2.5e+300", "text": "héllo \U0001F600",
		"bin": "00ff", "date": "1969-12-31", "ts": "2026-05-28T20:26:40.298999Z", "d9": "-1234567.89", "d18": "12345678901234.5678",
		"d38": "1234567890123456789012345678.0123456789", "uuid": "12000000-0000-0000-0000-0000000000ff"},
	{"bool": "false", "byte": "127", "short": "-1", "int": "0", "long": "-9223372036854775808", "float": "Infinity", "double": "-0.0", "text": "",
		"bin": "", "date": "2026-06-01", "ts": "1969-12-31T23:59:59.999999Z", "d9": "0.00", "d18": "-0.0001",
		"d38": "-9999999999999999999999999999.9999999999", "uuid": "00000000-0000-0000-0000-000000000000"},
}

func checkScalars(t *testing.T, who string, rows []readers.Row) {
	t.Helper()
	if len(rows) != 3 {
		t.Fatalf("%s reads %d rows, want 3", who, len(rows))
	}
	for col, v := range rows[0] {
		if col != "n" && v != nil {
			t.Errorf("%s: %s of the row of nulls is %v", who, col, v)
		}
	}
	for i, want := range everyTypeWant {
		for col, w := range want {
			if got := rows[i+1].Text(col); got != w && !sameNumber(got, w) {
				t.Errorf("%s: row %d: %s is %q, want %q", who, i+1, col, got, w)
			}
		}
	}
}

// sameNumber compares two spellings of one float.
func sameNumber(a, b string) bool {
	var x, y float64
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && x == y
}

// TestGoTypesInOtherReaders lands every Go type and reads the table by delta-rs and DuckDB.
func TestGoTypesInOtherReaders(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	w := openSink[string, everyType](t, Delta(dir, Comment("every type")))
	land(t, w, 0, everyTypeRows()...)
	rows := allRows(t, store)
	if len(rows) != 3 {
		t.Fatalf("our own reader finds %d rows", len(rows))
	}
	d := r.DeltaRS(t, dir, readers.Query("select * from t order by n"), readers.Txns("app/orders-sink/orders@01020300-0000-0000-0000-000000000000/0"))
	checkScalars(t, "delta-rs", d.Rows)
	if d.Count != 3 || d.Description != "every type" || d.MinReader != 1 || d.MinWriter != 2 || d.Txn["app/orders-sink/orders@01020300-0000-0000-0000-000000000000/0"] != 3 {
		t.Errorf("delta-rs: %+v", d)
	}
	if d.Comment("text") != `a text: ä, "quoted"` || d.Field("text", "ods.pii") != true || d.Field("text", "ods.sensitivity") != "high" {
		t.Errorf("delta-rs: metadata of text: %s", d.Schema)
	}
	duck := r.DuckDB(t, dir, "select * from t order by n")
	checkScalars(t, "DuckDB", duck.Rows)
	nestedText := func(row readers.Row) string {
		text, err := json.Marshal([]any{row["struct"], row["list"], row["map"]})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for i := range 3 {
		if a, b := nestedText(d.Rows[i]), nestedText(duck.Rows[i]); a != b {
			t.Errorf("row %d: the readers disagree:\n%s\n%s", i, a, b)
		}
	}
	const want = `[{"d":"1.5","l":[1,2],"s":"in"},[{"d":null,"l":null,"s":"a"},null,{"d":null,"l":[],"s":"b"}],[["k",7],["z",null]]]`
	if got := nestedText(d.Rows[1]); got != want {
		t.Errorf("row 1: nested columns are\n%s, want\n%s", got, want)
	}
	wantTypes := map[string]string{"bool": "BOOLEAN", "byte": "TINYINT", "short": "SMALLINT", "int": "INTEGER", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE",
		"text": "VARCHAR", "bin": "BLOB", "date": "DATE", "ts": "TIMESTAMP WITH TIME ZONE", "d9": "DECIMAL(9,2)", "d18": "DECIMAL(18,4)", "d38": "DECIMAL(38,10)"}
	for _, c := range duck.Columns {
		if w := wantTypes[c.Name]; w != "" && w != c.Type {
			t.Errorf("DuckDB: %s is %s, want %s", c.Name, c.Type, w)
		}
	}
}

const everyAvroType = `{"type":"record","name":"Every","doc":"every Avro type","fields":[
 {"name":"n","type":"long","doc":"number","ods.key":true},{"name":"b","type":["null","boolean"]},{"name":"i","type":["int","null"]},
 {"name":"f","type":["null","float"]},{"name":"d","type":["null","double"]},{"name":"s","type":["null","string"],"ods.pii":true,"ods.sensitivity":"high"},
 {"name":"y","type":["null","bytes"]},{"name":"fx","type":["null",{"type":"fixed","name":"Fx","size":3}]},
 {"name":"e","type":["null",{"type":"enum","name":"E","symbols":["A","B"]}]},
 {"name":"dec","type":["null",{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}]},
 {"name":"fdec","type":["null",{"type":"fixed","name":"FD","size":16,"logicalType":"decimal","precision":38,"scale":10}]},
 {"name":"u","type":["null",{"type":"string","logicalType":"uuid"}]},{"name":"fu","type":["null",{"type":"fixed","name":"FU","size":16,"logicalType":"uuid"}]},
 {"name":"date","type":["null",{"type":"int","logicalType":"date"}]},
 {"name":"tm","type":["null",{"type":"int","logicalType":"time-millis"}]},{"name":"tu","type":["null",{"type":"long","logicalType":"time-micros"}]},
 {"name":"tsm","type":["null",{"type":"long","logicalType":"timestamp-millis"}]},{"name":"tsu","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},
 {"name":"tsn","type":["null",{"type":"long","logicalType":"timestamp-nanos"}]},{"name":"local","type":["null",{"type":"long","logicalType":"local-timestamp-micros"}]},
 {"name":"dur","type":["null",{"type":"fixed","name":"Du","size":12,"logicalType":"duration"}]},
 {"name":"un","type":["null","int","string",{"type":"record","name":"Foo","fields":[{"name":"x","type":"int"}]}]},
 {"name":"arr","type":["null",{"type":"array","items":["null",{"type":"record","name":"In","fields":[{"name":"q","type":["null","string"]}]}]}]},
 {"name":"m","type":["null",{"type":"map","values":"long"}]}]}`

// everyAvroRows are a row of nulls and a row of values.
func everyAvroRows() []any {
	full := map[string]any{"n": int64(1), "b": true, "i": int32(-5), "f": float32(0.5), "d": 1.25, "s": "text", "y": []byte{1}, "fx": []byte{1, 2, 3}, "e": "B",
		"dec": rat("-12.34"), "fdec": rat("1.0000000001"), "u": "123e4567-e89b-12d3-a456-426614174000", "fu": [16]byte{0x12, 15: 1}, "date": int32(-1), "tm": int32(1001),
		"tu": int64(5), "tsm": int64(-1), "tsu": int64(1780000000298677), "tsn": int64(-1), "local": int64(1780000000298677), "dur": avro.Duration{Months: 1, Days: 2, Milliseconds: 3},
		"un": map[string]any{"Foo": map[string]any{"x": int32(4)}}, "arr": []any{nil, map[string]any{"q": "z"}}, "m": map[string]any{"k": int64(9)}}
	none := map[string]any{"n": int64(0)}
	for k := range full {
		if k != "n" {
			none[k] = nil
		}
	}
	return []any{none, full}
}

// TestAvroTypesInOtherReaders lands every Avro type from bytes and reads the table by delta-rs and DuckDB.
func TestAvroTypesInOtherReaders(t *testing.T) {
	r := readers.Open(t)
	dir, _ := localStore(t)
	w := openSink[[]byte, []byte](t, Delta(dir, AvroValue(everyAvroType, nil)))
	schema := avro.MustParse(everyAvroType)
	b := w.NewBatch()
	defer b.Release()
	for i, v := range everyAvroRows() {
		data, err := schema.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Append(nil, &data, meta(int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 2)}); err != nil {
		t.Fatal(err)
	}
	d := r.DeltaRS(t, dir, readers.Query("select * from t order by n"))
	if d.Description != "every Avro type" || d.Comment("n") != "number" || d.Field("n", "ods.key") != true || d.Field("s", "ods.sensitivity") != "high" || d.Field("e", "avro.symbols") != "A,B" {
		t.Errorf("delta-rs: %s: %s", d.Description, d.Schema)
	}
	if d.MinReader != 3 || d.MinWriter != 7 || fmt.Sprint(d.Features) != "[timestampNtz]" {
		t.Errorf("protocol %d/%d, features %v", d.MinReader, d.MinWriter, d.Features)
	}
	want := map[string]any{"n": "1", "b": "true", "i": "-5", "f": "0.5", "d": "1.25", "s": "text", "y": "01", "fx": "010203", "e": "B", "dec": "-12.34", "fdec": "1.0000000001",
		"u": "123e4567-e89b-12d3-a456-426614174000", "fu": "12000000-0000-0000-0000-000000000001", "date": "1969-12-31", "tm": "1001000", "tu": "5",
		"tsm": "1969-12-31T23:59:59.999000Z", "tsu": "2026-05-28T20:26:40.298677Z", "tsn": "1969-12-31T23:59:59.999999Z", "local": "2026-05-28T20:26:40.298677",
		"dur": "map[days:2 millis:3 months:1]", "un": "map[Foo:map[x:4] int:<nil> string:<nil>]", "arr": "[<nil> map[q:z]]", "m": "[[k 9]]"}
	duck := r.DuckDB(t, dir, "select * from t order by n")
	for who, rows := range map[string][]readers.Row{"delta-rs": d.Rows, "DuckDB": duck.Rows} {
		if len(rows) != 2 {
			t.Fatalf("%s reads %d rows", who, len(rows))
		}
		got := map[string]any{}
		for k := range rows[1] {
			got[k] = rows[1].Text(k)
			if k != "n" && rows[0][k] != nil {
				t.Errorf("%s: null %s is %v", who, k, rows[0][k])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", who, diff)
		}
	}
}

// TestSkippingBySatistics asks DuckDB and delta-rs for values at the edges of what statistics say: rows must not be skipped.
func TestSkippingByStatistics(t *testing.T) {
	r := readers.Open(t)
	type row struct {
		N  int64     `json:"n"`
		TS time.Time `json:"ts"`
		S  string    `json:"s"`
		F  float64   `json:"f"`
		D  *big.Rat  `lake:"d,decimal(38,10)"`
		In struct {
			X *int64 `json:"x"`
		} `json:"in"`
	}
	dir, store := localStore(t)
	w := openSink[string, row](t, Delta(dir))
	long := "0123456789012345678901234567890\U0001F600\U0001F601tail"
	at := time.UnixMicro(1780000000298999)
	a := row{N: 1, TS: time.UnixMicro(1780000000298677), S: long, F: math.NaN(), D: rat("1234567890123456789012345678.0123456789")}
	b := row{N: 2, TS: at, S: "0", F: 1, D: rat("-0.0000000001")}
	b.In.X = p(int64(5))
	land(t, w, 0, a, b)
	land(t, w, 2, row{N: 3, TS: at.Add(time.Hour), S: "zzz", F: -1, D: rat("5")})
	wants := map[string]int64{
		"ts = timestamp '2026-05-28 20:26:40.298999+00'":             1,
		"s = '" + long + "'":                                         1,
		"s >= '0123456789012345678901234567890\U0001F600\U0001F601'": 2,
		"f > 0.5":  2, // DuckDB orders NaN above all numbers
		"isnan(f)": 1,
		"d = 1234567890123456789012345678.0123456789": 1,
		"d < 0":            1,
		"\"in\".x = 5":     1,
		"\"in\".x is null": 2,
		"n = 3":            1,
	}
	var union []string
	for q := range wants {
		union = append(union, fmt.Sprintf("select %d want, count(*) c, $q$%s$q$ q from t where %s", wants[q], q, q))
	}
	for _, row := range r.DuckDB(t, dir, strings.Join(union, " union all ")).Rows {
		if got, want := row.Int(t, "c"), row.Int(t, "want"); got != want {
			t.Errorf("DuckDB: %s: %d rows, want %d", row.Text("q"), got, want)
		}
	}
	stats := map[string]json.RawMessage{}
	for i := range 2 {
		data, err := store.Get(ctx, fmt.Sprintf("_delta_log/%020d.json", i+1))
		if err != nil {
			t.Fatal(err)
		}
		stats[fmt.Sprint(i)] = statsOf(t, data)
	}
	const want = `{"numRecords":2,"minValues":{"n":1,"ts":"2026-05-28T20:26:40.298Z","s":"0","d":-0.0000000001,"in":{"x":5}},` +
		`"maxValues":{"n":2,"ts":"2026-05-28T20:26:40.298Z","s":"0123456789012345678901234567890😀` + "\U0010FFFF" + `","d":1234567890123456789012345678.0123456789,"in":{"x":5}},` +
		`"nullCount":{"n":0,"ts":0,"s":0,"f":0,"d":0,"in":{"x":1}}}`
	if got := string(stats["0"]); got != want {
		t.Errorf("statistics are\n%s, want\n%s", got, want)
	}
}
