package gorows

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

// build compiles T, appends the rows and returns the columns as plain values.
func build[T any](t *testing.T, opts Options, rows ...T) ([]map[string]any, *Plan) {
	t.Helper()
	p, errs := Compile(reflect.TypeFor[T](), opts)
	if errs != nil {
		t.Fatal(errors.Join(errs...))
	}
	b := columns.NewBuilder(&columns.Schema{Fields: p.Fields})
	for i := range rows {
		null, err := p.Append(b, 0, &rows[i])
		if err == nil && null {
			err = p.AppendNulls(b, 0)
		}
		if err == nil {
			err = b.EndRow()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Complete(); err != nil {
		t.Fatal(err)
	}
	rec := b.Record()
	defer rec.Release()
	var out []map[string]any
	for i := range rows {
		out = append(out, columns.Row(rec, i))
	}
	return out, p
}

type color int

func (c color) MarshalText() ([]byte, error) {
	if c == 0 {
		return nil, errors.New("no colour")
	}
	return fmt.Appendf(nil, "color-%d", int(c)), nil
}

type inner struct {
	A string   `json:"a"`
	B *int64   `json:"b"`
	C []inner2 `json:"c"`
}

type inner2 struct{ X float64 }

type everything struct {
	Bool    bool
	I8      int8
	I16     int16
	I32     int32
	I64     int64
	Int     int
	U8      uint8
	U16     uint16
	U32     uint32
	U64     uint64
	F32     float32
	F64     float64
	Str     string
	Raw     []byte
	Text    []byte `lake:",string"`
	Arr     [3]byte
	UUID    [16]byte
	Time    time.Time
	Date    time.Time `lake:",date"`
	Day     columns.Day
	Dur     time.Duration
	Rat     *big.Rat `lake:"rat,decimal(10,2),comment=exact, always"`
	Cents   int64    `lake:"cents,decimal(12,2),ods.pii=true"`
	Big     big.Int
	Ptr     *string
	PtrPtr  **int32
	Inner   inner
	PInner  *inner
	List    []string
	Lists   [][]int32
	Fixed   [2]int16
	Map     map[string]*int64
	Structs map[string]inner2
	Color   color
	Addr    netip.Addr
	hidden  int
	Skip    chan int `lake:"-"`
	SkipJ   chan int `json:"-"`
	Avro    string   `avro:"from_avro" json:"other"`
	JSON    string   `json:"from_json,omitempty"`
}

func TestEveryType(t *testing.T) {
	s, i32, i64 := "x", int32(7), int64(9)
	pi32 := &i32
	at := time.Date(2026, 6, 1, 23, 30, 1, 123456789, time.FixedZone("", -2*3600))
	full := everything{Bool: true, I8: -8, I16: -16, I32: -32, I64: math.MinInt64, Int: 5, U8: 255, U16: 65535, U32: math.MaxUint32,
		U64: math.MaxInt64, F32: 1.5, F64: math.Inf(-1), Str: "né", Raw: []byte{0, 255}, Text: []byte("text"), Arr: [3]byte{1, 2, 3},
		UUID: [16]byte{0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0}, Time: at, Date: at, Day: -1,
		Dur: -1500, Rat: big.NewRat(-5, 4), Cents: 1999, Ptr: &s, PtrPtr: &pi32, Inner: inner{A: "a", B: &i64, C: []inner2{{1}, {2}}},
		PInner: &inner{A: "p"}, List: []string{"a", ""}, Lists: [][]int32{{1}, nil, {}}, Fixed: [2]int16{3, 4},
		Map: map[string]*int64{"z": nil, "a": &i64}, Structs: map[string]inner2{"k": {3}}, Color: 2, Addr: netip.MustParseAddr("10.0.0.1"),
		hidden: 1, Avro: "av", JSON: "js"}
	full.Big.SetString("12345678901234567890123456789", 10)
	empty := everything{Color: 1, Rat: big.NewRat(0, 1)}
	empty.Time = time.Unix(0, 0)
	empty.Date = empty.Time.UTC()
	got, p := build(t, Options{}, full, empty)
	want := map[string]any{"Bool": true, "I8": int8(-8), "I16": int16(-16), "I32": int32(-32), "I64": int64(math.MinInt64), "Int": int64(5),
		"U8": int16(255), "U16": int32(65535), "U32": int64(math.MaxUint32), "U64": int64(math.MaxInt64), "F32": float32(1.5), "F64": math.Inf(-1),
		"Str": "né", "Raw": []byte{0, 255}, "Text": "text", "Arr": []byte{1, 2, 3}, "UUID": "123e4567-e89b-12d3-a456-426614174000",
		"Time": time.Date(2026, 6, 2, 1, 30, 1, 123456000, time.UTC), "Date": columns.DayOf(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)), "Day": columns.Day(-1),
		"Dur": int64(-2), "rat": "-1.25", "cents": "19.99", "Big": "12345678901234567890123456789", "Ptr": "x", "PtrPtr": int32(7),
		"Inner":  map[string]any{"a": "a", "b": int64(9), "c": []any{map[string]any{"X": 1.0}, map[string]any{"X": 2.0}}},
		"PInner": map[string]any{"a": "p", "b": nil, "c": nil}, "List": []any{"a", ""}, "Lists": []any{[]any{int32(1)}, nil, []any{}},
		"Fixed": []any{int16(3), int16(4)}, "Map": map[string]any{"z": nil, "a": int64(9)}, "Structs": map[string]any{"k": map[string]any{"X": 3.0}},
		"Color": "color-2", "Addr": "10.0.0.1", "from_avro": "av", "from_json": "js"}
	if d := cmp.Diff(want, got[0]); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"Raw", "Text", "Ptr", "PtrPtr", "PInner", "List", "Lists", "Map", "Structs"} {
		if v := got[1][name]; v != nil {
			t.Errorf("nil %s is stored as %v", name, v)
		}
	}
	for _, f := range p.Fields {
		switch f.Name {
		case "rat":
			if f.Type.String() != "decimal(10,2)" || f.Comment != "exact, always" {
				t.Errorf("rat is %s with comment %q", &f.Type, f.Comment)
			}
		case "cents":
			if f.Metadata["ods.pii"] != true {
				t.Errorf("cents has tags %v", f.Metadata)
			}
		}
	}
}

