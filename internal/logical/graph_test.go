package logical

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
)

// stub stands for every supplier.
type stub struct{}

func (stub) New(processors.Runtime, []processors.Child) (processors.Instance, error) {
	return processors.Instance{}, errors.New("not made in this test")
}

func (stub) NewSource(processors.Runtime, []processors.Child) (processors.Source, error) {
	return nil, errors.New("not made in this test")
}

// dropping is the filter of a repartition that drops null keys.
type dropping struct{ stub }

// ends is a sink of a repartition that carries coordinates, or none.
type ends struct {
	stub
	coordinates bool
}

func typed() RepartitionTyped {
	return RepartitionTyped{
		Filter: func(drop bool) processors.Supplier {
			if drop {
				return dropping{}
			}
			return stub{}
		},
		Ends: func(_ string, coordinates bool) (processors.Supplier, processors.SourceSupplier, error) {
			return ends{coordinates: coordinates}, stub{}, nil
		},
		Complete: true,
		FullName: func(topic string) string { return "app-" + topic },
	}
}

func source(g *Graph, topics ...string) *Node {
	return g.Add(NewNode(g.NewName("KSTREAM-SOURCE-"), &Source{Topics: topics, Supplier: stub{}}))
}

func process(g *Graph, prefix string, parents ...*Node) *Node {
	return g.Add(NewNode(g.NewName(prefix), &Processor{Supplier: stub{}}), parents...)
}

// rekey changes keys.
func rekey(g *Graph, parent *Node) *Node {
	n := NewNode(g.NewName("KSTREAM-MAP-"), &Processor{Supplier: stub{}})
	n.KeyChanging = true
	return g.Add(n, parent)
}

func write(t *testing.T, g *Graph, o Options) *plan.Plan {
	t.Helper()
	b := plan.NewBuilder()
	g.Write(b, o)
	p, err := b.Build("app")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantError(t *testing.T, g *Graph, o Options, part string) {
	t.Helper()
	b := plan.NewBuilder()
	g.Write(b, o)
	if _, err := b.Build("app"); err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("Build: %v, want an error with %q", err, part)
	}
}

