package land

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/schemas"
)

// TestDeclarationIsPublished: a changed owner, sensitivity and tag are in the table once an instance has started, and in the catalogue; what was
// dropped from the declaration goes with Rewrite.
func TestDeclarationIsPublished(t *testing.T) {
	w := newWorld(t, nil, "")
	s := testStream(t, "ods.shop.owned", strings.Replace(small, `"doc":"its number"`, `"doc":"its number","pii":true`, 1))
	w.cfg.Streams = []Stream{s}
	says := func() string {
		t.Helper()
		info, err := lake.Show(t.Context(), w.cfg.TablePlace(&s), 100)
		if err != nil {
			t.Fatal(err)
		}
		p := info.Properties
		return fmt.Sprint(p["ods.owner"], " ", p["ods.domain"], " ", p["ods.sensitivity"], " ", info.Columns[0].Comment, " ", info.Columns[0].Tags)
	}
	w.run(t, func() bool { return true })
	if got := says(); got != "o@example.org test internal its number map[pii:true]" {
		t.Errorf("a new table says %s", got)
	}
	s.Schema = strings.Replace(small, "its number", "its own number", 1)
	s.Owner, s.Domain, s.Sensitivity = "p@example.org", "", schemas.Restricted
	w.cfg.Streams = []Stream{s}
	w.run(t, func() bool { return true })
	if got := says(); got != "p@example.org test restricted its own number map[pii:true]" {
		t.Errorf("after a change the table says %s", got)
	}
	all, err := Status(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if e := w.cfg.Catalogue(all)[0]; e.Owner != "p@example.org" || e.Sensitivity != "restricted" || e.Domain != "" {
		t.Errorf("the catalogue says %+v", e)
	}
	if r, err := Rewrite(t.Context(), w.cfg, &s, false); err != nil || fmt.Sprint(r.Tags, r.Properties) != "[id: pii] [ods.domain]" || says() != "p@example.org test restricted its own number map[pii:true]" {
		t.Errorf("dry run: %+v, %v", r, err)
	}
	if r, err := Rewrite(t.Context(), w.cfg, &s, true); err != nil || !r.Done || says() != "p@example.org  restricted its own number map[]" {
		t.Errorf("rewritten: %+v, %v: %s", r, err, says())
	}
}
