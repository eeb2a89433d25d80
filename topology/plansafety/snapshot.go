package plansafety

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/topology"
)

// Snapshot takes of a plan what is to be compared.
func Snapshot(t *topology.Plan) *Plan {
	p := t.Internal()
	s := &snapshot{plan: p, formats: t.Formats(), generated: map[string]bool{}, width: newWidths(p)}
	for _, name := range t.GeneratedNames() {
		s.generated[name] = true
	}
	out := &Plan{
		Format: formatName, Version: formatVersion, OldestReader: oldestReader,
		Application: p.ApplicationID, Hash: p.Hash, StrictNames: t.Strict(), Outputs: t.Sinks(),
	}
	for _, sub := range p.Subtopologies {
		out.Subtopologies = append(out.Subtopologies, subtopology(sub, false))
	}
	for _, sub := range p.Globals {
		out.Subtopologies = append(out.Subtopologies, subtopology(sub, true))
	}
	slices.SortFunc(out.Subtopologies, func(a, b Subtopology) int { return cmp.Compare(a.ID, b.ID) })
	for _, name := range slices.Sorted(maps.Keys(p.Stores)) {
		out.Stores = append(out.Stores, s.store(p.Stores[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(p.InternalTopics)) {
		if topic := p.InternalTopics[name]; topic.Kind != plan.ChangelogTopic {
			out.Topics = append(out.Topics, s.topic(topic))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Nodes)) {
		if n := p.Nodes[name]; n.Kind == plan.LakeNode {
			out.Lakes = append(out.Lakes, s.lake(n))
		}
	}
	return out
}

type snapshot struct {
	plan      *plan.Plan
	formats   map[string]topology.Format
	generated map[string]bool
	width     *widths
}

func subtopology(sub *plan.Subtopology, global bool) Subtopology {
	out := Subtopology{ID: sub.ID, Global: global, Inputs: inputsOf(sub)}
	for _, n := range sub.Nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	return out
}

// inputsOf are the topics and patterns that a sub-topology reads.
func inputsOf(sub *plan.Subtopology) []string {
	all := []string{}
	for _, n := range sub.Nodes {
		all = append(all, topicsOf(n)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func topicsOf(n *plan.Node) []string {
	if n.Pattern != "" {
		return []string{"pattern:" + n.Pattern}
	}
	return n.Topics
}

func (s *snapshot) store(st *plan.Store) Store {
	spec, f := st.Spec, s.formats[st.Spec.Name]
	out := Store{
		Name: spec.Name, Generated: s.generated[spec.Name], Kind: spec.Kind.String(), Global: st.Global,
		Changelog: st.Changelog, SourceTopic: st.SourceAsChangelog, Key: f.Key, Value: f.Value,
		InMemory: spec.InMemory, MaxEntries: spec.MaxEntries, RetentionMs: spec.RetentionMs, WindowSizeMs: spec.WindowSizeMs,
		HistoryMs: spec.HistoryMs, GraceMs: spec.GraceMs, RetainDuplicates: spec.RetainDuplicates,
	}
	w := newWalk(s.plan)
	if len(st.Nodes) > 0 { // the first one fills it, others look things up in it
		n := s.plan.Nodes[st.Nodes[0]]
		out.Subtopology = n.Subtopology
		w.above(n)
	}
	out.Origins, out.Path = w.result()
	if !st.Global {
		out.Width = s.width.ofSubtopology(out.Subtopology)
	}
	return out
}

func (s *snapshot) topic(t *plan.InternalTopic) Topic {
	f := s.formats[t.Name]
	out := Topic{
		Name: t.Name, Generated: s.generated[t.Name], Kind: "repartition", Key: f.Key, Value: f.Value, Width: s.width.of(t.Name), Config: t.Config,
	}
	if t.Kind == plan.LakeTopic { // named after its sink
		out.Kind = "lake"
		sink := strings.TrimSuffix(strings.TrimPrefix(t.Name, s.plan.ApplicationID+"-"), "-lake")
		out.Generated = s.generated[sink]
	}
	w := newWalk(s.plan)
	w.aboveTopic(t.Name)
	out.Origins, out.Path = w.result()
	return out
}

func (s *snapshot) lake(n *plan.Node) Lake {
	out := Lake{Name: n.Lake.Name, Generated: s.generated[n.Lake.Name], Table: n.Lake.Sink.String()}
	for _, sub := range s.plan.Subtopologies {
		if sub.ID == n.Subtopology {
			out.Inputs = inputsOf(sub)
		}
	}
	w := newWalk(s.plan)
	w.above(n)
	out.Origins, _ = w.result()
	return out
}

// walk goes up from a node to the topics of the user, also through internal topics.
type walk struct {
	plan    *plan.Plan
	seen    map[*plan.Node]bool
	origins map[string]bool
	path    []string
}

func newWalk(p *plan.Plan) *walk {
	return &walk{plan: p, seen: map[*plan.Node]bool{}, origins: map[string]bool{}}
}

func (w *walk) above(n *plan.Node) {
	if w.seen[n] {
		return
	}
	w.seen[n] = true
	for _, p := range n.Parents {
		w.above(p)
	}
	for _, t := range topicsOf(n) {
		w.aboveTopic(t)
	}
	w.path = append(w.path, operatorOf(n.Name))
}

func (w *walk) aboveTopic(topic string) {
	if w.plan.InternalTopics[topic] == nil {
		w.origins[topic] = true
		return
	}
	for _, n := range nodesByName(w.plan) {
		if n.Kind == plan.SinkNode && n.Topic == topic {
			w.above(n)
		}
	}
}

func nodesByName(p *plan.Plan) []*plan.Node {
	return slices.SortedFunc(maps.Values(p.Nodes), func(a, b *plan.Node) int { return cmp.Compare(a.Name, b.Name) })
}

func (w *walk) result() (origins, path []string) {
	origins = slices.AppendSeq([]string{}, maps.Keys(w.origins))
	slices.Sort(origins)
	path = slices.Clone(w.path)
	slices.Sort(path) // the order of siblings depends on their names
	return origins, path
}

// number is what ends a generated name.
var number = regexp.MustCompile(`-?[0-9]{10}`)

// operatorOf is a node's name without its number.
func operatorOf(name string) string { return number.ReplaceAllString(name, "") }
