package golden

import (
	"errors"
	"fmt"
	"testing"
)

func TestPredicates(t *testing.T) {
	for _, c := range []struct {
		spec string
		k, v any
		want bool
	}{
		{"always", nil, nil, true}, {"never", "k", "v", false},
		{"notNull", nil, "v", true}, {"notNull", nil, nil, false},
		{"keyNotNull", "k", nil, true}, {"keyNotNull", nil, "v", false},
		{"contains:b", nil, "abc", true}, {"contains:b", nil, nil, false},
		{"startsWith:a:b", nil, "a:bc", true}, {"startsWith:b", nil, "ab", false},
		{"valueEquals:7", nil, int64(7), true}, {"valueEquals:null", nil, nil, false},
		{"keyEquals:a@0-5", Windowed{"a", 0, 5}, nil, true}, {"keyStartsWith:a", "ab", nil, true}, {"keyStartsWith:a", nil, nil, false},
		{"even", nil, int64(4), true}, {"even", nil, int64(-3), false}, {"even", nil, nil, false},
		{"greaterThan:3", nil, int64(4), true}, {"greaterThan:3", nil, int64(3), false},
		{"lessThan:3", nil, int64(2), true}, {"lessThan:3", nil, nil, false},
		{"longerThan:2", nil, "abc", true}, {"longerThan:2", nil, "ab", false},
		{"fieldEquals:a=1", nil, JSON(`{"a":1}`), true}, {"fieldEquals:a=x=y", nil, JSON(`{"a":"x=y"}`), true},
		{"hasField:a", nil, JSON(`{"a":null}`), false}, {"hasField:a", nil, JSON(`{"a":false}`), true},
		{"validJson", nil, "[1]", true}, {"validJson", nil, "[1", false}, {"validJson", nil, nil, false},
		{"jsonHasField:a", nil, `{"a": 1}`, true}, {"jsonHasField:a", nil, `nope`, false},
		{"failOn:x", nil, "y", true}, {"not:contains:a", nil, "b", true}, {"not:notNull", nil, nil, true},
	} {
		p, err := parsePredicate(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := p(c.k, c.v); got != c.want {
			t.Errorf("%s of (%v, %v) = %v", c.spec, c.k, c.v, got)
		}
	}
}

func TestMappersAndSelectors(t *testing.T) {
	check := func(spec string, m typed, err error, k, v, want any, out Type) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if got := m.f(k, v); got != want || m.out != out {
			t.Errorf("%s of (%v, %v) = %v %v, want %v %v", spec, k, v, got, m.out, want, out)
		}
	}
	for _, c := range []struct {
		spec    string
		vt      Type
		v, want any
		out     Type
	}{
		{"identity", typeInt64, int64(1), int64(1), typeInt64},
		{"upper", typeString, "ab", "AB", typeString},
		{"length", typeString, "abc", int64(3), typeInt64},
		{"append:!", typeString, "a", "a!", typeString}, {"append:!", typeString, nil, nil, typeString},
		{"appendNull:!", typeString, nil, "null!", typeString},
		{"toNull", typeString, "a", nil, typeString},
		{"nullIf:a", typeString, "a", nil, typeString}, {"nullIf:a", typeString, "b", "b", typeString},
		{"parseInt", typeString, "-12", int64(-12), typeInt64},
		{"toString", typeInt64, int64(5), "5", typeString}, {"toString", typeJSON, JSON(`{"a":1}`), `{"a":1}`, typeString},
		{"addN:-2", typeInt64, int64(5), int64(3), typeInt64},
		{"toInt32", typeInt64, int64(5), int32(5), typeInt32}, {"toFloat64", typeInt64, int64(5), 5.0, typeFloat},
		{"field:a", typeJSON, JSON(`{"a":"x"}`), "x", typeString}, {"field:a", typeJSON, JSON(`{"a":{"c":1}}`), `{"c":1}`, typeString},
		{"field:a", typeJSON, JSON(`[1]`), nil, typeString},
		{"fieldInt:a", typeJSON, JSON(`{"a":7}`), int64(7), typeInt64}, {"fieldInt:a", typeJSON, JSON(`{"a":"7"}`), nil, typeInt64},
		{"constant:x", typeInt64, nil, "x", typeString},
		{"withKey", typeInt64, int64(2), "k:2", typeString}, {"withKey", typeInt64, nil, nil, typeString},
		{"keyToString", typeInt64, nil, "k", typeString},
		{"parseJson", typeString, `{"b":1.50, "a":[]}`, JSON(`{"a":[],"b":1.5}`), typeJSON},
		{"wrapJson:n", typeInt64, int64(3), JSON(`{"n":3}`), typeJSON},
		{"failOn:x", typeString, nil, nil, typeString},
		{"prefixBefore:/", typeString, "a/b", "a", typeString}, {"prefixBefore:/", typeString, "ab", "ab", typeString},
	} {
		m, err := parseMapper(c.spec, typeString, c.vt)
		check(c.spec, m, err, "k", c.v, c.want, c.out)
	}
	wk := typeString.timeWindowed(10)
	for _, c := range []struct {
		spec       string
		kt         Type
		k, v, want any
		out        Type
	}{
		{"key", typeString, "k", "v", "k", typeString}, {"value", typeString, "k", "v", "v", typeString},
		{"firstChar", typeString, "k", "vw", "v", typeString}, {"firstChar", typeString, "k", "", nil, typeString},
		{"keyPrefixBefore:.", typeString, "a.b", nil, "a", typeString}, {"keyUpper", typeString, "a", nil, "A", typeString},
		{"nullKey", typeString, "k", "v", nil, typeString}, {"length", typeString, "k", "vw", int64(2), typeInt64},
		{"windowedKeyToString", wk, Windowed{"a", 10, 20}, nil, "a@10-20", typeString},
		{"windowedKey", wk, Windowed{"a", 10, 20}, nil, "a", typeString}, {"windowStart", wk, Windowed{"a", 10, 20}, nil, int64(10), typeInt64},
	} {
		m, err := parseSelector(c.spec, c.kt, typeString)
		check(c.spec, m, err, c.k, c.v, c.want, c.out)
	}
}

