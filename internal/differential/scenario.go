package differential

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/tributary-io/tributary/topology/topologytest/golden"
)

// Scenario is a scenario whose topics and application have names of their own.
type Scenario struct {
	Name   string
	prefix string
	data   []byte
}

// Load reads a scenario. All its names will start with prefix, which no other run on the same cluster may share. It returns an error
// that wraps golden.ErrUnsupported for a scenario that can't be run with other names or outside the harness.
func Load(path, prefix string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber() // a number must not become another one on its way through
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", path, err)
	}
	s := &Scenario{prefix: prefix + "-"}
	s.Name, _ = tree["name"].(string)
	if err := s.rename(tree); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", path, err)
	}
	delete(tree, "expect")
	if s.data, err = json.Marshal(tree); err != nil {
		return nil, err
	}
	p, err := s.prepare()
	if err != nil {
		return nil, err
	}
	return s, refuse(tree["topology"], len(p.Plan.Internal().Subtopologies))
}

// refuse finds processors of the vocabulary that show what the harness, which runs all sub-topologies in one task, must have otherwise than an
// engine with a task for each.
func refuse(part any, subtopologies int) error {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			if err := refuse(p, subtopologies); err != nil {
				return err
			}
		}
	case map[string]any:
		switch {
		case part["type"] == "wallClock":
			return fmt.Errorf("%w: it acts by the wall clock", golden.ErrUnsupported)
		case (part["intervalMs"] != nil || part["kind"] == "context") && subtopologies > 1:
			return fmt.Errorf("%w: it shows the stream time of a task", golden.ErrUnsupported)
		}
		for _, p := range part {
			if err := refuse(p, subtopologies); err != nil {
				return err
			}
		}
	}
	return nil
}

// rename gives topics and the application their own names.
func (s *Scenario) rename(tree map[string]any) error {
	config, _ := tree["config"].(map[string]any)
	if config == nil {
		config = map[string]any{}
		tree["config"] = config
	}
	config["applicationId"] = s.application()
	if topic, ok := config["dlqTopic"].(string); ok {
		config["dlqTopic"] = s.prefix + topic
	}
	if topics, ok := tree["topics"].(map[string]any); ok {
		own := map[string]any{}
		for name, types := range topics {
			own[s.prefix+name] = types
		}
		tree["topics"] = own
	}
	ops, _ := tree["topology"].([]any)
	steps, _ := tree["steps"].([]any)
	for _, part := range append(ops, steps...) {
		o, _ := part.(map[string]any)
		if pipe, ok := o["pipe"].(map[string]any); ok {
			o = pipe
		}
		for _, field := range []string{"pattern", "topicFrom"} {
			if o[field] != nil {
				return fmt.Errorf("%w: a %s can't be given another name", golden.ErrUnsupported, field)
			}
		}
		if topic, ok := o["topic"].(string); ok {
			o["topic"] = s.prefix + topic
		}
		if topics, ok := o["topics"].([]any); ok {
			for i, topic := range topics {
				topics[i] = s.prefix + fmt.Sprint(topic)
			}
		}
	}
	return nil
}

// application is the application's id. It doesn't start like the topics, by which internal topics are told from others.
func (s *Scenario) application() string { return "app-" + strings.TrimSuffix(s.prefix, "-") }

// prepare builds the topology anew.
func (s *Scenario) prepare() (*golden.Prepared, error) {
	parsed, err := golden.Parse(s.data)
	if err != nil {
		return nil, err
	}
	return golden.Prepare(parsed)
}
