package logical

import (
	"slices"

	"github.com/tributary-io/tributary/internal/plan"
)

// Node is an operator in the graph.
type Node struct {
	// Name is what nodes below know it by: the last node of the plan that it becomes.
	Name string
	// KeyChanging, ValueChanging and Merge matter to the merging of repartition topics.
	KeyChanging, ValueChanging, Merge bool
	// NullKeyRelaxed marks left and outer joins of streams: they take null keys, so a repartition above must let these pass.
	NullKeyRelaxed bool
	// Versioned says whether the node's output is a versioned table; Inherited leaves it to the parents.
	Versioned Versioning
	// UseVersioned, if set, tells the node's processor that the table of a parent is versioned; parent is the parent's name.
	UseVersioned func(parent string)
	// Suppress marks a suppression, which can't follow a versioned table.
	Suppress bool
	// Grace is set on nodes that define windows.
	Grace *WindowGrace

	op       operator
	position string // of the user's call that declared it
	parents  []*Node
	children []*Node
	priority int
	written  bool
}

// Versioning says whether a table keeps versions (KIP-889).
type Versioning int

// The answers. A table without a store of its own is what its parents are.
const (
	Inherited Versioning = iota
	Versioned
	Unversioned
)

// VersionedIf returns Versioned or Unversioned.
func VersionedIf(yes bool) Versioning {
	if yes {
		return Versioned
	}
	return Unversioned
}

// WindowGrace tells what follows how long results of a windowed aggregation may still change.
type WindowGrace struct {
	// Ms is the time after a window's end at which it closes; for sessions the gap included.
	Ms int64
	// Never says that the windows have no end, so that they never close.
	Never bool
}

// operator is what a node becomes in the plan.
type operator interface {
	write(b *plan.Builder, n *Node)
}

// Names of parents, for the plan.
func (n *Node) parentNames() []string {
	names := make([]string, len(n.parents))
	for i, p := range n.parents {
		names[i] = p.Name
	}
	return names
}

// addChild connects two nodes, once.
func (n *Node) addChild(child *Node) {
	if !slices.Contains(n.children, child) {
		n.children = append(n.children, child)
		child.parents = append(child.parents, n)
	}
}

func (n *Node) removeChild(child *Node) {
	if i := slices.Index(n.children, child); i >= 0 {
		n.children = slices.Delete(slices.Clone(n.children), i, i+1)
		child.removeParent(n)
	}
}

func (n *Node) removeParent(parent *Node) {
	if i := slices.Index(n.parents, parent); i >= 0 {
		n.parents = slices.Delete(slices.Clone(n.parents), i, i+1)
	}
}

func (n *Node) parentsWritten() bool {
	return !slices.ContainsFunc(n.parents, func(p *Node) bool { return !p.written })
}

// up searches the node and what is above it, parents first, for one that fits.
func (n *Node) up(fits func(*Node) bool) *Node { return n.upExcept(map[*Node]bool{}, fits) }

// upExcept is up where nothing fits of what was searched. A node is searched once, however many ways lead to it.
func (n *Node) upExcept(searched map[*Node]bool, fits func(*Node) bool) *Node {
	if searched[n] {
		return nil
	}
	searched[n] = true
	if fits(n) {
		return n
	}
	for _, p := range n.parents {
		if fits(p) {
			return p
		}
		if found := p.upExcept(searched, fits); found != nil {
			return found
		}
	}
	return nil
}

// versioned tells whether the node's output is a versioned table.
func (n *Node) versioned() bool { return n.versionedExcept(map[*Node]bool{}) }

// parentsVersioned tells whether each parent's output is a versioned table.
func (n *Node) parentsVersioned() bool { return n.parentsVersionedExcept(map[*Node]bool{}) }

// versionedExcept is versioned where nothing of what was searched says no. A node is searched once, however many ways lead to it.
func (n *Node) versionedExcept(searched map[*Node]bool) bool {
	if n.Versioned != Inherited {
		return n.Versioned == Versioned
	}
	if searched[n] {
		return true
	}
	searched[n] = true
	return n.parentsVersionedExcept(searched)
}

func (n *Node) parentsVersionedExcept(searched map[*Node]bool) bool {
	if len(n.parents) == 0 {
		return false // the root
	}
	return !slices.ContainsFunc(n.parents, func(p *Node) bool { return !p.versionedExcept(searched) })
}

// FindGrace finds the windows above n: the largest grace of all branches, or false if a branch has no windows.
func (n *Node) FindGrace() (WindowGrace, bool) {
	var found WindowGrace
	if !n.addGrace(&found, map[*Node]bool{}) {
		return WindowGrace{}, false
	}
	return found, true
}

// addGrace adds the windows above n to those found, and tells whether no branch is without. A node is searched once, however many ways lead to it.
func (n *Node) addGrace(found *WindowGrace, searched map[*Node]bool) bool {
	if searched[n] {
		return true
	}
	searched[n] = true
	if g := n.Grace; g != nil {
		found.Ms, found.Never = max(found.Ms, g.Ms), found.Never || g.Never
		return true
	}
	if len(n.parents) == 0 {
		return false
	}
	return !slices.ContainsFunc(n.parents, func(p *Node) bool { return !p.addGrace(found, searched) })
}
