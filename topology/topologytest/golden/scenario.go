package golden

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// Scenario is one scenario file.
type Scenario struct {
	Name, Area, Notes string
	// Path is the file it was read from.
	Path string
	Tags []string

	config   json.RawMessage
	topics   map[string]topicTypes
	topology []json.RawMessage
	steps    []json.RawMessage
	expect   map[string]any
}

// topicTypes are the types with which the runner writes and reads a topic.
type topicTypes struct{ key, value Type }

// Tagged reports whether the scenario carries the tag: "quirk" or "tie".
func (s *Scenario) Tagged(tag string) bool { return slices.Contains(s.Tags, tag) }

// Load reads one scenario.
func Load(path string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", path, err)
	}
	s.Path = path
	return s, nil
}

// Parse reads a scenario from the bytes of its file.
func Parse(data []byte) (*Scenario, error) {
	var failed error
	o := newObject("scenario", data, &failed)
	s := &Scenario{Name: o.str("name"), Area: o.str("area"), Notes: o.str("notes"), Tags: o.strs("tags"), topics: map[string]topicTypes{}}
	s.config = json.RawMessage("{}")
	if o.has("config") {
		s.config = o.raw("config")
	}
	o.into("topology", &s.topology)
	o.into("steps", &s.steps)
	topics := o.obj("topics")
	for name := range topics.fields {
		t := topics.obj(name)
		s.topics[name] = topicTypes{t.typ("key"), t.typ("value")}
		t.finish()
	}
	if o.has("expect") {
		tree, err := parseTree(o.raw("expect"))
		if err != nil {
			o.fail(err)
		}
		s.expect, _ = tree.(map[string]any)
	}
	o.finish()
	return s, failed
}

// pipesNullKeys tells whether a record without a key is piped. Keys in windows are read as any then, since a topology.Window is never null.
func (s *Scenario) pipesNullKeys() bool {
	for _, raw := range s.steps {
		var step struct{ Pipe map[string]json.RawMessage }
		if json.Unmarshal(raw, &step) != nil || step.Pipe == nil {
			continue
		}
		_, encoded := step.Pipe["keyBase64"]
		if key, ok := step.Pipe["key"]; !encoded && (!ok || string(key) == "null") {
			return true
		}
	}
	return false
}

// LoadDir reads all scenarios in a folder and the folders below it, ordered by path.
func LoadDir(dir string) ([]*Scenario, error) {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".json") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading scenarios: %w", err)
	}
	sort.Strings(paths)
	list := make([]*Scenario, 0, len(paths))
	for _, path := range paths {
		s, err := Load(path)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no scenarios (*.json) in %s", dir)
	}
	return list, nil
}
