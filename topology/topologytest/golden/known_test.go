package golden

import (
	"os"
	"path/filepath"
	"testing"
)

// Each difference on purpose is documented.
func TestKnownDifferencesAreDocumented(t *testing.T) {
	known, err := LoadKnown(filepath.Join(testdata, "differences.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range known {
		if _, err := os.Stat(filepath.Join("../../..", k.Doc)); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
	}
}

func TestExcuses(t *testing.T) {
	records := func(values ...string) map[string]any {
		var list []any
		for _, v := range values {
			list = append(list, v)
		}
		return map[string]any{"out": list}
	}
	known := []KnownDifference{{Op: map[string]any{"emit": "onWindowClose"}, Sections: []string{"outputs"}, More: true, Reason: "r", Doc: "d"}}
	for _, c := range []struct {
		tag, emit, section string
		want, got          map[string]any
		excused            bool
	}{
		{"quirk", "onWindowClose", "outputs", records("a", "c"), records("a", "b", "c"), true},
		{"quirk", "onWindowClose", "outputs", records("a", "c"), records("c", "a"), false},
		{"quirk", "onWindowClose", "outputs", records("a", "c"), records("a"), false},
		{"quirk", "onWindowClose", "stores", records("a"), records("a", "b"), false},
		{"quirk", "onWindowUpdate", "outputs", records("a"), records("a", "b"), false},
		{"tie", "onWindowClose", "outputs", records("a"), records("a", "b"), false},
	} {
		s, err := Parse([]byte(`{"name":"x","tags":["` + c.tag + `"],"topology":[{"op":"windowedBy","emit":"` + c.emit + `"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		s.expect = map[string]any{c.section: c.want}
		if got := excuse(known, s, Result{c.section: c.got}, c.section) != nil; got != c.excused {
			t.Errorf("%+v: excused is %v", c, got)
		}
	}
}

// Where Kafka Streams stops at an error and the library goes on, everything may come that is more.
func TestExcusesErrors(t *testing.T) {
	known := []KnownDifference{{Op: map[string]any{"op": "join", "windows": map[string]any{"diff": 0.0}, "grace": "*"}, Fails: "invalidArgument", Reason: "r", Doc: "d"}}
	records := func(values ...any) map[string]any { return map[string]any{"out": values} }
	for _, c := range []struct {
		op, kind string
		got      any // error
		outputs  map[string]any
		excused  bool
	}{
		{`"op":"join","windows":{"diff":0},"grace":3`, "invalidArgument", nil, records("a", "b"), true},
		{`"op":"join","windows":{"diff":0},"grace":3`, "invalidArgument", nil, records("b"), false},
		{`"op":"join","windows":{"diff":0},"grace":3`, "userFunction", nil, records("a", "b"), false},
		{`"op":"join","windows":{"diff":0},"grace":3`, "invalidArgument", map[string]any{"kind": "other"}, records("a", "b"), false},
		{`"op":"join","windows":{"diff":1},"grace":3`, "invalidArgument", nil, records("a", "b"), false},
		{`"op":"join","windows":{"diff":0}`, "invalidArgument", nil, records("a", "b"), false},
	} {
		s, err := Parse([]byte(`{"name":"x","tags":["quirk"],"topology":[{` + c.op + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		s.expect = map[string]any{"error": map[string]any{"kind": c.kind}, "outputs": records("a")}
		got := Result{"outputs": c.outputs}
		if c.got != nil {
			got["error"] = c.got
		}
		if excused := excuse(known, s, got, "outputs") != nil; excused != c.excused {
			t.Errorf("%+v: excused is %v", c, excused)
		}
	}
}
