package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// KnownDifference describes where the library differs from Kafka Streams on purpose. It excuses differences of scenarios that carry
// the tag "quirk" only.
type KnownDifference struct {
	// Name is that of the scenario. Op, in its place, stands for all scenarios with an operation that has these fields; "*" is any value.
	Name string         `json:"name,omitempty"`
	Op   map[string]any `json:"op,omitempty"`
	// Fails is the kind of error with which Kafka Streams stops where the library goes on: in all sections there may be more.
	Fails string `json:"fails,omitempty"`
	// Sections are those that may differ, where Kafka Streams doesn't stop.
	Sections []string `json:"sections,omitempty"`
	// More excuses additional records only: what Kafka Streams gives must all be there, in its order.
	More   bool   `json:"more,omitempty"`
	Reason string `json:"reason"`
	Doc    string `json:"doc"` // the page that documents it, from the repository's root
}

// LoadKnown reads a list of differences on purpose: a JSON array of KnownDifference. No file is an empty list.
func LoadKnown(path string) ([]KnownDifference, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []KnownDifference
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, k := range list {
		if (k.Name == "") == (k.Op == nil) || k.Reason == "" || k.Doc == "" || (len(k.Sections) == 0) == (k.Fails == "") {
			return nil, fmt.Errorf("%s: entry %d needs a name or an operation, sections or an error, a reason and the page that documents it", path, i)
		}
	}
	return list, nil
}

// excuse finds what allows a section to differ, nil if nothing does.
func excuse(known []KnownDifference, s *Scenario, got Result, section string) *KnownDifference {
	if !s.Tagged("quirk") {
		return nil
	}
	for i := range known {
		k := &known[i]
		if k.Name != s.Name && (k.Op == nil || !s.hasOp(k.Op)) {
			continue
		}
		if k.Fails != "" && s.stopsWith(k.Fails) && got["error"] == nil && onlyMore(s.expect[section], got[section]) {
			return k
		}
		if contains(k.Sections, section) && (!k.More || onlyMore(s.expect[section], got[section])) {
			return k
		}
	}
	return nil
}

// hasOp reports whether an operation of the scenario has the fields.
func (s *Scenario) hasOp(fields map[string]any) bool {
	for _, raw := range s.topology {
		var op map[string]any
		if json.Unmarshal(raw, &op) == nil && hasFields(op, fields) {
			return true
		}
	}
	return false
}

func hasFields(object, fields map[string]any) bool {
	for name, want := range fields {
		have, ok := object[name]
		inner, nested := want.(map[string]any)
		switch {
		case !ok:
			return false
		case nested:
			if o, _ := have.(map[string]any); !hasFields(o, inner) {
				return false
			}
		case want != "*" && have != want:
			return false
		}
	}
	return true
}

// stopsWith reports whether Kafka Streams stops at an error of that kind.
func (s *Scenario) stopsWith(kind string) bool {
	failed, _ := s.expect["error"].(map[string]any)
	return failed["kind"] == kind
}

// onlyMore reports whether each topic's expected records are there, in their order, among perhaps others.
func onlyMore(want, got any) bool {
	w, _ := want.(map[string]any)
	g, _ := got.(map[string]any)
	for topic, records := range w {
		expected, _ := records.([]any)
		have, _ := g[topic].([]any)
		for _, r := range have {
			if len(expected) > 0 && string(appendTree(nil, r)) == string(appendTree(nil, expected[0])) {
				expected = expected[1:]
			}
		}
		if len(expected) > 0 {
			return false
		}
	}
	return true
}