type base struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type Deep struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

type embeds struct {
	base
	*Deep
	Own  string `json:"own"`
	Name string `json:"name"` // the shallowest wins
}

// TestEmbeddedAsEncodingJSON compares names and values with what encoding/json makes of the same type.
func TestEmbeddedAsEncodingJSON(t *testing.T) {
	v := embeds{base: base{"1", "base"}, Deep: &Deep{"deep", "k"}, Own: "o", Name: "own"}
	got, _ := build(t, Options{}, v, embeds{})
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got[0]); d != "" {
		t.Error(d)
	}
	if got[1]["kind"] != nil || got[1]["own"] != "" {
		t.Errorf("a nil embedded pointer gives %v", got[1])
	}
}

func TestScalarAndPointerValues(t *testing.T) {
	got, _ := build(t, Options{}, int64(5))
	if got[0]["value"] != int64(5) {
		t.Errorf("got %v", got)
	}
	v := "k"
	keys, _ := build(t, Options{Name: "key"}, &v, nil)
	if keys[0]["key"] != "k" || keys[1]["key"] != nil {
		t.Errorf("got %v", keys)
	}
	structs, _ := build(t, Options{}, &base{"1", "n"}, nil)
	if structs[0]["id"] != "1" || structs[1]["id"] != nil {
		t.Errorf("got %v", structs)
	}
	nested, _ := build(t, Options{Name: "key", Nested: true}, base{"1", "n"})
	if d := cmp.Diff(map[string]any{"key": map[string]any{"id": "1", "name": "n"}}, nested[0]); d != "" {
		t.Error(d)
	}
}

func TestHints(t *testing.T) {
	type row struct {
		D    *big.Rat  `json:"d"`
		Day  time.Time `json:"day"`
		Loc  time.Time `json:"loc"`
		Days int32     `json:"days"`
		Wide int32     `json:"wide"`
		Tiny int8      `json:"tiny"`
		F    float32   `json:"f"`
		Text []byte    `json:"text"`
		Sum  []byte    `json:"sum"`
		None []byte    `lake:"none,decimal(4,1)"`
	}
	k := func(k columns.Kind) columns.Type { return columns.Type{Kind: k} }
	hints := []columns.Field{
		{Name: "d", Type: columns.Type{Kind: columns.Decimal, Precision: 9, Scale: 3}, Comment: "how much", Metadata: map[string]any{"ods.key": true}},
		{Name: "day", Type: k(columns.Date)}, {Name: "loc", Type: k(columns.TimestampNTZ)}, {Name: "days", Type: k(columns.Date)},
		{Name: "wide", Type: k(columns.Long)}, {Name: "tiny", Type: k(columns.Integer)}, {Name: "f", Type: k(columns.Double)}, {Name: "text", Type: k(columns.String)},
		{Name: "sum", Type: columns.Type{Kind: columns.Decimal, Precision: 12, Scale: 2}}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	got, p := build(t, Options{Hints: hints}, row{big.NewRat(1, 8), at, at, 1, 2, 3, 0.5, []byte("t"), []byte{0xff, 0x38}, nil})
	want := map[string]any{"d": "0.125", "day": columns.DayOf(at), "loc": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "days": columns.Day(1),
		"wide": int64(2), "tiny": int32(3), "f": 0.5, "text": "t", "sum": "-2.00", "none": nil}
	if d := cmp.Diff(want, got[0]); d != "" {
		t.Error(d)
	}
	if p.Fields[0].Comment != "how much" || p.Fields[0].Metadata["ods.key"] != true {
		t.Errorf("d is %+v", p.Fields[0])
	}
}

type recursive struct {
	Name string
	Next []recursive
}

func TestRefusedWithPath(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		want []string
	}{
		{reflect.TypeFor[struct{ C chan int }](), []string{"field C: "}},
		{reflect.TypeFor[struct{ A struct{ F func() } }](), []string{"field A.F: "}},
		{reflect.TypeFor[struct{ M map[int]string }](), []string{"field M: "}},
		{reflect.TypeFor[struct{ X []any }](), []string{"field X.element: "}},
		{reflect.TypeFor[struct{ C complex128 }](), []string{"field C: "}},
		{reflect.TypeFor[recursive](), []string{"field Next.element: "}},
		{reflect.TypeFor[struct {
			A int `json:"x"`
			B int `json:"X"`
		}](), []string{"only in case"}},
		{reflect.TypeFor[struct {
			A int `json:"x"`
			B int `lake:"x"`
		}](), []string{`two fields for column "x"`}},
		{reflect.TypeFor[struct{ R *big.Rat }](), []string{"field R: "}},
		{reflect.TypeFor[struct {
			S string `lake:",decimal(3,1)"`
		}](), []string{"field S: "}},
		{reflect.TypeFor[struct {
			S string `lake:",partiton"`
		}](), []string{"field S: ", "partiton"}},
		{reflect.TypeFor[struct {
			S []string `lake:",partition"`
		}](), []string{"field S: "}},
		{reflect.TypeFor[struct {
			A any
			B chan int
		}](), []string{"field A: ", "field B: "}},
		{reflect.TypeFor[struct{}](), []string{"no columns"}},
		{reflect.TypeFor[any](), []string{"field value: "}},
	} {
		_, errs := Compile(c.typ, Options{})
		text := fmt.Sprint(errors.Join(errs...))
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%v: %q isn't in: %s", c.typ, want, text)
			}
		}
	}
}

