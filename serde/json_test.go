package serde_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/serde"
)

type item struct {
	SKU   string  `json:"sku"`
	Price float64 `json:"price,omitempty"`
}

func TestJSONText(t *testing.T) {
	s := serde.JSON[item]()
	got, err := s.Append([]byte(">"), item{SKU: "a<b>&c"})
	if err != nil || string(got) != `>{"sku":"a<b>&c"}` {
		t.Errorf("got %q, %v", got, err)
	}
	m, err := serde.JSON[map[string]int]().Append(nil, map[string]int{"b": 2, "a": 1})
	if err != nil || string(m) != `{"a":1,"b":2}` {
		t.Errorf("got %q, %v: keys are sorted", m, err)
	}
	v, err := s.Decode([]byte(` {"sku":"x","price":2.5,"added":"later"} `))
	if err != nil || v != (item{"x", 2.5}) {
		t.Errorf("got %+v, %v: fields not known are ignored", v, err)
	}
}

func TestJSONRefuses(t *testing.T) {
	for _, text := range []string{``, `null`, ` null `, `{`, `{"sku":1}`, `{"sku":"x","price":"y"}`, `{} {}`, `[]`, "\xff"} {
		if v, err := serde.JSON[item]().Decode([]byte(text)); err == nil || v != (item{}) {
			t.Errorf("%q gave %+v, %v", text, v, err)
		}
	}
	strict := serde.JSON[item](serde.StrictFields())
	for _, text := range []string{`{"sku":"x","added":1}`, `{"sku":"x"} 1`, `null`, ``} {
		if v, err := strict.Decode([]byte(text)); err == nil || v != (item{}) {
			t.Errorf("strict: %q gave %+v, %v", text, v, err)
		}
	}
	if v, err := strict.Decode([]byte("{\"sku\":\"x\"}\n")); err != nil || v.SKU != "x" {
		t.Errorf("strict: got %+v, %v", v, err)
	}
	_, err := serde.JSON[item]().Decode([]byte(`null`))
	if err == nil || !strings.Contains(err.Error(), "declare it as *serde_test.item") {
		t.Errorf("error %v: it says what to do", err)
	}
}

func TestJSONNullWhereTheTypeCanHoldIt(t *testing.T) {
	if v, err := serde.JSON[*item]().Decode([]byte(`null`)); v != nil || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	if v, err := serde.JSON[any]().Decode([]byte(`null`)); v != nil || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestJSONEncodeErrorLeavesTheBufferAndTheNextRecordAlone(t *testing.T) {
	s := serde.JSON[item]()
	for range 3 {
		out, err := s.Append([]byte("kept"), item{Price: math.NaN()})
		if err == nil || string(out) != "kept" {
			t.Fatalf("NaN gave %q, %v", out, err)
		}
		out, err = s.Append([]byte("kept"), item{SKU: "x"})
		if err != nil || string(out) != `kept{"sku":"x"}` {
			t.Fatalf("after an error: %q, %v", out, err)
		}
	}
}

func TestJSONDoesNotAlias(t *testing.T) {
	type kept struct{ Raw json.RawMessage }
	data := []byte(`{"Raw":[1]}`)
	v, err := serde.JSON[kept]().Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	clear(data)
	if string(v.Raw) != "[1]" {
		t.Errorf("the value changed with its bytes: %q", v.Raw)
	}
}

// FuzzJSON checks that whatever decodes is a fixed point: encoded and decoded again it is the same value and the same bytes.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`null`, `{"a":[1,2.5,"x",null,true]}`, `"\u2028<&>"`, `1e400`, `{"a":1,"a":2}`, `[1] [2]`} {
		f.Add([]byte(s))
	}
	s := serde.JSON[any]()
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := s.Decode(data)
		if err != nil {
			return
		}
		b, err := s.Append(nil, v)
		if err != nil {
			t.Fatalf("%q decoded, but can't be encoded: %v", data, err)
		}
		again, err := s.Decode(b)
		if err != nil {
			t.Fatalf("%q was written, but can't be read: %v", b, err)
		}
		if d := cmp.Diff(v, again); d != "" {
			t.Fatalf("%q: %s", data, d)
		}
	})
}
