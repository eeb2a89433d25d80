package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

func TestBuildTellsEverythingAtOnce(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("in", "orders"))
	b.AddSource(source("in", "other"))
	b.AddSource(source("again", "orders"))
	b.AddProcessor("p", stub{}, "nobody")
	b.AddProcessor("below-p", stub{}, "p") // silent: its parent was left out
	b.AddProcessor("self", stub{}, "self")
	b.AddProcessor("alone", stub{})
	b.AddProcessor("nil", nil, "in")
	b.AddSink("out", "results", stub{}, "in")
	b.AddProcessor("after", stub{}, "out")
	b.AddSink("bad topic", "x", stub{}, "in")
	b.AddSink("out2", "a b", stub{}, "in")
	ps := problems(t, b)
	if len(ps) != 9 {
		t.Errorf("%d problems, want 9: %v", len(ps), ps)
	}
	wantProblem(t, ps, 0, TopologyProblem, "in", "used by another node already")
	wantProblem(t, ps, 1, TopologyProblem, "again", "topic orders is read by source in already")
	wantProblem(t, ps, 2, TopologyProblem, "p", "the parent nobody is unknown")
	wantProblem(t, ps, 3, TopologyProblem, "self", "its own parent")
	wantProblem(t, ps, 4, TopologyProblem, "alone", "no parents")
	wantProblem(t, ps, 5, InvalidArgument, "nil", "no supplier")
	wantProblem(t, ps, 6, TopologyProblem, "after", "the parent out is a sink")
	wantProblem(t, ps, 7, TopologyProblem, "", `"bad topic" has a character`)
	wantProblem(t, ps, 8, InvalidArgument, "out2", `"a b" has a character`)
}

func TestBuildErrorText(t *testing.T) {
	cause := errors.New("field x has no type")
	one := &BuildError{ApplicationID: "app", Problems: []Problem{{Node: "n", Message: "it is wrong", Err: cause}}}
	if got, want := one.Error(), "topology app: n: it is wrong: field x has no type"; got != want {
		t.Errorf("one problem: %q, want %q", got, want)
	}
	if !errors.Is(one, cause) {
		t.Error("the cause is not found through the BuildError")
	}
	two := &BuildError{ApplicationID: "app", Problems: []Problem{{Message: "a"}, {Node: "n", Err: cause}}}
	if got, want := two.Error(), "topology app has 2 problems:\n  - a\n  - n: field x has no type"; got != want {
		t.Errorf("two problems: %q, want %q", got, want)
	}
}

func TestPatternsClaimTheirTopics(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("exact", "orders"))
	b.AddSource(Source{Name: "late", Pattern: "ord.*", Supplier: stub{}})
	b.AddSource(Source{Name: "whole", Pattern: "rder", Supplier: stub{}}) // no part of a name
	b.AddSource(Source{Name: "broken", Pattern: "(", Supplier: stub{}})
	b.AddSource(source("caught", "rder"))
	ps := problems(t, b)
	if len(ps) != 3 {
		t.Fatalf("%d problems, want 3: %v", len(ps), ps)
	}
	wantProblem(t, ps, 0, TopologyProblem, "late", "matches topic orders")
	wantProblem(t, ps, 1, InvalidArgument, "broken", "no regular expression")
	wantProblem(t, ps, 2, TopologyProblem, "caught", "matches the pattern rder of source whole")
}

