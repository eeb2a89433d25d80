package golden

import (
	"sort"
	"strings"

	"github.com/tributary-io/tributary/internal/plan"
)

// describe takes the sections about the shape of the topology from the plan.
func (r *run) describe() {
	r.result["describe"] = r.plan.Describe()
	subs := []any{}
	for _, sub := range r.plan.Subtopologies {
		subs = append(subs, r.subtopology(sub))
	}
	r.result["subtopologies"] = subs
	if len(r.plan.Globals) == 0 {
		return
	}
	var globals []any
	for _, sub := range r.plan.Globals {
		source, processor := sub.Nodes[0], sub.Nodes[1]
		globals = append(globals, map[string]any{
			"source": source.Name, "topics": texts(r.rawTopics(source.Topics)), "processor": processor.Name, "stores": texts(processor.Stores),
		})
	}
	r.result["globalStores"] = globals
}

func texts(list []string) []any {
	sorted := append([]string{}, list...)
	sort.Strings(sorted)
	out := make([]any, 0, len(list))
	for i, s := range sorted {
		if i == 0 || s != sorted[i-1] {
			out = append(out, s)
		}
	}
	return out
}

// rawTopics takes the application id off internal topics, as describe() does.
func (r *run) rawTopics(topics []string) []string {
	out := make([]string, len(topics))
	for i, t := range topics {
		out[i] = r.rawTopic(t)
	}
	return out
}

func (r *run) rawTopic(topic string) string {
	if r.plan.InternalTopics[topic] != nil {
		return strings.TrimPrefix(topic, r.cfg.applicationID+"-")
	}
	return topic
}

func (r *run) subtopology(sub *plan.Subtopology) any {
	var sinks, stores, repartitions, changelogs []string
	nodes := []any{}
	for _, n := range sub.Nodes {
		nodes = append(nodes, r.node(n))
		stores = append(stores, n.Stores...)
		if n.Kind == plan.SinkNode && !n.Dynamic {
			sinks = append(sinks, n.Topic)
		}
	}
	for _, t := range sub.SourceTopics {
		if r.plan.InternalTopics[t] != nil {
			repartitions = append(repartitions, t)
		}
	}
	for _, name := range stores {
		if s := r.plan.Stores[name]; s != nil && !s.Global && s.Changelog != "" {
			changelogs = append(changelogs, s.Changelog)
		}
	}
	out := map[string]any{"id": int64(sub.ID), "stores": texts(stores), "nodes": nodes}
	if len(sub.SourceTopics) > 0 { // of a sub-topology that reads a pattern only, Kafka Streams knows nothing before the start
		out["sources"], out["sinks"] = texts(sub.SourceTopics), texts(sinks)
		out["internalRepartitionTopics"], out["changelogTopics"] = texts(repartitions), texts(changelogs)
	}
	return out
}

func (r *run) node(n *plan.Node) any {
	out := map[string]any{"name": n.Name, "predecessors": texts(nodeNames(n.Parents)), "successors": texts(nodeNames(n.Children))}
	switch n.Kind {
	case plan.SourceNode:
		out["type"] = "source"
		if n.Pattern != "" {
			out["pattern"] = n.Pattern
		} else {
			out["topics"] = texts(r.rawTopics(n.Topics))
		}
	case plan.SinkNode:
		out["type"], out["topic"] = "sink", r.rawTopic(n.Topic)
		if n.Dynamic {
			out["topic"] = "<dynamic>"
		}
	default:
		out["type"], out["stores"] = "processor", texts(n.Stores)
	}
	return out
}

func nodeNames(nodes []*plan.Node) []string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return names
}
