package logical

import (
	"fmt"
	"slices"

	"github.com/tributary-io/tributary/internal/callsite"
	"github.com/tributary-io/tributary/internal/plan"
)

// Graph collects the operators of one topology. It is used by one goroutine.
type Graph struct {
	root         *Node
	index        int // of generated names
	priorities   int
	keyChangers  []*keyChanger
	merges       []*Node
	tableSources []*Node
	aware        []*Node // of versioned semantics
	suppressions []*Node
	implicit     []Implicit
	copartition  [][]string
	internal     []internalTopic
	problems     []plan.Problem
}

// keyChanger is an operator that changes keys, and the repartitions below it that could share one topic.
type keyChanger struct {
	node         *Node
	repartitions []*Node
}

type internalTopic struct {
	name string
	kind plan.TopicKind
}

// NewGraph starts an empty graph.
func NewGraph() *Graph { return &Graph{root: &Node{Name: "root", written: true}} }

// NewName takes the next number for the name of a node.
func (g *Graph) NewName(prefix string) string {
	g.index++
	return fmt.Sprintf("%s%010d", prefix, g.index-1)
}

// NewStoreName takes the next number for the name of a store.
func (g *Graph) NewStoreName(prefix string) string { return g.NewName(prefix + "STATE-STORE-") }

// NameOr returns the name given by the user, or a generated one. A number is taken in both cases, so that naming one node doesn't
// rename the others.
func (g *Graph) NameOr(name, prefix string) string {
	generated := g.NewName(prefix)
	if name != "" {
		return name
	}
	return generated
}

// SuffixOr returns name + suffix, or a generated name; a number is taken in both cases.
func (g *Graph) SuffixOr(name, suffix, prefix string) string {
	if name == "" {
		return g.NewName(prefix)
	}
	return g.NameOr(name+suffix, prefix)
}

// Implicit is a durable thing that the user has not named: its name shifts when an operator is inserted before it.
type Implicit struct {
	Store, Changelog, Repartition, Lake string
}

// AddImplicit notes a generated name.
func (g *Graph) AddImplicit(i Implicit) {
	if !slices.Contains(g.implicit, i) {
		g.implicit = append(g.implicit, i)
	}
}

// Implicit returns the generated names of durable things, in the order in which they were made.
func (g *Graph) Implicit() []Implicit { return g.implicit }

// Problem records that something is wrong at an operator.
func (g *Graph) Problem(kind plan.ProblemKind, node, format string, args ...any) {
	g.AddProblem(plan.Problem{Kind: kind, Node: node, Message: fmt.Sprintf(format, args...)})
}

// AddProblem records a problem with a cause. Without a position it is the user's call that is being made.
func (g *Graph) AddProblem(p plan.Problem) {
	if p.Position == "" {
		p.Position = callsite.Declared()
	}
	g.problems = append(g.problems, p)
}

// problemOf records that something is wrong at a node that was declared before.
func (g *Graph) problemOf(n *Node, kind plan.ProblemKind, format string, args ...any) {
	g.problems = append(g.problems, plan.Problem{Kind: kind, Node: n.Name, Position: n.position, Message: fmt.Sprintf(format, args...)})
}

// Copartition demands that the topics of sources have equally many partitions.
func (g *Graph) Copartition(sources []string) {
	g.copartition = append(g.copartition, slices.Clone(sources))
}

// AddInternalTopic declares a topic that isn't made by a Repartition node.
func (g *Graph) AddInternalTopic(name string, kind plan.TopicKind) {
	g.internal = append(g.internal, internalTopic{name, kind})
}

// Add puts a node below its parents; without parents, below the root. A node may be added again below further parents: it then
// moves back in the order of writing, as in Kafka Streams.
func (g *Graph) Add(n *Node, parents ...*Node) *Node {
	if len(parents) == 0 {
		parents = []*Node{g.root}
	}
	for _, p := range parents {
		p.addChild(n)
		n.priority = g.priorities
		g.priorities++
		g.note(n)
	}
	if n.UseVersioned != nil && !slices.Contains(g.aware, n) {
		g.aware = append(g.aware, n)
	}
	if n.Suppress {
		g.suppressions = append(g.suppressions, n)
	}
	return n
}

// note keeps what the optimizations look for.
func (g *Graph) note(n *Node) {
	switch op := n.op.(type) {
	case *TableSource:
		g.tableSources = append(g.tableSources, n)
	case *Repartition:
		if !op.Optimizable {
			return
		}
		if k := g.changerOf(n); k != nil && !slices.Contains(k.repartitions, n) {
			k.repartitions = append(k.repartitions, n)
		}
	default:
		switch {
		case n.KeyChanging:
			g.keyChangers = append(g.keyChangers, &keyChanger{node: n})
		case n.Merge && !slices.Contains(g.merges, n):
			g.merges = append(g.merges, n)
		}
	}
}

// changerOf finds the operator that made a repartition necessary, if no operator in between changes values: only then is what goes
// through the topic the same for all repartitions below that operator.
func (g *Graph) changerOf(n *Node) *keyChanger {
	nearest := n.up(func(n *Node) bool { return n.KeyChanging || n.ValueChanging })
	changer := n.up(func(n *Node) bool { return n.KeyChanging })
	if nearest == nil || nearest != changer {
		return nil
	}
	i := slices.IndexFunc(g.keyChangers, func(k *keyChanger) bool { return k.node == changer })
	if i < 0 {
		return nil
	}
	return g.keyChangers[i]
}
