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
	// Name is that of the scenario. Emit, in its place, stands for all scenarios with an aggregation of that emit strategy.
	Name string `json:"name,omitempty"`
	Emit string `json:"emit,omitempty"`
	// Sections are those that may differ.
	Sections []string `json:"sections"`
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
		if (k.Name == "") == (k.Emit == "") || k.Reason == "" || k.Doc == "" || len(k.Sections) == 0 {
			return nil, fmt.Errorf("%s: entry %d needs a name or an emit strategy, sections, a reason and the page that documents it", path, i)
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
		if k.Name != s.Name && (k.Emit == "" || !s.emits(k.Emit)) || !contains(k.Sections, section) {
			continue
		}
		if !k.More || onlyMore(s.expect[section], got[section]) {
			return k
		}
	}
	return nil
}

// emits reports whether the scenario has an aggregation of that emit strategy.
func (s *Scenario) emits(strategy string) bool {
	for _, raw := range s.topology {
		var op struct{ Emit string }
		if json.Unmarshal(raw, &op) == nil && op.Emit == strategy {
			return true
		}
	}
	return false
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
