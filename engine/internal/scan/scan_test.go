package scan

import (
	"slices"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/state"
)

// Scans in portions give every row once, at the borders of portions and prefixes too.
func TestScansInPortions(t *testing.T) {
	db, err := state.OpenMemory([]state.Spec{{Name: "kv", Kind: state.KeyValue}}, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var records []state.RestoreRecord
	keys := []string{"", "a", "a\x00", "a\x00\x00", "a\xff", "a\xff\xff", "b", "b\x00", "\xff", "\xff\xff", "\xff\xff\x01"}
	for _, k := range keys {
		records = append(records, state.RestoreRecord{Key: []byte(k), Value: []byte("v")})
	}
	if err := db.Restore("kv", records, 1); err != nil {
		t.Fatal(err)
	}
	view, err := db.View()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	for _, prefix := range []string{"", "a", "a\x00", "a\xff", "b", "c", "\xff", "\xff\xff"} {
		for limit := 1; limit <= len(keys)+1; limit++ {
			var got []string
			var after *Row
			for more := true; more; {
				p := Prefix(view, "kv", []byte(prefix), after, limit)
				if p.Err != nil {
					t.Fatal(p.Err)
				}
				for _, r := range p.Rows {
					got = append(got, string(r.Key))
				}
				if more = p.More; more {
					after = &p.Rows[len(p.Rows)-1]
				}
			}
			want := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !strings.HasPrefix(k, prefix) })
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("prefix %q by %d: %q, want %q", prefix, limit, got, want)
			}
		}
	}
}
