package plan

import (
	"fmt"
	"slices"
	"strings"
)

// checkCopartition finds groups in which every topic is internal and has a number of partitions that was asked for, but not the
// same number. Whatever depends on topics that exist is found at start (see Plan.Partitions).
func (b *Builder) checkCopartition() {
	for _, group := range b.copart {
		var asked []string
		counts := make(map[int32]bool)
		for _, topic := range b.copartitionTopics(group) {
			t := b.internal[topic]
			if t == nil || t.Partitions == 0 {
				counts = nil
				break
			}
			asked = append(asked, fmt.Sprintf("%s: %d", topic, t.Partitions))
			counts[t.Partitions] = true
		}
		if len(counts) > 1 {
			b.Problem(TopologyProblem, "", "topics that are joined must have the same number of partitions, but they ask for %s",
				strings.Join(asked, ", "))
		}
	}
}

// copartitionTopics returns the raw topics of a group of sources, sorted. Patterns have no topics before the start.
func (b *Builder) copartitionTopics(sources []string) []string {
	var topics []string
	for _, name := range sources {
		if d := b.byName[name]; d != nil {
			topics = append(topics, d.topics...)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// copartitionGroups merges groups that share a topic and returns full names, sorted. A topic alone is no group.
func (b *Builder) copartitionGroups(applicationID string) [][]string {
	var merged groups
	var all []string
	for _, group := range b.copart {
		topics := b.fullAll(applicationID, b.copartitionTopics(group))
		for _, t := range topics {
			if !slices.Contains(all, t) {
				all = append(all, t)
				merged.add(t)
			}
			merged.unite(t, topics[0])
		}
	}
	byRoot := make(map[string][]string)
	slices.Sort(all)
	for _, t := range all {
		byRoot[merged.root(t)] = append(byRoot[merged.root(t)], t)
	}
	var out [][]string
	for _, t := range all { // in the order of their first topic
		if g := byRoot[merged.root(t)]; g[0] == t && len(g) > 1 {
			out = append(out, g)
		}
	}
	return out
}
