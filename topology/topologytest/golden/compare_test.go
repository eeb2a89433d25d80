package golden

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

const sample = `{"name":"x","area":"a","notes":"n","topology":[],"steps":[],"expect":{
	"outputs":{"out":[{"step":0,"key":"a","value":1.0,"timestamp":5}]},
	"stores":{"s":{"kind":"keyValue","entries":[{"key":"a"},{"key":"b"}]}},
	"droppedRecords":1,
	"subtopologies":[{"id":0,"sources":["a","b"],"nodes":[{"name":"n2","stores":["x","y"]},{"name":"n1"}]}],
	"describe":"Topologies:\n   Sub-topology: 0\n    Source: S (topics: [b, a])\n      --> T\n    Sink: T (extractor class: org.Foo@12)\n      <-- S\n\n"}}`

func parsed(t *testing.T) (*Scenario, Result) {
	t.Helper()
	s, err := Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	tree, _ := parseTree([]byte(sample))
	return s, Result(tree.(map[string]any)["expect"].(map[string]any))
}

func TestCompareEqual(t *testing.T) {
	s, got := parsed(t)
	sub := got["subtopologies"].([]any)[0].(map[string]any)
	sub["sources"] = []any{"b", "a"}
	sub["nodes"] = []any{map[string]any{"name": "n1"}, map[string]any{"name": "n2", "stores": []any{"y", "x"}}}
	got["stores"] = map[string]any{"s": map[string]any{"kind": "keyValue", "entries": []any{map[string]any{"key": "b"}, map[string]any{"key": "a"}}}}
	got["describe"] = "Topologies:\n   Sub-topology: 0\n    Sink: T (extractor class: per record)\n      <-- S\n    Source: S (topics: [a, b])\n      --> T\n\n"
	if d := Compare(s, got); len(d) > 0 {
		t.Errorf("order that is not significant: %v", d)
	}
}

func TestCompareDifferent(t *testing.T) {
	for _, c := range []struct {
		change func(Result)
		want   string
	}{
		{func(r Result) { r["droppedRecords"] = number("2") }, "droppedRecords: want 1, got 2"},
		{func(r Result) { r["outputs"] = map[string]any{} }, `outputs out: want [{"key":"a","step":0,"timestamp":5,"value":1.0}], got nothing`},
		{func(r Result) {
			r["outputs"].(map[string]any)["out"].([]any)[0].(map[string]any)["value"] = number("1")
		}, "outputs out[0].value: want 1.0, got 1"},
		{func(r Result) {
			o := r["outputs"].(map[string]any)
			o["out"] = append(o["out"].([]any), "more")
		}, `outputs out[1]: want nothing, got "more"`},
		{func(r Result) { r["error"] = map[string]any{"at": "step 0", "kind": "other", "message": "m"} }, `error: want null, got {"at":"step 0","kind":"other"}`},
		{func(r Result) { r["describe"] = strings.ReplaceAll(r["describe"].(string), "--> T", "--> U") }, "describe"},
		{func(r Result) { r["observed"] = map[string]any{"l": []any{}} }, `observed: want null, got {"l":[]}`},
		{func(r Result) { delete(r, "stores") }, "stores: want"},
	} {
		s, got := parsed(t)
		c.change(got)
		d := Compare(s, got)
		if len(d) != 1 || !strings.HasPrefix(d[0].String(), c.want) {
			t.Errorf("got %v, want %s", d, c.want)
		}
	}
}

// A field that no reader asked for makes a scenario unsupported.
func TestUnknownFieldsAreUnsupported(t *testing.T) {
	if _, err := Parse([]byte(`{"name":"x","surprise":1}`)); err == nil || !strings.Contains(err.Error(), "unknown field surprise") {
		t.Errorf("got %v", err)
	}
	var failed error
	o := newObject("op", json.RawMessage(`{"a":"x","b":null,"c":3}`), &failed)
	if o.str("a") != "x" || o.has("b") || !o.there("b") || o.int("c") != 3 || o.strOr("d", "e") != "e" {
		t.Error("fields are read wrongly")
	}
	if o.finish(); failed != nil {
		t.Error(failed)
	}
}

func TestReport(t *testing.T) {
	diff := []Difference{{"outputs", Semantics, "out[0]", "1", "2"}}
	all := func(o Outcome) map[Group]Outcome {
		return map[Group]Outcome{Semantics: o, Stores: Passed, Wire: Passed, Names: Passed}
	}
	r := NewReport([]Verdict{
		{Name: "good", Outcome: Passed, Groups: all(Passed)},
		{Name: "bad", Outcome: Failed, Groups: all(Failed), Differences: diff},
		{Name: "odd", Outcome: Quirk, Groups: all(Quirk), Differences: diff, Reason: "better", Doc: "docs/x.md"},
		Verdict{Name: "new", Groups: map[Group]Outcome{}}.all(Unsupported, unsupported("op %q", "teleport")),
	})
	var out bytes.Buffer
	r.Print(&out)
	want := `FAIL bad outputs out[0]: want 1, got 2
quirk odd outputs out[0]: want 1, got 2 (on purpose: better; see docs/x.md)
UNSUPPORTED new: unsupported: op "teleport"
semantics: 2 passed, 1 failed, 1 unsupported (1 of the passed differ on purpose)
stores: 3 passed, 0 failed, 1 unsupported
wire: 3 passed, 0 failed, 1 unsupported
names: 3 passed, 0 failed, 1 unsupported
golden: 2 passed, 1 failed, 1 unsupported
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if r.AllPassed() {
		t.Error("a failure is not a pass")
	}
}