func TestStoresJoinSubtopologies(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("a", "ta"))
	b.AddSource(source("b", "tb"))
	b.AddSource(source("c", "tc"))
	b.AddProcessor("pa", stub{}, "a")
	b.AddProcessor("pb", stub{}, "b")
	b.AddProcessor("pc", stub{}, "c")
	b.AddStore(kv("shared"), "pa")
	b.Connect("pc", "shared")
	b.AddStore(kv("unused"))
	p := mustBuild(t, b)
	if len(p.Subtopologies) != 2 {
		t.Fatalf("%d sub-topologies, want 2", len(p.Subtopologies))
	}
	first := p.Subtopologies[0]
	if diff := cmp.Diff([]string{"ta", "tc"}, first.SourceTopics); diff != "" {
		t.Errorf("source topics of the first: %s", diff)
	}
	if diff := cmp.Diff([]string{"shared"}, first.Stores); diff != "" {
		t.Errorf("stores of the first: %s", diff)
	}
	if got := p.Nodes["pb"].Subtopology; got != 1 {
		t.Errorf("pb is in sub-topology %d, want 1", got)
	}
	s := p.Stores["shared"]
	if s.Changelog != "app-shared-changelog" || p.InternalTopics[s.Changelog].Store != "shared" {
		t.Errorf("the store's changelog is %q", s.Changelog)
	}
	if p.Stores["unused"] != nil {
		t.Error("a store that no processor uses is in the plan")
	}
}

func TestStoreProblems(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("in", "t"))
	b.AddProcessor("p", stub{}, "in")
	spec := kv("s")
	b.AddStore(spec, "p")
	b.AddStore(spec, "p") // the same store again
	b.AddStore(kv("s"))   // another one of the same name
	b.Connect("p", "none")
	b.Connect("in", "s")
	b.Connect("nobody", "s")
	b.AddStore(&state.Spec{Name: "odd", Kind: state.Session, RetainDuplicates: true})
	b.AddGlobalStore(GlobalStore{Spec: kv("g"), Topic: "gt", Source: "gs", Processor: "gp", Read: stub{}, Update: stub{}})
	b.Connect("p", "g")
	ps := problems(t, b)
	if len(ps) != 6 {
		t.Fatalf("%d problems, want 6: %v", len(ps), ps)
	}
	wantProblem(t, ps, 0, TopologyProblem, "store s", "another store has this name")
	wantProblem(t, ps, 1, TopologyProblem, "p", "the store none is unknown")
	wantProblem(t, ps, 2, TopologyProblem, "in", "only processors have stores")
	wantProblem(t, ps, 3, TopologyProblem, "store s", "the processor nobody is unknown")
	wantProblem(t, ps, 4, InvalidArgument, "", "only window stores can retain duplicates")
	wantProblem(t, ps, 5, TopologyProblem, "p", "the store g is global")
}

func TestChildrenAreCalledInTheOrderOfTheirDeclaration(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("in", "t"))
	for _, name := range []string{"z", "a", "m"} {
		b.AddProcessor(name, stub{}, "in")
	}
	var names []string
	for _, c := range mustBuild(t, b).Nodes["in"].Children {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"z", "a", "m"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestSourceTopicAsChangelog(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("in", "customers"))
	b.AddProcessor("table", stub{}, "in")
	b.AddStore(kv("s"), "table")
	b.UseAsChangelog("s", "customers")
	p := mustBuild(t, b)
	s := p.Stores["s"]
	if s.Changelog != "customers" || !s.SourceAsChangelog || s.Spec.SourceTopic != "customers" || s.Spec.Logged {
		t.Errorf("the store is %+v", s)
	}
	if len(p.InternalTopics) != 0 {
		t.Errorf("internal topics: %v", p.InternalTopics)
	}
}