func TestFlatFunctions(t *testing.T) {
	for spec, want := range map[string]string{"splitWords": "[a b]", "repeat:2": "[ a  b  a  b]", "chars": "[  a     b]", "withKeyPair": "[k  a  b]"} {
		f, err := parseFlatValues(spec, typeString)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(f.f("k", " a  b")); got != want {
			t.Errorf("%s = %s, want %s", spec, got, want)
		}
	}
	for spec, want := range map[string]string{"wordsToKeys": "[{a k} {b k}]", "dup:2": "[{k a b} {k a b}]", "keyAndSwap": "[{k a b} {a b k}]"} {
		f, err := parseFlat(spec, typeString, typeString)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(f.f("k", "a b")); got != want {
			t.Errorf("%s = %s, want %s", spec, got, want)
		}
	}
}

func TestJoiners(t *testing.T) {
	for spec, want := range map[string]any{
		"concat": "l+null", "withKey": "k:l+null", "left": "l", "right": nil, "jsonPair": JSON(`{"l":"l","r":null}`),
		"nullIfNoRight": nil, "failOnRight:x": "l+null",
	} {
		j, err := parseJoiner(spec, typeString, typeString)
		if err != nil {
			t.Fatal(err)
		}
		if got := j.f("k", "l", nil); got != want {
			t.Errorf("%s = %v, want %v", spec, got, want)
		}
	}
	j, _ := parseJoiner("sumInt", typeInt64, typeInt64)
	if got := j.f("k", int64(2), nil); got != any(int64(2)) {
		t.Errorf("sumInt = %v", got)
	}
}

