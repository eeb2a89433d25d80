package plainjson

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unsafe"

	jsonv2 "encoding/json/v2"
)

// all has every kind of field that is read here.
type all struct {
	Text   string `json:"text"`
	Long   string `json:"long_text,omitempty"`
	Yes    bool
	I      int     `json:"i"`
	I8     int8    `json:"i8"`
	I16    int16   `json:"i16"`
	I32    int32   `json:"i32"`
	I64    int64   `json:"i64"`
	U      uint    `json:"u"`
	U8     uint8   `json:"u8"`
	U16    uint16  `json:"u16"`
	U32    uint32  `json:"u32"`
	U64    uint64  `json:"u64"`
	F32    float32 `json:"f32"`
	F64    float64 `json:"f64"`
	Inner  inner   `json:"inner"`
	Maybe  *inner  `json:"maybe"`
	MaybeI *int    `json:"maybe_i"`
	MaybeS *string `json:"maybe_s"`
	hidden int
	Out    string `json:"-"`
}

type inner struct {
	Name string `json:"name"`
	Pair struct {
		A, B string
	} `json:"pair"`
}

// many has more short strings than are gathered at a time.
type many struct{ A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T string }

func decode[T any](t testing.TB, data string, strict bool) (v T, ok bool) {
	t.Helper()
	p := For(reflect.TypeFor[T]())
	if p == nil {
		t.Fatalf("there is no plan for %T", v)
	}
	ok = p.Decode([]byte(data), unsafe.Pointer(&v), strict)
	return v, ok
}

// standard is what encoding/json makes of a text.
func standard[T any](data []byte) (v T, err error) {
	err = jsonv2.Unmarshal(data, &v, json.DefaultOptionsV1())
	return v, err
}

var plainTexts = []string{
	`{}`, ` { } `,
	`{"text":"a","long_text":"01234567890123456789012345678901234567890123456789012345678901234567890123456789","Yes":true,"i":-1,"i8":-128,"i16":32767,"i32":-5,"i64":-9223372036854775808,` +
		`"u":1,"u8":255,"u16":65535,"u32":4294967295,"u64":18446744073709551615,"f32":1.5,"f64":-12.25e-3,` +
		`"inner":{"name":"n","pair":{"A":"a","B":""}},"maybe":{"name":"m","pair":{}},"maybe_i":7,"maybe_s":"s"}`,
	"\n{ \"f64\" : 0 ,\t\"text\" : \"grün ☃\" , \"i\" : 0 }\r\n",
	`{"text":null,"i":null,"inner":null,"maybe":null,"maybe_i":null,"Yes":null}`,
	`{"unknown":[1,{"a":[]},"x",null,false,-0.5E+3],"more":{},"i64":1700000000000000000,"Out":"x","hidden":1}`,
	`{"A":"1","B":"2","C":"3","D":"4","E":"5","F":"6","G":"7","H":"8","I8":"9","J":"10"}`,
}

func TestPlainTextsAreReadAsByEncodingJSON(t *testing.T) {
	for _, text := range plainTexts[:5] {
		got, ok := decode[all](t, text, false)
		want, err := standard[all]([]byte(text))
		if !ok || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v, %v\nwant %+v, %v", text, got, ok, want, err)
		}
		p, ok := decode[*all](t, text, false)
		if !ok || !reflect.DeepEqual(*p, want) {
			t.Errorf("%s: behind a pointer %+v, %v", text, p, ok)
		}
	}
	text := `{"A":"1","B":"2","C":"3","D":"4","E":"5","F":"6","G":"7","H":"8","I":"9","J":"10","K":"11","L":"12","M":"13","N":"14","O":"15","P":"16","Q":"17","R":"18","S":"19","T":"20"}`
	got, ok := decode[many](t, text, true)
	if want, _ := standard[many]([]byte(text)); !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
}

