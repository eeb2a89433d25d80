package topologytest

import (
	"regexp"

	"github.com/tributary-io/tributary/internal/plan"
)

// patternInput is a source that reads the topics whose names match a pattern.
type patternInput struct {
	node *plan.Node
	expr *regexp.Regexp
}

func patternInputs(p *plan.Plan) (inputs []*patternInput) {
	for _, sub := range p.Subtopologies {
		for _, n := range sub.Nodes {
			if n.Kind != plan.SourceNode || n.Pattern == "" {
				continue
			}
			if expr, err := plan.CompilePattern(n.Pattern); err == nil { // else Build has refused it
				inputs = append(inputs, &patternInput{n, expr})
			}
		}
	}
	return inputs
}

// deliverToPatterns copies a record to the inputs that stand for patterns in the driver mode. Offsets are counted by pattern there.
func (d *Driver) deliverToPatterns(from *partition, offset int64) {
	if d.partitioned() || len(d.patterns) == 0 {
		return
	}
	for _, in := range d.patternsOf(from.topic) {
		r := from.raw(offset)
		p := &d.broker.topics[in.node.Pattern].partitions[0]
		p.names = append(p.names, r.Topic)
		copied, raw := p.append(p.kept.keep(r.Timestamp, r.Key, r.Value), r.Headers), p.input.Slot()
		p.fillRaw(raw, copied)
		p.input.Filled(raw, copied+1)
	}
}

// patternsOf lists the patterns that match a topic's name.
func (d *Driver) patternsOf(t *topic) []*patternInput {
	if t.matched {
		return t.patterns
	}
	for _, in := range d.patterns {
		if in.expr.MatchString(t.name) {
			t.patterns = append(t.patterns, in)
		}
	}
	t.matched = true
	return t.patterns
}