func names(nodes []*plan.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

func TestNamesTakeNumbersEvenIfGiven(t *testing.T) {
	g := NewGraph()
	got := []string{
		g.NewName("A-"), g.NameOr("mine", "B-"), g.NameOr("", "C-"), g.SuffixOr("mine", "-x", "D-"), g.SuffixOr("", "-x", "E-"),
		g.NewStoreName("F-"),
	}
	want := []string{"A-0000000000", "mine", "C-0000000002", "mine-x", "E-0000000004", "F-STATE-STORE-0000000005"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStreamsOfOneTopicShareASource(t *testing.T) {
	g := NewGraph()
	a, b := source(g, "t"), source(g, "t")
	process(g, "B-", b)
	process(g, "A-", a)
	p := write(t, g, Options{})
	if diff := cmp.Diff([]string{"B-0000000002", "A-0000000003"}, names(p.Nodes["KSTREAM-SOURCE-0000000000"].Children)); diff != "" {
		t.Error(diff)
	}
	if p.Nodes["KSTREAM-SOURCE-0000000001"] != nil {
		t.Error("the second source is still there")
	}
}

func TestStreamsOfOneTopicMustAgree(t *testing.T) {
	g := NewGraph()
	source(g, "a", "b")
	source(g, "b")
	wantError(t, g, Options{}, "topic b is read by source KSTREAM-SOURCE-0000000000 already, together with other topics")

	g = NewGraph()
	source(g, "t").op.(*Source).Reset = plan.ResetEarliest
	source(g, "t")
	wantError(t, g, Options{}, "another offset reset policy")

	g = NewGraph()
	source(g, "t").op.(*Source).Key = reflect.TypeFor[string]()
	source(g, "t").op.(*Source).Key = reflect.TypeFor[int64]()
	wantError(t, g, Options{}, "as string and")
}

func TestRepartitionsBelowOneChangeOfKeysShareATopic(t *testing.T) {
	build := func(o Options, values bool) *plan.Plan {
		g := NewGraph()
		mapped := rekey(g, source(g, "t"))
		above := mapped
		if values {
			n := NewNode(g.NewName("VALUES-"), &Processor{Supplier: stub{}})
			n.ValueChanging = true
			above = g.Add(n, mapped)
		}
		for range 2 {
			r := g.Add(g.NewRepartition(g.NewStoreName("KSTREAM-AGGREGATE-"), false, typed()), above)
			process(g, "KSTREAM-AGGREGATE-", r)
		}
		return write(t, g, o)
	}
	if n := len(build(Options{}, false).InternalTopics); n != 2 {
		t.Errorf("%d topics without the optimization, want 2", n)
	}
	p := build(Options{MergeRepartitions: true}, false)
	if p.InternalTopics["app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition"] == nil || len(p.InternalTopics) != 1 {
		t.Errorf("topics with the optimization: %v", p.InternalTopics)
	}
	shared := p.Nodes["KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition-source"]
	if shared == nil || len(shared.Children) != 2 {
		t.Errorf("the shared source is %+v", shared)
	}
	if n := len(build(Options{MergeRepartitions: true}, true).InternalTopics); n != 2 {
		t.Errorf("%d topics below a change of values, want 2: what goes through them differs", n)
	}
}

func TestMergedStreamsShareATopicBelowTheMerge(t *testing.T) {
	g := NewGraph()
	merge := NewNode(g.NewName("KSTREAM-MERGE-"), &Processor{Supplier: stub{}})
	merge.Merge = true
	g.Add(merge, rekey(g, source(g, "a")), rekey(g, source(g, "b")))
	for range 2 {
		process(g, "AGG-", g.Add(g.NewRepartition(g.NewStoreName("KSTREAM-AGGREGATE-"), false, typed()), merge))
	}
	p := write(t, g, Options{MergeRepartitions: true})
	if len(p.InternalTopics) != 1 {
		t.Errorf("topics: %v", p.InternalTopics)
	}
	if n := len(p.Nodes[merge.Name].Parents); n != 2 {
		t.Errorf("the merge has %d parents, want 2", n)
	}
}

func TestNullKeysPassOnlyToJoinsThatTakeThem(t *testing.T) {
	for _, relaxed := range []bool{false, true} {
		g := NewGraph()
		r := g.Add(g.NewRepartition("mine", true, typed()), rekey(g, source(g, "t")))
		join := NewNode(g.NewName("JOIN-"), &Processor{Supplier: stub{}})
		join.NullKeyRelaxed = relaxed
		g.Add(join, process(g, "P-", r))
		_, drops := write(t, g, Options{}).Nodes["mine-repartition-filter"].Supplier.(dropping)
		if drops == relaxed {
			t.Errorf("below a join that takes null keys: %v, null keys are dropped: %v", relaxed, drops)
		}
	}
}

func TestRepartitionsAboveLakesCarryCoordinates(t *testing.T) {
	g := NewGraph()
	mapped := rekey(g, source(g, "t"))
	toLake := g.Add(g.NewRepartition("to-lake", true, typed()), mapped)
	g.Add(NewNode("rows", &Lake{Sink: plan.LakeSink{Name: "rows", Direct: stub{}, Staged: func(string) (processors.Supplier, processors.SourceSupplier, processors.Supplier, error) {
		return stub{}, stub{}, stub{}, nil
	}}}), process(g, "P-", toLake))
	g.Add(g.NewRepartition("elsewhere", true, typed()), mapped)
	b := plan.NewBuilder()
	g.Write(b, Options{})
	for name, want := range map[string]bool{"to-lake": true, "elsewhere": false} {
		if r := g.find(name + "-repartition-source").op.(*Repartition); r.toLake != want {
			t.Errorf("repartition %s carries coordinates: %v", name, r.toLake)
		}
	}
}

// find looks a node up from the root.
func (g *Graph) find(name string) *Node {
	for n := range g.above(func(*Node) bool { return false }) {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func TestProcessorsLearnWhichTablesAreVersioned(t *testing.T) {
	g := NewGraph()
	var told []string
	table := func(v Versioning) *Node {
		n := NewNode(g.NewName("TABLE-"), &Processor{Supplier: stub{}})
		n.Versioned = v
		return g.Add(n, source(g, n.Name))
	}
	versioned, plain := table(Versioned), table(Unversioned)
	filtered := process(g, "FILTER-", versioned) // no store of its own: as its parent
	join := NewNode(g.NewName("JOIN-"), &Processor{Supplier: stub{}})
	join.UseVersioned = func(parent string) { told = append(told, parent) }
	g.Add(join, filtered, plain)
	suppress := NewNode(g.NewName("SUPPRESS-"), &Processor{Supplier: stub{}})
	suppress.Suppress = true
	g.Add(suppress, filtered)
	wantError(t, g, Options{}, "SUPPRESS-0000000006: a versioned table can't be suppressed")
	if diff := cmp.Diff([]string{filtered.Name}, told); diff != "" {
		t.Error(diff)
	}
}

func TestFindGrace(t *testing.T) {
	g := NewGraph()
	windowed := func(ms int64, never bool) *Node {
		n := NewNode(g.NewName("AGG-"), &Processor{Supplier: stub{}})
		n.Grace = &WindowGrace{Ms: ms, Never: never}
		return g.Add(n, source(g, n.Name))
	}
	a, b, plain := windowed(5, false), windowed(9, true), process(g, "P-", source(g, "t"))
	both := process(g, "MERGE-", a, b)
	if got, ok := both.FindGrace(); !ok || got != (WindowGrace{Ms: 9, Never: true}) {
		t.Errorf("below both: %v, %v", got, ok)
	}
	if _, ok := process(g, "MERGE-", a, plain).FindGrace(); ok {
		t.Error("a branch without windows has a grace")
	}
}

func TestSelfJoinKeepsOneStore(t *testing.T) {
	build := func(o Options) *plan.Plan {
		g := NewGraph()
		in := source(g, "t")
		for _, name := range []string{"this-w", "other-w"} {
			g.Add(NewNode(name, &Windowed{Part{Name: name, Supplier: stub{}}}), in)
		}
		g.Add(NewNode("merge", &StreamJoin{
			ThisWindow: "this-w", OtherWindow: "other-w",
			This: Part{Name: "this", Supplier: stub{}}, Other: Part{Name: "other", Supplier: stub{}},
			Merge: Part{Name: "merge", Supplier: stub{}}, Self: Part{Name: "merge", Supplier: stub{}},
		}), in, in)
		return write(t, g, o)
	}
	if n := len(build(Options{}).Nodes); n != 6 {
		t.Errorf("%d nodes without the optimization, want 6", n)
	}
	p := build(Options{SelfJoins: true})
	if diff := cmp.Diff([]string{"this-w"}, names(p.Nodes["merge"].Parents)); diff != "" || len(p.Nodes) != 3 {
		t.Errorf("with the optimization there are %d nodes; the join's parents: %s", len(p.Nodes), diff)
	}
}

func TestStrictNamesRefuseGeneratedOnes(t *testing.T) {
	g := NewGraph()
	source(g, "t")
	g.AddImplicit(Implicit{Store: "S-1", Changelog: "S-1-changelog"})
	g.AddImplicit(Implicit{Repartition: "R-2-repartition"})
	g.AddImplicit(Implicit{Lake: "LAKE-SINK-0000000003"})
	wantError(t, g, Options{StrictNames: true},
		"stores S-1; changelog topics S-1-changelog; repartition topics R-2-repartition; lake sinks LAKE-SINK-0000000003")
}

func TestUnknownSerdeOfARepartition(t *testing.T) {
	g := NewGraph()
	broken := typed()
	broken.Ends = func(string, bool) (processors.Supplier, processors.SourceSupplier, error) {
		return nil, nil, errors.New("it is unknown how the value becomes bytes")
	}
	process(g, "AGG-", g.Add(g.NewRepartition("mine", true, broken), rekey(g, source(g, "t"))))
	wantError(t, g, Options{}, "repartition topic mine-repartition: it is unknown how the value becomes bytes")
}

// diamonds stacks sixty of them on n: there are 2 to the power of 60 ways up from the last.
func diamonds(g *Graph, n *Node) *Node {
	for range 60 {
		n = process(g, "KSTREAM-MERGE-", process(g, "KSTREAM-FILTER-", n), process(g, "KSTREAM-FILTER-", n))
	}
	return n
}

// A search upward looks at each node, not at each way to it.
func TestUpLooksAtEachNodeOnce(t *testing.T) {
	g := NewGraph()
	n := diamonds(g, source(g, "in"))
	looks := 0
	if found := n.up(func(*Node) bool { looks++; return false }); found != nil || looks > 1_000 {
		t.Errorf("found %v after %d looks", found, looks)
	}
}

func TestVersionsAndGraceAreFoundThroughDiamonds(t *testing.T) {
	g := NewGraph()
	above := source(g, "in")
	above.Versioned, above.Grace = Versioned, &WindowGrace{Ms: 3}
	n := diamonds(g, above)
	if grace, ok := n.FindGrace(); !n.versioned() || !ok || grace.Ms != 3 {
		t.Errorf("versioned: %v; grace: %v, %v", n.versioned(), grace, ok)
	}
	plain := process(g, "MERGE-", n, source(g, "other"))
	if _, ok := plain.FindGrace(); plain.versioned() || ok {
		t.Errorf("with a branch without: versioned: %v, grace: %v", plain.versioned(), ok)
	}
}
