package golden

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// Prepared is a scenario to be run elsewhere than in the harness: on an engine, for instance.
type Prepared struct {
	Plan     *topology.Plan
	Handlers processors.Handlers
	Steps    []Step

	deadLetters string
}

// Step is a record that is piped to its topic's partition 0 or, if Advance isn't 0, a move of the wall clock, which starts at 0.
type Step struct {
	Record  topologytest.Record
	Advance time.Duration
}

// Topics are the topics that the scenario names: sources, sinks, and the topic for dead letters.
func (p *Prepared) Topics() map[string]bool {
	topics, internal := map[string]bool{}, p.Plan.Internal()
	for _, sub := range slices.Concat(internal.Subtopologies, internal.Globals) {
		for _, n := range sub.Nodes {
			for _, t := range append(slices.Clone(n.Topics), n.Topic) {
				topics[t] = t != "" && internal.InternalTopics[t] == nil
			}
		}
	}
	topics[p.deadLetters] = p.deadLetters != ""
	for _, step := range p.Steps {
		topics[step.Record.Topic] = step.Record.Topic != ""
	}
	maps.DeleteFunc(topics, func(_ string, named bool) bool { return !named })
	return topics
}

// Prepare builds a scenario's topology and encodes its records. It refuses, with an error that wraps ErrUnsupported, a scenario with
// queries, which mean something in the harness only. Each call builds a topology of its own.
func Prepare(s *Scenario) (*Prepared, error) {
	cfg, err := parseConfig(s)
	if err != nil {
		return nil, err
	}
	r := &run{scenario: s, cfg: cfg, build: newBuild(s, cfg, func(string, any, any) {})}
	p := &Prepared{Handlers: cfg.handlers(), deadLetters: cfg.dlqTopic}
	if p.Plan, err = r.build.plan(s.topology); err != nil {
		return nil, err
	}
	for i, raw := range s.steps {
		step, err := r.prepare(i, raw)
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, step)
	}
	return p, nil
}

func (r *run) prepare(i int, raw json.RawMessage) (step Step, err error) {
	o := newObject(fmt.Sprintf("step %d", i), raw, &err)
	switch {
	case o.has("pipe"):
		step.Record = r.encode(o.obj("pipe"))
	case o.has("advanceWallClock"):
		step.Advance = ms(o.int("advanceWallClock"))
	default:
		return step, unsupported("step %d: neither a record nor a move of the clock", i)
	}
	o.finish()
	return step, err
}
