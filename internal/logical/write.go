package logical

import (
	"container/heap"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/internal/plan"
)

// Options say how the graph becomes a plan. The optimizations are those of Kafka Streams' topology.optimization.
type Options struct {
	// ReuseSourceTopics makes the topics of tables the changelogs of their stores.
	ReuseSourceTopics bool
	// MergeRepartitions lets repartitions below one key-changing operator share a topic.
	MergeRepartitions bool
	// SelfJoins keeps one store instead of two where a stream is joined with itself.
	SelfJoins bool
	// StrictNames refuses generated names of durable things.
	StrictNames bool
}

// Write rewrites the graph and writes it into b. The graph must not be used afterwards.
func (g *Graph) Write(b *plan.Builder, o Options) {
	g.mergeSources()
	if o.ReuseSourceTopics {
		for _, n := range g.tableSources {
			n.op.(*TableSource).reuseTopic = true
		}
	}
	if o.MergeRepartitions {
		g.mergeRepartitions()
	}
	if o.SelfJoins {
		g.simplifySelfJoins()
	}
	g.dropNullKeys()
	g.carryCoordinates()
	g.tellVersioned()
	b.AddProblems(g.problems...)
	g.problems = nil
	for _, t := range g.internal {
		b.AddInternalTopic(t.name, t.kind, 0)
	}
	g.writeNodes(b)
	for _, sources := range g.copartition {
		b.Copartition(sources...)
	}
	if o.StrictNames {
		g.refuseImplicit(b)
	}
}

// writeNodes writes nodes by priority as soon as all their parents are written.
func (g *Graph) writeNodes(b *plan.Builder) {
	queue := priorityQueue(slices.Clone(g.root.children))
	heap.Init(&queue)
	for len(queue) > 0 {
		n := heap.Pop(&queue).(*Node)
		if n.written || !n.parentsWritten() {
			continue
		}
		b.At(n.position, func() { n.op.write(b, n) })
		n.written = true
		for _, c := range n.children {
			heap.Push(&queue, c)
		}
	}
}

// priorityQueue is a heap of nodes, smallest priority first.
type priorityQueue []*Node

func (q priorityQueue) Len() int           { return len(q) }
func (q priorityQueue) Less(i, j int) bool { return q[i].priority < q[j].priority }
func (q priorityQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *priorityQueue) Push(x any)        { *q = append(*q, x.(*Node)) }
func (q *priorityQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// mergeSources makes streams of the same topics, or of the same pattern, share the source that came first.
func (g *Graph) mergeSources() {
	byTopic, byPattern := make(map[string]*Node), make(map[string]*Node)
	for _, n := range slices.Clone(g.root.children) {
		s, ok := n.op.(*Source)
		if !ok {
			continue
		}
		if s.Pattern != "" {
			if first := byPattern[s.Pattern]; first != nil {
				g.mergeSource(first, n)
			} else {
				byPattern[s.Pattern] = n
			}
			continue
		}
		for _, topic := range s.Topics {
			switch first := byTopic[topic]; {
			case first == nil:
				byTopic[topic] = n
			case first == n || !slices.Contains(g.root.children, n):
				// the same topic twice in one source, or merged by another of its topics
			case !sameTopics(first.op.(*Source), s):
				g.problemOf(n, plan.TopologyProblem,
					"topic %s is read by source %s already, together with other topics: two sources may share all their topics or none",
					topic, first.Name)
			default:
				g.mergeSource(first, n)
			}
		}
	}
}

func sameTopics(a, b *Source) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Topics)), slices.Sorted(slices.Values(b.Topics)))
}

// mergeSource moves what is below n to first.
func (g *Graph) mergeSource(first, n *Node) {
	a, b := first.op.(*Source), n.op.(*Source)
	if a.Reset != b.Reset {
		g.problemOf(n, plan.TopologyProblem, "source %s reads the same topics with another offset reset policy", first.Name)
	}
	if a.Idle != b.Idle {
		g.problemOf(n, plan.TopologyProblem, "source %s reads the same topics with other settings for idleness", first.Name)
	}
	if a.Key != b.Key || a.Value != b.Value {
		g.problemOf(n, plan.InvalidArgument, "source %s reads the same topics as %v and %v, this one as %v and %v",
			first.Name, a.Key, a.Value, b.Key, b.Value)
	}
	for _, c := range slices.Clone(n.children) {
		n.removeChild(c)
		first.addChild(c)
	}
	g.root.removeChild(n)
}

// dropNullKeys makes repartitions drop records with a null key, unless a left or outer join below them wants these.
func (g *Graph) dropNullKeys() {
	relaxed := g.above(func(n *Node) bool { return n.NullKeyRelaxed })
	for n, wanted := range relaxed {
		if r, ok := n.op.(*Repartition); ok {
			r.dropNullKeys = !wanted
		}
	}
}

// carryCoordinates makes repartitions above lake sinks carry the coordinates of source records.
func (g *Graph) carryCoordinates() {
	toLake := g.above(func(n *Node) bool { _, ok := n.op.(*Lake); return ok })
	for n, yes := range toLake {
		switch op := n.op.(type) {
		case *Repartition:
			op.toLake = yes
		case *TableRepartition:
			op.toLake = yes
		}
	}
}

// above tells of every node whether one that fits is below it.
func (g *Graph) above(fits func(*Node) bool) map[*Node]bool {
	is := make(map[*Node]bool)
	var walk func(n *Node)
	walk = func(n *Node) {
		if _, seen := is[n]; seen {
			return
		}
		is[n] = false
		for _, c := range n.children {
			walk(c)
			if fits(c) || is[c] {
				is[n] = true
			}
		}
	}
	walk(g.root)
	return is
}

// tellVersioned tells processors which of their tables are versioned.
func (g *Graph) tellVersioned() {
	for _, n := range g.aware {
		for _, p := range n.parents {
			if p.versioned() {
				n.UseVersioned(p.Name)
			}
		}
	}
	for _, n := range g.suppressions {
		if n.parentsVersioned() {
			g.problemOf(n, plan.TopologyProblem, "a versioned table can't be suppressed, nor can what is computed from one without a store of its own")
		}
	}
}

// refuseImplicit makes one problem of all generated durable names.
func (g *Graph) refuseImplicit(b *plan.Builder) {
	var stores, changelogs, repartitions, lakes []string
	for _, i := range g.implicit {
		stores = appendNamed(stores, i.Store)
		changelogs = appendNamed(changelogs, i.Changelog)
		repartitions = appendNamed(repartitions, i.Repartition)
		lakes = appendNamed(lakes, i.Lake)
	}
	var parts []string
	for _, kind := range []struct {
		what  string
		names []string
	}{{"stores", stores}, {"changelog topics", changelogs}, {"repartition topics", repartitions}, {"lake sinks", lakes}} {
		if len(kind.names) > 0 {
			parts = append(parts, kind.what+" "+strings.Join(kind.names, ", "))
		}
	}
	if len(parts) > 0 {
		b.Problem(plan.TopologyProblem, "", "names are strict, but these durable names are generated: %s; name them with Name and Store",
			strings.Join(parts, "; "))
	}
}

func appendNamed(names []string, name string) []string {
	if name == "" {
		return names
	}
	return append(names, name)
}
