package differential

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/topology/topologytest"
	"github.com/tributary-io/tributary/topology/topologytest/golden"
)

// Outputs are the records of the output topics, in the order of each topic.
type Outputs map[string][]topologytest.Record

// Difference tells the first difference between what two runs have put out, by topic and key; "" if there is none. The order of records
// with different keys is not compared: nothing in Kafka promises it.
func (want Outputs) Difference(got Outputs) string {
	for _, topic := range slices.Sorted(maps.Keys(want)) {
		w, g := byKey(want[topic]), byKey(got[topic])
		for _, key := range slices.Sorted(maps.Keys(w)) {
			for i, rec := range w[key] {
				if i >= len(g[key]) {
					return fmt.Sprintf("topic %s, key %s: record %d is missing: %s", topic, key, i, rec)
				}
				if g[key][i] != rec {
					return fmt.Sprintf("topic %s, key %s, record %d: got %s, want %s", topic, key, i, g[key][i], rec)
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if more := g[key][len(w[key]):]; len(more) > 0 {
				return fmt.Sprintf("topic %s, key %s: %d records too many, the first %s", topic, key, len(more), more[0])
			}
		}
	}
	return ""
}

func byKey(recs []topologytest.Record) map[string][]string {
	m := map[string][]string{}
	for _, r := range recs {
		m[show(r.Key)] = append(m[show(r.Key)], fmt.Sprintf("%s at %d%s", show(r.Value), r.Timestamp, showHeaders(r.Headers)))
	}
	return m
}

func show(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case strings.IndexFunc(string(b), func(r rune) bool { return r < ' ' || r > '~' }) < 0:
		return fmt.Sprintf("%q", b)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func showHeaders(headers []processors.Header) string {
	var text strings.Builder
	for _, h := range headers {
		switch h.Key {
		case processors.HeaderErrorMessage, processors.HeaderErrorStacktrace: // they name goroutines
			continue
		}
		fmt.Fprintf(&text, " %s=%s", h.Key, show(h.Value))
	}
	return text.String()
}

// InHarness runs a scenario in the harness.
func InHarness(s *Scenario) (Outputs, error) {
	p, err := s.prepare()
	if err != nil {
		return nil, err
	}
	d, err := topologytest.Open(p.Plan, topologytest.ErrorHandlers(p.Handlers), topologytest.StartTime(wallStart))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out := Outputs{}
	for i, step := range p.Steps {
		if step.Advance != 0 {
			err = d.AdvanceWallClock(step.Advance)
		} else {
			err = d.Pipe(step.Record)
		}
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		if err := out.take(d, s, p.Plan.Internal(), step.Record.Topic); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	return out, d.Close()
}

// errRace says that a result depends on which of two records comes first that reach the same sub-topology by different topics within a step.
// In the harness that is settled; in a cluster nothing settles it.
var errRace = fmt.Errorf("%w: two topics of one sub-topology got records in the same step", golden.ErrUnsupported)

// take takes what a step has written. piped is the topic that the step's record went to, "" if it was none.
func (o Outputs) take(d *topologytest.Driver, s *Scenario, p *plan.Plan, piped string) error {
	written := map[string]bool{piped: true}
	for _, topic := range d.Topics() {
		recs := d.Read(topic)
		if len(recs) > 0 {
			written[topic] = true
		}
		if strings.HasPrefix(topic, s.prefix) {
			o[topic] = append(o[topic], recs...)
		}
	}
	for _, sub := range p.Subtopologies {
		if len(slices.DeleteFunc(slices.Clone(sub.SourceTopics), func(t string) bool { return !written[t] })) > 1 {
			return errRace
		}
	}
	return nil
}
