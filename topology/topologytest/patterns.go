package topologytest

import (
	"regexp"
	"slices"

	"github.com/tributary-io/tributary/internal/plan"
)

// patternInput is a source that reads the topics whose names match a pattern.
type patternInput struct {
	node *plan.Node
	expr *regexp.Regexp
}

// patternInputs lists the sources with patterns in the order in which they are asked whether they match. Two with the same pattern are one
// input, of which the later source has the records in the driver mode.
func patternInputs(p *plan.Plan) (inputs []*patternInput) {
	byPattern := map[string][]*patternInput{}
	var read []string
	for _, sub := range p.Subtopologies {
		read = append(read, sub.SourceTopics...)
		for _, n := range sub.Nodes {
			if n.Kind != plan.SourceNode || n.Pattern == "" {
				continue
			}
			if expr, err := plan.CompilePattern(n.Pattern); err == nil { // else Build has refused it
				byPattern[n.Pattern] = append(byPattern[n.Pattern], &patternInput{n, expr})
				read = append(read, n.Pattern)
			}
		}
	}
	for _, name := range plan.HashOrder(read) {
		inputs = append(inputs, byPattern[name]...)
	}
	return inputs
}

// deliverToPattern copies a record to the input that stands for a pattern in the driver mode. Offsets are counted by pattern there, and of
// several patterns that match a topic one has its records, as in the driver of Kafka Streams; on brokers Kafka Streams refuses such a topic.
func (d *Driver) deliverToPattern(from *partition, offset int64) {
	if d.partitioned() || len(d.patterns) == 0 {
		return
	}
	in := d.patternOf(from.topic)
	if in == nil {
		return
	}
	r := from.raw(offset)
	p := &d.broker.topics[in.node.Pattern].partitions[0]
	if p == from {
		return // a pattern that is the topic's name as it is
	}
	copied, raw := p.append(p.kept.keep(r.Timestamp, r.Key, r.Value), r.Headers), p.input.Slot()
	p.copiedFrom(r.Topic, copied)
	p.fillRaw(raw, copied)
	p.input.Filled(raw, copied+1)
}

// patternOf finds the input that stands for the pattern that is a topic's name as it is, else for the first that matches it, nil if none does.
func (d *Driver) patternOf(t *topic) *patternInput {
	if t.matched {
		return t.pattern
	}
	t.matched = true
	named := slices.ContainsFunc(d.patterns, func(in *patternInput) bool { return in.node.Pattern == t.name })
	for _, in := range d.patterns {
		if in.node.Pattern != t.name && (named || !in.expr.MatchString(t.name)) {
			continue
		}
		if t.pattern == nil || t.pattern.node.Pattern == in.node.Pattern {
			t.pattern = in
		}
	}
	return t.pattern
}
