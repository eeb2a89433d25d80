package plan

// javaTree is a sorted set as java.util.TreeSet keeps it: a red-black tree.
//
// Kafka Streams lists the neighbours of a node in the order of such a set, but by sizes that still grow while the set is filled. What
// comes out depends on the shape of the tree, so the shape is followed here.
type javaTree struct {
	root    *javaNode
	compare func(x, y *Node) int
}

type javaNode struct {
	node                *Node
	left, right, parent *javaNode
	red                 bool
}

// add puts n into the set, unless a node that compares as equal is met on the way down.
func (t *javaTree) add(n *Node) {
	at, parent := &t.root, (*javaNode)(nil)
	for *at != nil {
		parent = *at
		switch c := t.compare(n, parent.node); {
		case c < 0:
			at = &parent.left
		case c > 0:
			at = &parent.right
		default:
			return
		}
	}
	*at = &javaNode{node: n, parent: parent, red: true}
	t.balance(*at)
}

// balance restores the rules of a red-black tree after x was added: no red node has a red parent.
func (t *javaTree) balance(x *javaNode) {
	for x != t.root && x.parent.red {
		parent, grand := x.parent, x.parent.parent
		onLeft := parent == grand.left
		uncle := grand.right
		if !onLeft {
			uncle = grand.left
		}
		if uncle != nil && uncle.red {
			parent.red, uncle.red, grand.red = false, false, true
			x = grand
			continue
		}
		if inner := (x == parent.right) == onLeft; inner {
			x = parent
			t.rotate(x, onLeft)
		}
		x.parent.red, grand.red = false, true
		t.rotate(grand, !onLeft)
	}
	t.root.red = false
}

// rotate lifts the child on the right (left is true) or on the left of x into its place.
func (t *javaTree) rotate(x *javaNode, left bool) {
	var up *javaNode
	if left {
		up = x.right
		x.right = up.left
		if up.left != nil {
			up.left.parent = x
		}
		up.left = x
	} else {
		up = x.left
		x.left = up.right
		if up.right != nil {
			up.right.parent = x
		}
		up.right = x
	}
	up.parent = x.parent
	switch {
	case x.parent == nil:
		t.root = up
	case x.parent.left == x:
		x.parent.left = up
	default:
		x.parent.right = up
	}
	x.parent = up
}

// list returns the nodes from left to right.
func (t *javaTree) list() []*Node {
	var out []*Node
	var walk func(*javaNode)
	walk = func(n *javaNode) {
		if n != nil {
			walk(n.left)
			out = append(out, n.node)
			walk(n.right)
		}
	}
	walk(t.root)
	return out
}
