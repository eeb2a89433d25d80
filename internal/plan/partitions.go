package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Partitions computes how many partitions each internal topic has, from those of the topics that exist. count reports the number
// of partitions of a topic of the user, false if there is no such topic; patterns are the caller's to expand: topics that match a
// source's pattern are given in matched by source name.
//
// The rule is Kafka Streams': a repartition topic has the number that was asked for, else that of the topics it is co-partitioned
// with, else the largest number among the inputs of the sub-topologies that write to it. The topic before a lake sink follows the
// last of these. A changelog has as many partitions as its sub-topology has tasks.
//
// Errors: a *MissingTopicsError for topics that don't exist; else a *CopartitionError that names every group that doesn't fit.
func (p *Plan) Partitions(count func(topic string) (int32, bool), matched map[string][]string) (map[string]int32, error) {
	c := counter{plan: p, inputs: make(map[*Subtopology][]string), counts: make(map[string]int32), forced: make(map[string]int32)}
	if err := c.readInputs(count, matched); err != nil {
		return nil, err
	}
	if err := c.settle(); err != nil {
		return nil, err
	}
	return c.internal(), nil
}

// MissingTopicsError says that topics that the topology reads do not exist.
type MissingTopicsError struct {
	Topics []string
	// Undetermined are internal topics whose number of partitions can't be told, since none of their inputs exists.
	Undetermined []string
}

func (e *MissingTopicsError) Error() string {
	if len(e.Topics) == 0 {
		return fmt.Sprintf("the number of partitions of %s is unknown: no topic matches the pattern they come from; create one",
			strings.Join(e.Undetermined, ", "))
	}
	return fmt.Sprintf("topics missing: %s; create them before the start", strings.Join(e.Topics, ", "))
}

// CopartitionError says that topics that are joined have differing numbers of partitions.
type CopartitionError struct {
	// Groups holds the numbers of partitions of each group that doesn't fit, by topic.
	Groups []map[string]int32
}

func (e *CopartitionError) Error() string {
	var b strings.Builder
	b.WriteString("topics that are joined must have the same number of partitions:")
	for i, g := range e.Groups {
		if i > 0 {
			b.WriteString(";")
		}
		for j, topic := range slices.Sorted(maps.Keys(g)) {
			if j > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %s has %d", topic, g[topic])
		}
	}
	b.WriteString("; send one side through Repartition with Partitions(n), or create the topic anew with the other's number")
	return b.String()
}

// counter works out the numbers of partitions.
type counter struct {
	plan   *Plan
	inputs map[*Subtopology][]string // source topics, those that match patterns included
	counts map[string]int32          // what is known
	forced map[string]int32          // of internal topics, by their co-partitioned topics
}

func (c *counter) readInputs(count func(string) (int32, bool), matched map[string][]string) error {
	var missing []string
	for _, sub := range append(slices.Clone(c.plan.Subtopologies), c.plan.Globals...) {
		topics := slices.Clone(sub.SourceTopics)
		for _, n := range sub.Nodes {
			topics = append(topics, matched[n.Name]...)
		}
		c.inputs[sub] = topics
		for _, t := range topics {
			if internal := c.plan.InternalTopics[t]; internal != nil {
				if internal.Partitions > 0 {
					c.counts[t] = internal.Partitions
				}
				continue
			}
			if n, ok := count(t); ok {
				c.counts[t] = n
			} else if !slices.Contains(missing, t) {
				missing = append(missing, t)
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return &MissingTopicsError{Topics: missing}
	}
	return nil
}

// settle applies both rules until nothing changes: what a co-partitioned group decides may change what lies downstream.
func (c *counter) settle() error {
	for range len(c.plan.InternalTopics) + 2 {
		before := maps.Clone(c.counts)
		c.followInputs()
		if err := c.enforceGroups(); err != nil {
			return err
		}
		if maps.Equal(before, c.counts) {
			break
		}
	}
	var undetermined []string
	for name, t := range c.plan.InternalTopics {
		if t.Kind != ChangelogTopic && c.counts[name] == 0 {
			undetermined = append(undetermined, name)
		}
	}
	if len(undetermined) > 0 {
		slices.Sort(undetermined)
		return &MissingTopicsError{Undetermined: undetermined}
	}
	return nil
}

// followInputs gives each repartition topic the largest number among the inputs of its writers, until all are known.
func (c *counter) followInputs() {
	for name, t := range c.plan.InternalTopics {
		if t.Partitions == 0 && t.Kind != ChangelogTopic {
			delete(c.counts, name)
		}
	}
	maps.Copy(c.counts, c.forced)
	for progress := true; progress; {
		progress = false
		for name, t := range c.plan.InternalTopics {
			if t.Kind == ChangelogTopic || t.Partitions > 0 || c.forced[name] > 0 {
				continue
			}
			if n := c.writersInputs(name); n > c.counts[name] {
				c.counts[name] = n
				progress = true
			}
		}
	}
}

func (c *counter) writersInputs(topic string) int32 {
	var largest int32
	for _, sub := range c.plan.Subtopologies {
		if sub.writes(topic) {
			largest = max(largest, c.tasks(sub))
		}
	}
	return largest
}

func (s *Subtopology) writes(topic string) bool {
	return slices.ContainsFunc(s.Nodes, func(n *Node) bool { return n.Kind == SinkNode && n.Topic == topic })
}

// tasks is the number of tasks of a sub-topology: the largest number of partitions among its inputs.
func (c *counter) tasks(sub *Subtopology) int32 {
	var largest int32
	for _, t := range c.inputs[sub] {
		largest = max(largest, c.counts[t])
	}
	return largest
}

// enforceGroups makes internal topics follow the user's topics in their group, and each other if there are none.
func (c *counter) enforceGroups() error {
	var bad []map[string]int32
	for _, group := range c.plan.CopartitionGroups {
		want, fits := c.wanted(group)
		if !fits {
			bad = append(bad, c.known(group))
			continue
		}
		for _, topic := range group {
			if t := c.plan.InternalTopics[topic]; t != nil && t.Partitions == 0 && want > 0 {
				c.forced[topic], c.counts[topic] = want, want
			}
		}
	}
	if len(bad) > 0 {
		return &CopartitionError{Groups: bad}
	}
	return nil
}

// wanted is the number that a group must have: that of its topics whose number is fixed, which must agree; else the largest.
func (c *counter) wanted(group []string) (n int32, fits bool) {
	var fixed, largest int32
	for _, topic := range group {
		count := c.counts[topic]
		largest = max(largest, count)
		if t := c.plan.InternalTopics[topic]; t != nil && t.Partitions == 0 {
			continue
		}
		if fixed != 0 && fixed != count {
			return 0, false
		}
		fixed = count
	}
	if fixed == 0 {
		return largest, true
	}
	return fixed, true
}

func (c *counter) known(group []string) map[string]int32 {
	m := make(map[string]int32, len(group))
	for _, topic := range group {
		m[topic] = c.counts[topic]
	}
	return m
}

// internal returns the numbers of all internal topics, changelogs included.
func (c *counter) internal() map[string]int32 {
	out := make(map[string]int32, len(c.plan.InternalTopics))
	for name, t := range c.plan.InternalTopics {
		if t.Kind != ChangelogTopic {
			out[name] = c.counts[name]
		}
	}
	for _, sub := range c.plan.Subtopologies {
		for _, store := range sub.Stores {
			if s := c.plan.Stores[store]; s.Changelog != "" && !s.SourceAsChangelog {
				out[s.Changelog] = c.tasks(sub)
			}
		}
	}
	return out
}