func TestTheRestIsLeftToEncodingJSON(t *testing.T) {
	for _, text := range []string{
		``, ` `, `null`, `[]`, `1`, `{`, `{"text"`, `{"text":`, `{"text":"`, `{"text":"a"`, `{"text":"a",}`, `{"text":"a"}}`, `{"text":"a"} {}`,
		`{"text":"a\n"}`, `{"t\u0065xt":"a"}`, "{\"text\":\"\xff\"}", "{\"text\":\"\n\"}", `{"text":1}`, `{"TEXT":"a"}`, `{"yes":true}`, `{"longtext":"a"}`,
		`{"text":"a","text":"b"}`, `{"i":1.0}`, `{"i":1e1}`, `{"i":01}`, `{"i":-}`, `{"i":9223372036854775808}`, `{"i8":128}`, `{"i8":-129}`, `{"u":-0}`,
		`{"u8":256}`, `{"u64":18446744073709551616}`, `{"f64":1e400}`, `{"f64":.5}`, `{"f64":1.}`, `{"f64":1e}`, `{"f64":Infinity}`, `{"f32":1e39}`,
		`{"Yes":tru}`, `{"Yes":1}`, `{"inner":[]}`, `{"unknown":[1,]}`, `{"unknown":{1:2}}`, `{"unknown":nul}`, `{"maybe_i":"1"}`, "{\"ünknown\":1,}",
	} {
		if v, ok := decode[all](t, text, false); ok {
			t.Errorf("%s was read as %+v", text, v)
		}
	}
	if v, ok := decode[all](t, `{"unknown":1}`, true); ok {
		t.Errorf("an unknown name was read strictly, as %+v", v)
	}
}

type ownText string

func (*ownText) UnmarshalText([]byte) error { return nil }

type ownJSON struct{ X int }

func (*ownJSON) UnmarshalJSON([]byte) error { return nil }

type chain struct{ Next *chain }

func TestOnlyPlainTypesHaveAPlan(t *testing.T) {
	for _, v := range []any{
		1, "", []int{}, map[string]int{}, ownJSON{}, chain{}, new(*all), struct{ inner }{}, struct{ T time.Time }{}, struct{ D time.Duration }{},
		struct{ N json.Number }{}, struct{ R json.RawMessage }{}, struct{ A any }{}, struct{ O ownText }{}, struct{ O *ownJSON }{}, struct{ A [2]int }{},
		struct {
			S int `json:"s,string"`
		}{},
		struct{ A_B, Ab int }{},
		struct {
			X int `json:"ü"`
		}{},
	} {
		if For(reflect.TypeOf(v)) != nil {
			t.Errorf("there is a plan for %T", v)
		}
	}
	if one := For(reflect.TypeFor[all]()); one != For(reflect.TypeOf(all{})) {
		t.Error("two plans for one type")
	}
}

func TestNothingOfTheTextIsKept(t *testing.T) {
	data := []byte(`{"text":"short","long_text":"01234567890123456789012345678901234567890123456789012345678901234567890123456789","maybe_s":"pointed"}`)
	var v all
	if !For(reflect.TypeFor[all]()).Decode(data, unsafe.Pointer(&v), false) {
		t.Fatal("not read")
	}
	clear(data)
	if v.Text != "short" || v.Long != "01234567890123456789012345678901234567890123456789012345678901234567890123456789" || *v.MaybeS != "pointed" {
		t.Errorf("the value changed with its text: %+v", v)
	}
}

// FuzzPlain checks that what is read here is what encoding/json reads.
func FuzzPlain(f *testing.F) {
	for _, text := range plainTexts {
		f.Add([]byte(text))
	}
	for _, text := range []string{`{"text":"a\u0041"}`, `{"Text":"x","text":"y"}`, `{"f64":-0}`, `{"i":-0}`, `{"inner":{"name":"` + "\u2028" + `"}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		compare[all](t, data)
		compare[*inner](t, data)
		compare[many](t, data)
	})
}

func compare[T any](t *testing.T, data []byte) {
	t.Helper()
	got, ok := decode[T](t, string(data), false)
	if !ok {
		return
	}
	want, err := standard[T](data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q\ngot  %+v\nwant %+v, %v", data, got, want, err)
	}
}

// order is an event as those of bench.
type order struct {
	EventID string  `json:"event_id"`
	OrderID string  `json:"order_id"`
	Status  string  `json:"status"`
	Amount  float64 `json:"amount"`
	TS      int64   `json:"ts"`
}

var orderText = []byte(`{"event_id":"e-0000012345","order_id":"o-00004711","status":"SHIPPED","amount":129.95,"ts":1700000000123,"note":"none at all"}`)

func BenchmarkPlain(b *testing.B) {
	p := For(reflect.TypeFor[order]())
	b.ReportAllocs()
	for b.Loop() {
		var v order
		if !p.Decode(orderText, unsafe.Pointer(&v), false) {
			b.Fatal("not read")
		}
	}
}

func BenchmarkStandard(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := standard[order](orderText); err != nil {
			b.Fatal(err)
		}
	}
}
