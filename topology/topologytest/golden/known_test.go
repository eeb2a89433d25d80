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
	known := []KnownDifference{{Emit: "onWindowClose", Sections: []string{"outputs"}, More: true, Reason: "r", Doc: "d"}}
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
