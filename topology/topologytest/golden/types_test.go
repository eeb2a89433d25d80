package golden

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTypesOnTheWire(t *testing.T) {
	for _, c := range []struct{ typ, json, hex string }{
		{`"string"`, `"é"`, "c3a9"}, {`"string"`, `""`, ""},
		{`"int64"`, `-2`, "fffffffffffffffe"}, {`"int32"`, `258`, "00000102"}, {`"float64"`, `1.0`, "3ff0000000000000"},
		{`"bytes"`, `"AP8="`, "00ff"}, {`"json"`, `{"b":[1,"<\u0001>"],"a":null}`, hex.EncodeToString([]byte(`{"a":null,"b":[1,"<\u0001>"]}`))},
		{`"strictString"`, `"ok"`, "6f6b"},
		{`{"timeWindowed":"string","size":10}`, `{"key":"a","start":20,"end":30}`, "610000000000000014"},
		{`{"sessionWindowed":"int32"}`, `{"key":1,"start":20,"end":30}`, "00000001000000000000001e0000000000000014"},
		{`{"timeWindowed":"string","size":9223372036854775807}`, `{"key":"a","start":5,"end":9223372036854775807}`, "610000000000000005"},
	} {
		typ, err := parseType(json.RawMessage(c.typ))
		if err != nil {
			t.Fatal(err)
		}
		data, err := typ.encode(json.RawMessage(c.json))
		if err != nil || hex.EncodeToString(data) != c.hex {
			t.Errorf("%s %s: %x, %v, want %s", c.typ, c.json, data, err, c.hex)
			continue
		}
		v, err := typ.Serde().Decode(data)
		want, _ := parseTree([]byte(c.json))
		if err != nil || cmp.Diff(want, show(v)) != "" {
			t.Errorf("%s: %s came back as %v, %v", c.typ, c.json, show(v), err)
		}
	}
}

func TestTypesRefuse(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		data string
	}{
		{typeInt64, "1234567"}, {typeInt32, "12345"}, {typeFloat, ""}, {typeJSON, ""}, {typeJSON, " "}, {typeJSON, "1 2"}, {typeJSON, "{"},
		{typeJSON, "01"}, {typeJSON, "\xff"}, {typeStrict, "a!raw"}, {typeString.timeWindowed(1), "short"}, {typeString.sessionWindowed(), "123456789012345"},
	} {
		if v, err := c.typ.Serde().Decode([]byte(c.data)); err == nil {
			t.Errorf("%v took %q as %v", c.typ, c.data, v)
		}
	}
	for _, c := range []struct {
		typ Type
		v   any
	}{{typeStrict, "a!bad"}, {typeString, int64(1)}, {typeInt64, "1"}, {typeString.timeWindowed(1), "a"}} {
		if b, err := c.typ.Serde().Append(nil, c.v); err == nil {
			t.Errorf("%v took %v as %x", c.typ, c.v, b)
		}
	}
	if _, err := parseType(json.RawMessage(`"uuid"`)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("unknown type: %v", err)
	}
}

func TestCanonicalJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1,"a":{"d":2,"c":[true,null]}}`: `{"a":{"c":[true,null],"d":2},"b":1}`,
		`"a\/\u00e9\n\u001f<>&"`:              `"a/é\n\u001F<>&"`,
		`-0`:                                  `0`,
		`1.50`:                                `1.5`,
		`1e3`:                                 `1000.0`,
		`1e10`:                                `1.0E10`,
		`0.0001`:                              `1.0E-4`,
		`123456789012345678901234567890`:      `123456789012345678901234567890`,
		` [ ] `:                               `[]`,
		`{"a":1,"a":2}`:                       `{"a":2}`,
	} {
		if got, err := parseJSON([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
	}
}

// FuzzJSON checks that canonical text is a fixed point.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e300,"\ud83d\ude00"]}`, `""`, `1E400`, `{"a":{"a":{}}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := parseJSON([]byte(s))
		if err != nil || once == "Infinity" || once == "-Infinity" {
			return
		}
		if again, err := parseJSON([]byte(once)); err == nil && again != once {
			t.Errorf("%q: %q, then %q", s, once, again)
		}
	})
}
