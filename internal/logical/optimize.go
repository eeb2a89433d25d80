package logical

import (
	"slices"

	"github.com/tributary-io/tributary/internal/plan"
)

// mergeRepartitions replaces the repartitions below each key-changing operator by one, named like the first of them.
func (g *Graph) mergeRepartitions() {
	g.moveToMerges()
	for _, k := range g.keyChangers {
		if len(k.repartitions) > 0 {
			g.mergeBelow(k)
		}
	}
}

// moveToMerges takes the repartitions below a merge of streams from the operators above to the merge itself, where their topics can
// be merged.
func (g *Graph) moveToMerges() {
	above := make(map[*Node][]*keyChanger)
	for _, merge := range g.merges {
		for _, k := range g.keyChangers {
			if allBelow(k.repartitions, merge) && findChildOf(merge, k.node) != nil {
				above[merge] = append(above[merge], k)
			}
		}
	}
	var moved []*keyChanger
	for _, merge := range g.merges {
		m := &keyChanger{node: merge}
		for _, k := range above[merge] {
			for _, r := range k.repartitions {
				if !slices.Contains(m.repartitions, r) {
					m.repartitions = append(m.repartitions, r)
				}
			}
			moved = append(moved, k)
		}
		g.keyChangers = append(g.keyChangers, m)
	}
	g.keyChangers = slices.DeleteFunc(g.keyChangers, func(k *keyChanger) bool { return slices.Contains(moved, k) })
}

func allBelow(nodes []*Node, above *Node) bool {
	return !slices.ContainsFunc(nodes, func(n *Node) bool { return findChildOf(n, above) == nil })
}

// findChildOf finds the child of above on the way up from n.
func findChildOf(n, above *Node) *Node {
	return n.up(func(n *Node) bool { return slices.Contains(n.parents, above) })
}

// mergeBelow puts one repartition right below the key-changing operator, and takes out those that it replaces.
func (g *Graph) mergeBelow(k *keyChanger) {
	merged := g.mergedRepartition(k.repartitions)
	merged.priority = k.node.priority // before everything that follows it
	for _, old := range k.repartitions {
		child := findChildOf(old, k.node)
		if child == nil {
			g.problemOf(old, plan.TopologyProblem, "internal: no way from %s to its repartition", k.node.Name)
			continue
		}
		merged.addChild(child)
		k.node.removeChild(child)
		below, above := slices.Clone(old.children), slices.Clone(old.parents)
		for _, p := range above {
			for _, c := range below {
				p.addChild(c)
			}
			p.removeChild(old)
		}
		for _, c := range below {
			old.removeChild(c)
		}
		g.replaceInCopartition(old.Name, merged.Name)
	}
	k.node.addChild(merged)
}

// mergedRepartition has the topic of the first repartition, and the types and serdes of the first that knows them.
func (g *Graph) mergedRepartition(nodes []*Node) *Node {
	first := nodes[0].op.(*Repartition)
	typed := first.Typed
	for _, n := range nodes {
		if t := n.op.(*Repartition).Typed; t.Complete {
			typed = t
			break
		}
	}
	merged := g.NewRepartition(first.Topic, true, typed)
	merged.position = nodes[0].position
	return merged
}

func (g *Graph) replaceInCopartition(old, by string) {
	for _, sources := range g.copartition {
		for i, s := range sources {
			if s == old {
				sources[i] = by
			}
		}
	}
}

// simplifySelfJoins lets a stream that is joined with itself store its records once.
func (g *Graph) simplifySelfJoins() {
	visited := make(map[*Node]bool)
	var walk func(n *Node)
	walk = func(n *Node) {
		visited[n] = true
		if j, ok := n.op.(*StreamJoin); ok && len(n.parents) == 1 {
			g.simplifySelfJoin(n, j)
		}
		for _, c := range slices.Clone(n.children) {
			if !visited[c] {
				walk(c)
			}
		}
	}
	walk(g.root)
}

func (g *Graph) simplifySelfJoin(n *Node, j *StreamJoin) {
	parent := n.parents[0]
	for _, c := range parent.children {
		if _, ok := c.op.(*Windowed); ok && c.Name == j.OtherWindow {
			parent.removeChild(c)
			j.self = true
			return
		}
	}
}