func TestRowErrorsLeaveNoTrace(t *testing.T) {
	type row struct {
		ID   int64
		Name string
		U    uint64
		At   time.Time
		R    *big.Rat `lake:",decimal(4,1)"`
		Must *string  `lake:",notnull"`
		L    []struct{ S string }
	}
	must := "m"
	good := row{ID: 1, Name: "n", Must: &must}
	bad := map[string]row{
		"Name":        {Name: "\xff", Must: &must},
		"U":           {U: 1 << 63, Must: &must},
		"At":          {At: time.Unix(1<<61, 0), Must: &must},
		"R":           {R: big.NewRat(1, 3), Must: &must},
		"Must":        {},
		"L.element.S": {Must: &must, L: []struct{ S string }{{"ok"}, {"\xff"}}},
	}
	p, errs := Compile(reflect.TypeFor[row](), Options{})
	if errs != nil {
		t.Fatal(errs)
	}
	b := columns.NewBuilder(&columns.Schema{Fields: p.Fields})
	add := func(r row) error {
		if _, err := p.Append(b, 0, &r); err != nil {
			b.Rollback()
			return err
		}
		return b.EndRow()
	}
	rows := 0
	for field, r := range bad {
		err := add(r)
		var re *sink.RowError
		if !errors.As(err, &re) || re.Field != field {
			t.Errorf("field %s: got %v", field, err)
		}
		if err := add(good); err != nil {
			t.Fatal(err)
		}
		rows++
		if err := b.Complete(); err != nil || b.Rows() != rows {
			t.Fatalf("after field %s: %d rows, %v", field, b.Rows(), err)
		}
	}
	if _, err := p.Append(b, 0, "wrong"); err == nil {
		t.Error("a value of another type was taken")
	}
}

type flat struct {
	EventID, OrderID, CustomerID, Status, Currency string
	Amount                                         float64
	Quantity                                       int32
	EventTime, IngestTime                          time.Time
	Offset                                         int64
	Note                                           *string
}

func TestFlatRowsDontAllocate(t *testing.T) {
	p, errs := Compile(reflect.TypeFor[flat](), Options{})
	if errs != nil {
		t.Fatal(errs)
	}
	b := columns.NewBuilder(&columns.Schema{Fields: p.Fields})
	note := "n"
	v := flat{EventID: "6f1c2a7e", OrderID: "o-1", Status: "placed", EventTime: time.Unix(1, 0), Note: &note}
	row := func() {
		if _, err := p.Append(b, 0, &v); err != nil {
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

func BenchmarkFlatRow(b *testing.B) {
	p, errs := Compile(reflect.TypeFor[flat](), Options{})
	if errs != nil {
		b.Fatal(errs)
	}
	bl := columns.NewBuilder(&columns.Schema{Fields: p.Fields})
	v := flat{EventID: "6f1c2a7e-1234-1234-1234-123456789012", OrderID: "o-123456", CustomerID: "c-12345", Status: "placed", Currency: "EUR", EventTime: time.Unix(1, 0)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%50000 == 0 {
			bl.Reset()
		}
		if _, err := p.Append(bl, 0, &v); err != nil {
			b.Fatal(err)
		}
		if err := bl.EndRow(); err != nil {
			b.Fatal(err)
		}
	}
}
