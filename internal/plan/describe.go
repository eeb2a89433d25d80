package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Describe writes the topology as the text of Kafka Streams' Topology.describe(), so that the two can be compared and the tools
// that draw it can be used. Internal topics appear in it without the application id.
//
// A lake sink, which Kafka Streams has not, is written like a sink with its table in place of the topic.
func (p *Plan) Describe() string {
	var b strings.Builder
	b.WriteString("Topologies:\n ")
	all := append(slices.Clone(p.Subtopologies), p.Globals...)
	slices.SortFunc(all, func(x, y *Subtopology) int { return cmp.Compare(x.ID, y.ID) })
	for _, s := range all {
		if slices.Contains(p.Globals, s) {
			p.describeGlobal(&b, s)
		} else {
			p.describeSubtopology(&b, s)
		}
	}
	return b.String()
}

func (p *Plan) describeSubtopology(b *strings.Builder, s *Subtopology) {
	d := newDescriber(s)
	b.WriteString("  Sub-topology: " + itoa(s.ID) + "\n")
	for _, n := range d.sorted(s.Nodes) {
		b.WriteString("    ")
		d.node(b, p, n)
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func (p *Plan) describeGlobal(b *strings.Builder, s *Subtopology) {
	d := newDescriber(s)
	b.WriteString("  Sub-topology: " + itoa(s.ID) + " for global store (will not generate tasks)\n")
	for _, n := range s.Nodes { // the source, the processor
		b.WriteString("    ")
		d.node(b, p, n)
		b.WriteString("\n")
	}
}

// describer holds the order in which a sub-topology's nodes are listed: those with the most below them first, then by name.
//
// Parents and children are put in order while the sizes are still being summed up, node by node in the order of a Java HashMap, since
// that is how Kafka Streams comes to its text.
type describer struct {
	size              map[*Node]int
	parents, children map[*Node]*javaTree
}

func newDescriber(s *Subtopology) *describer {
	d := &describer{
		size: make(map[*Node]int, len(s.Nodes)), parents: make(map[*Node]*javaTree), children: make(map[*Node]*javaTree),
	}
	byName := make(map[string]*Node, len(s.Nodes))
	names := make([]string, len(s.Nodes))
	for i, n := range s.Nodes {
		d.size[n], byName[n.Name], names[i] = 1, n, n.Name
		d.parents[n], d.children[n] = &javaTree{compare: d.compare}, &javaTree{compare: d.compare}
	}
	for _, name := range HashOrder(names) {
		n := byName[name]
		for _, p := range n.Parents {
			d.parents[n].add(p)
			d.children[p].add(n)
			d.grow(p, d.size[n])
		}
	}
	return d
}

// grow adds to the size of a node and of all that were found above it. A node that is reached on two ways counts twice. The ways are counted and not
// walked: where branches part and merge again and again, their number is a power of that of the branches.
func (d *describer) grow(n *Node, by int) {
	more := map[*Node]int{n: by}
	for _, at := range d.above(n) {
		d.size[at] = addSizes(d.size[at], more[at])
		for _, p := range d.parents[at].list() {
			more[p] = addSizes(more[p], more[at])
		}
	}
}

// above lists a node and all that were found above it, each before its parents.
func (d *describer) above(n *Node) (all []*Node) {
	seen := map[*Node]bool{}
	var visit func(*Node)
	visit = func(n *Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, p := range d.parents[n].list() {
			visit(p)
		}
		all = append(all, n)
	}
	visit(n)
	slices.Reverse(all)
	return all
}

// addSizes adds sizes up to the largest there is.
func addSizes(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func (d *describer) compare(x, y *Node) int {
	return cmp.Or(cmp.Compare(d.size[y], d.size[x]), cmp.Compare(x.Name, y.Name))
}

func (d *describer) sorted(nodes []*Node) []*Node {
	return slices.SortedFunc(slices.Values(nodes), d.compare)
}

func (d *describer) node(b *strings.Builder, p *Plan, n *Node) {
	switch n.Kind {
	case SourceNode:
		topics := n.Pattern
		if topics == "" {
			topics = "[" + strings.Join(HashOrder(p.rawTopics(n.Topics)), ", ") + "]"
		}
		b.WriteString("Source: " + n.Name + " (topics: " + topics + ")")
	case ProcessorNode:
		b.WriteString("Processor: " + n.Name + " (stores: [" + strings.Join(HashOrder(n.Stores), ", ") + "])")
	case SinkNode:
		if n.Dynamic {
			b.WriteString("Sink: " + n.Name + " (extractor class: per record)")
		} else {
			b.WriteString("Sink: " + n.Name + " (topic: " + p.rawTopic(n.Topic) + ")")
		}
	case LakeNode:
		b.WriteString("Sink: " + n.Name + " (table: " + n.Lake.Sink.String() + ")")
	}
	if n.Kind == SourceNode || n.Kind == ProcessorNode {
		b.WriteString("\n      --> " + names(d.children[n].list()))
	}
	if n.Kind != SourceNode {
		b.WriteString("\n      <-- " + names(d.parents[n].list()))
	}
}

func names(nodes []*Node) string {
	if len(nodes) == 0 {
		return "none"
	}
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = n.Name
	}
	return strings.Join(list, ", ")
}

// rawTopic takes the application id off an internal topic.
func (p *Plan) rawTopic(topic string) string {
	if p.InternalTopics[topic] != nil {
		return strings.TrimPrefix(topic, p.ApplicationID+"-")
	}
	return topic
}

func (p *Plan) rawTopics(topics []string) []string {
	out := make([]string, len(topics))
	for i, t := range topics {
		out[i] = p.rawTopic(t)
	}
	return out
}
