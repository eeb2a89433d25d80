package plan

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestJavaTreeIsARedBlackTree checks the shape after each add, and that the list is sorted.
func TestJavaTreeIsARedBlackTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`[a-h]{1,2}`), 0, 60).Draw(t, "names")
		tree := &javaTree{compare: func(x, y *Node) int { return strings.Compare(x.Name, y.Name) }}
		for _, name := range names {
			tree.add(&Node{Name: name})
			if tree.root.red {
				t.Fatal("the root is red")
			}
			checkBlackHeight(t, tree.root)
		}
		var got []string
		for _, n := range tree.list() {
			got = append(got, n.Name)
		}
		slices.Sort(names)
		if want := slices.Compact(names); !slices.Equal(got, want) {
			t.Fatalf("the list is %v, want %v", got, want)
		}
	})
}

// checkBlackHeight returns how many black nodes are on each way down.
func checkBlackHeight(t *rapid.T, n *javaNode) int {
	if n == nil {
		return 1
	}
	for _, child := range []*javaNode{n.left, n.right} {
		if child != nil && (child.parent != n || child.red && n.red) {
			t.Fatalf("%s below %s: another parent, or both red", child.node.Name, n.node.Name)
		}
	}
	left, right := checkBlackHeight(t, n.left), checkBlackHeight(t, n.right)
	if left != right {
		t.Fatalf("below %s there are %d black nodes on the left and %d on the right", n.node.Name, left, right)
	}
	if n.red {
		return left
	}
	return left + 1
}
