package plan

// placeLakes decides for every lake sink whether its rows may carry the source's own offsets.
//
// They may where the whole sub-topology keeps no state and has no other end than lake sinks: its progress is then that of its
// tables, and replaying it has no effect that the tables don't recognize. Everywhere else the lake sink becomes a sink to an
// internal topic, which is written in the transaction, and a sub-topology of its own reads that topic into the table.
func (b *Builder) placeLakes(applicationID string) {
	b.checkPlaces()
	direct := b.lakeOnlyGroups()
	placed := make([]*draft, 0, len(b.nodes))
	for _, d := range b.nodes {
		if d.lake == nil || direct[b.groups.root(d.group)] {
			placed = append(placed, d)
			continue
		}
		b.At(d.position, func() { placed = append(placed, b.stageLake(applicationID, d)...) })
	}
	b.nodes = placed
}

// checkPlaces finds tables that two sinks of the topology would write, each with columns and upkeep of its own.
func (b *Builder) checkPlaces() {
	sinks := make(map[string]string)
	for _, d := range b.nodes {
		if d.lake == nil || d.lake.Sink == nil {
			continue
		}
		place := d.lake.Sink.String()
		if other, taken := sinks[place]; taken {
			b.At(d.position, func() {
				b.Problem(InvalidArgument, d.Name, "the table %s is the one of sink %s already: merge the streams, or give each a table of its own", place, other)
			})
		}
		sinks[place] = d.Name
	}
}

// lakeOnlyGroups tells of each group that has lake sinks, by root, whether these may stand directly in it.
func (b *Builder) lakeOnlyGroups() map[string]bool {
	only := make(map[string]bool)
	parents := make(map[string]bool)
	for _, d := range b.nodes {
		only[b.groups.root(d.group)] = true
		for _, p := range d.parents {
			parents[p] = true
		}
	}
	for _, d := range b.nodes {
		if end := !parents[d.Name]; len(d.Stores) > 0 || end && d.lake == nil {
			only[b.groups.root(d.group)] = false
		}
	}
	return only
}

// stageLake replaces a lake node by a sink to an internal topic, a source of that topic, and the lake node below it.
func (b *Builder) stageLake(applicationID string, d *draft) []*draft {
	raw := d.Name + "-lake"
	names := []string{raw + "-sink", raw + "-source"}
	for _, name := range names {
		if b.byName[name] != nil || b.broken[name] {
			b.Problem(TopologyProblem, name, "the name is needed for the internal topic of lake sink %s: rename the node", d.Name)
			return nil
		}
	}
	b.AddInternalTopic(raw, LakeTopic, 0)
	write, read, lake, err := d.lake.Staged(b.full(applicationID, raw))
	if err != nil {
		b.AddProblems(Problem{Kind: InvalidArgument, Node: d.Name, Err: err, Missing: MissingIn(err),
			Message: "the lake sink needs an internal topic, since its sub-topology keeps state or has other outputs"})
		return nil
	}
	writer := &draft{
		Node: Node{Name: names[0], Kind: SinkNode, Supplier: write}, topic: raw, parents: d.parents,
		group: d.group, // the lake node's place in its old group
	}
	reader := &draft{
		Node: Node{Name: names[1], Kind: SourceNode, Source: read, Reset: ResetEarliest}, topics: []string{raw},
		group: names[1],
	}
	table := &draft{
		Node: Node{Name: d.Name, Kind: LakeNode, Supplier: lake, Lake: d.Node.Lake}, parents: names[1:],
		group: names[1],
	}
	b.groups.add(names[1])
	for _, n := range []*draft{writer, reader, table} {
		b.byName[n.Name] = n
	}
	return []*draft{writer, reader, table}
}
