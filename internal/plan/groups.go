package plan

// groups is a union-find over the names of nodes. The zero value is ready.
type groups struct {
	parent map[string]string
}

// add makes a group of its own of name.
func (g *groups) add(name string) {
	if g.parent == nil {
		g.parent = make(map[string]string)
	}
	g.parent[name] = name
}

// root returns the member that stands for name's group.
func (g *groups) root(name string) string {
	for g.parent[name] != name {
		up := g.parent[name]
		g.parent[name] = g.parent[up] // halve the path on the way
		name = up
	}
	return name
}

// unite joins the groups of a and b.
func (g *groups) unite(a, b string) { g.parent[g.root(a)] = g.root(b) }