func TestAggregators(t *testing.T) {
	for _, c := range []struct {
		spec            string
		v               any
		add, sub, merge any // of the initial value with v, twice for add
	}{
		{"concat", "a", "0+a+a", "0-a", "0&0"}, {"concat", nil, "0+null+null", "0-null", "0&0"},
		{"concatKey", "a", "0+k=a+k=a", "0-k=a", "0&0"},
		{"sum", int64(3), int64(6), int64(-3), int64(0)}, {"sum", nil, int64(0), int64(0), int64(0)},
		{"count", nil, int64(2), int64(-1), int64(0)},
		{"min", int64(3), int64(3), nil, nil}, {"max", nil, nil, nil, nil}, {"last", "a", "a", nil, nil},
		{"collectList", "a", JSON(`["a","a"]`), JSON(`[]`), JSON(`[]`)},
		{"nullOn:a", "a", nil, nil, "0&0"}, {"nullOn:a", "b", "0+b+b", "0-b", "0&0"},
		{"nullInit", "a", "a+a", "-a", nil},
	} {
		a, err := parseAggregator(c.spec, typeString)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.add("k", c.v, a.add("k", c.v, a.init())); got != c.add {
			t.Errorf("%s: add twice = %v, want %v", c.spec, got, c.add)
		}
		if a.sub != nil {
			if got := a.sub("k", c.v, a.init()); got != c.sub {
				t.Errorf("%s: sub = %v, want %v", c.spec, got, c.sub)
			}
		}
		if got := a.merge("k", a.init(), a.init()); got != c.merge {
			t.Errorf("%s: merge = %v, want %v", c.spec, got, c.merge)
		}
	}
	a, _ := parseAggregator("collectList", typeInt64)
	if got := a.sub("k", int64(2), JSON(`[1,2,2]`)); got != any(JSON(`[1,2]`)) {
		t.Errorf("collectList: sub takes the first equal element out, got %v", got)
	}
}

func TestReducers(t *testing.T) {
	for _, c := range []struct {
		spec     string
		a, v     any
		add, sub any
	}{
		{"concat", "a", "b", "a+b", "a-b"}, {"sum", int64(5), nil, int64(5), int64(5)}, {"sum", int64(5), int64(2), int64(7), int64(3)},
		{"min", int64(5), int64(2), int64(2), nil}, {"max", int64(5), nil, int64(5), nil},
		{"last", "a", "b", "b", "a"}, {"first", "a", "b", "a", "a"}, {"nullOn:b", "a", "b", nil, "a-b"}, {"nullOn:b", nil, "c", "null+c", "null-c"},
	} {
		r, err := parseReducer(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.add(c.a, c.v); got != c.add {
			t.Errorf("%s: add = %v, want %v", c.spec, got, c.add)
		}
		if r.sub != nil {
			if got := r.sub(c.a, c.v); got != c.sub {
				t.Errorf("%s: sub = %v, want %v", c.spec, got, c.sub)
			}
		}
	}
}

// What "throws" in the format is an error that the runner tells apart.
func TestThrowing(t *testing.T) {
	catch := func(f func()) (err error) {
		defer func() { err, _ = recover().(error) }()
		f()
		return nil
	}
	parse, _ := parseMapper("parseInt", typeString, typeString)
	fail, _ := parseSelector("failOn:x", typeString, typeString)
	right, _ := parseJoiner("failOnRight:x", typeString, typeString)
	sum, _ := parseAggregator("sum", typeInt64)
	var user *userError
	for name, f := range map[string]func(){
		"parseInt": func() { parse.f(nil, "x") }, "failOn": func() { fail.f("k", "x") }, "failOnRight": func() { right.f("k", "l", "x") },
	} {
		if err := catch(f); !errors.As(err, &user) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var null *nullError
	if err := catch(func() { sum.add("k", int64(1), nil) }); !errors.As(err, &null) {
		t.Errorf("sum of a null aggregate: got %v", err)
	}
}

func TestUnknownFunctionsAreUnsupported(t *testing.T) {
	_, e1 := parsePredicate("not:nonsense")
	_, e2 := parseMapper("nonsense:x", typeString, typeString)
	_, e3 := parseSelector("nonsense", typeString, typeString)
	_, e4 := parseFlat("nonsense", typeString, typeString)
	_, e5 := parseFlatValues("nonsense", typeString)
	_, e6 := parseJoiner("nonsense", typeString, typeString)
	_, e7 := parseAggregator("nonsense", typeString)
	_, e8 := parseReducer("nonsense")
	_, e9 := parseMapper("addN:x", typeString, typeInt64)
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7, e8, e9} {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%d: got %v", i+1, err)
		}
	}
}
