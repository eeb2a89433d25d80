package plansafety

import (
	"maps"
	"slices"

	"github.com/tributary-io/tributary/internal/plan"
)

// widths finds what decides the number of partitions of internal topics, after the rule of plan.Partitions, without knowing any numbers:
// a repartition topic has the number that was asked for, else that of the topics it is co-partitioned with, else the largest among the
// inputs of those who write it.
type widths struct {
	plan  *plan.Plan
	known map[string]Width
	busy  map[string]bool
}

func newWidths(p *plan.Plan) *widths {
	return &widths{plan: p, known: map[string]Width{}, busy: map[string]bool{}}
}

func (w *widths) of(topic string) Width {
	t := w.plan.InternalTopics[topic]
	if t == nil {
		return Width{Follow: []string{topic}}
	}
	if known, ok := w.known[topic]; ok || w.busy[topic] {
		return known
	}
	w.busy[topic] = true
	defer delete(w.busy, topic)
	width := w.decide(t)
	if len(w.busy) == 1 { // inside of a circle of co-partitioned topics the answer is only a part
		w.known[topic] = width
	}
	return width
}

func (w *widths) decide(t *plan.InternalTopic) Width {
	if t.Partitions > 0 {
		return Width{Fixed: t.Partitions}
	}
	if width, ok := w.byGroup(t.Name); ok {
		return width
	}
	var all []Width
	for _, sub := range w.plan.Subtopologies {
		if slices.ContainsFunc(sub.Nodes, func(n *plan.Node) bool { return n.Kind == plan.SinkNode && n.Topic == t.Name }) {
			all = append(all, w.ofSubtopology(sub.ID))
		}
	}
	for _, group := range w.plan.CopartitionGroups { // of internal topics only: the largest counts
		if !slices.Contains(group, t.Name) {
			continue
		}
		for _, topic := range group {
			all = append(all, w.of(topic))
		}
	}
	return widest(all)
}

// byGroup is the width of co-partitioned topics whose number is fixed, if there is one.
func (w *widths) byGroup(topic string) (Width, bool) {
	for _, group := range w.plan.CopartitionGroups {
		if !slices.Contains(group, topic) {
			continue
		}
		var users []Width
		for _, other := range group {
			if t := w.plan.InternalTopics[other]; t == nil {
				users = append(users, w.of(other))
			} else if t.Partitions > 0 {
				return Width{Fixed: t.Partitions}, true
			}
		}
		if len(users) > 0 {
			return widest(users), true
		}
	}
	return Width{}, false
}

// ofSubtopology is the number of its tasks.
func (w *widths) ofSubtopology(id int) Width {
	var all []Width
	for _, sub := range w.plan.Subtopologies {
		if sub.ID == id {
			for _, topic := range inputsOf(sub) {
				all = append(all, w.of(topic))
			}
		}
	}
	return widest(all)
}

func widest(all []Width) Width {
	var out Width
	follow := map[string]bool{}
	for _, w := range all {
		out.Fixed = max(out.Fixed, w.Fixed)
		for _, t := range w.Follow {
			follow[t] = true
		}
	}
	if len(follow) > 0 {
		out.Follow = slices.Sorted(maps.Keys(follow))
	}
	return out
}