func TestLakeSinkStandsDirectlyOnlyInAGroupOfItsOwn(t *testing.T) {
	pure := func(b *Builder) {
		b.AddSource(source("in", "t"))
		b.AddProcessor("map", stub{}, "in")
		b.AddLake(lakeSink("rows"), "map")
		b.AddLake(lakeSink("raw"), "in")
	}
	tests := map[string]struct {
		more   func(*Builder)
		direct bool
	}{
		"only lake sinks": {func(*Builder) {}, true},
		"state":           {func(b *Builder) { b.AddStore(kv("s"), "map") }, false},
		"another sink":    {func(b *Builder) { b.AddSink("out", "x", stub{}, "in") }, false},
		"another end":     {func(b *Builder) { b.AddProcessor("end", stub{}, "map") }, false},
		"state elsewhere": {func(b *Builder) {
			b.AddSource(source("other", "o"))
			b.AddProcessor("agg", stub{}, "other")
			b.AddStore(kv("s"), "agg")
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder()
			pure(b)
			test.more(b)
			p := mustBuild(t, b)
			rows := p.Nodes["rows"]
			if direct := rows.Parents[0].Name == "map"; direct != test.direct {
				t.Errorf("the lake sink's parent is %s", rows.Parents[0].Name)
			}
			for _, sub := range p.Subtopologies {
				if sub.ID == rows.Subtopology && !sub.Lake {
					t.Error("the lake sink's sub-topology is not marked")
				}
			}
			topic := p.InternalTopics["app-rows-lake"]
			if (topic == nil) != test.direct {
				t.Errorf("internal topics: %v", p.InternalTopics)
			}
			if !test.direct {
				if got := p.Nodes["rows-lake-sink"].Topic; got != topic.Name || topic.Kind != LakeTopic {
					t.Errorf("the rows are written to %q, the topic is %+v", got, topic)
				}
				if got := p.Nodes["map"].Subtopology; got == rows.Subtopology || got != 0 {
					t.Errorf("map is in sub-topology %d, rows in %d", got, rows.Subtopology)
				}
			}
		})
	}
}

func TestLakeSinkThatCannotBeStaged(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("in", "t"))
	b.AddSink("out", "x", stub{}, "in")
	lake := lakeSink("rows")
	lake.Staged = func(string) (processors.Supplier, processors.SourceSupplier, processors.Supplier, error) {
		return nil, nil, nil, errors.New("no serde")
	}
	b.AddLake(lake, "in")
	wantProblem(t, problems(t, b), 0, InvalidArgument, "rows", "no serde")
}

func TestGlobalsTakeNumbers(t *testing.T) {
	b := NewBuilder()
	b.AddGlobalStore(GlobalStore{Spec: kv("g"), Topic: "gt", Source: "gs", Processor: "gp", Read: stub{}, Update: stub{}})
	b.AddSource(source("in", "t"))
	p := mustBuild(t, b)
	if len(p.Globals) != 1 || p.Globals[0].ID != 0 || len(p.Subtopologies) != 1 || p.Subtopologies[0].ID != 1 {
		t.Errorf("globals %v, sub-topologies %v", p.Globals, p.Subtopologies)
	}
	if s := p.Stores["g"]; !s.Global || s.Changelog != "gt" || !s.SourceAsChangelog {
		t.Errorf("the global store is %+v", s)
	}
}

func TestHashFollowsWhatInstancesMustAgreeOn(t *testing.T) {
	build := func(topic string, partitions int32) string {
		b := NewBuilder()
		b.AddSource(source("in", topic))
		b.AddInternalTopic("r-repartition", RepartitionTopic, partitions)
		b.AddSink("out", "r-repartition", stub{}, "in")
		b.AddSource(source("back", "r-repartition"))
		return mustBuild(t, b).Hash
	}
	base := build("t", 0)
	if again := build("t", 0); again != base {
		t.Errorf("the same topology hashes to %s and %s", base, again)
	}
	if build("u", 0) == base || build("t", 3) == base {
		t.Error("another topic or number of partitions has the same hash")
	}
	withStore := func(spec state.Spec) string {
		b := NewBuilder()
		b.AddSource(source("in", "t"))
		b.AddProcessor("p", stub{}, "in")
		b.AddStore(&spec, "p")
		return mustBuild(t, b).Hash
	}
	spec := state.Spec{Name: "s", Kind: state.KeyValue}
	same, other := spec, spec
	same.WrittenOnce, other.Kind = true, state.TimestampedKeyValue
	if withStore(same) != withStore(spec) {
		t.Error("what is only about memory changes the hash: an instance would not work together with one of an earlier version")
	}
	if withStore(other) == withStore(spec) {
		t.Error("another kind of store has the same hash")
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "KSTREAM-MAP-0000000001", "x.y_z-1", strings.Repeat("n", 249)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a b", "ü", "a/b", strings.Repeat("n", 250)} {
		if CheckName(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
