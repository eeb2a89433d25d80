package topology_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// bouncer counts each value under its key, and sends a value that begins with a dot round the loop without the dot.
type bouncer struct {
	store   processors.Store[string, int64]
	ctx     processors.ProcessorContext[string, string]
	put     func(key string) error
	commits *int
	failing *error
}

func (b *bouncer) Init(ctx processors.ProcessorContext[string, string]) error {
	b.ctx = ctx
	ctx.BeforeCommit(func() error { *b.commits++; return *b.failing })
	counts, err := processors.KeyValueStore(ctx, b.store)
	b.put = func(key string) error {
		n, _, err := counts.Get(key)
		if err != nil {
			return err
		}
		return counts.Put(key, n+1)
	}
	return err
}

func (b *bouncer) Process(r *processors.Record[string, string]) error {
	if rest, again := strings.CutPrefix(r.Value, "."); again {
		out := processors.WithValue(r, rest)
		if err := b.ctx.ForwardTo("again", &out); err != nil {
			return err
		}
	}
	return b.put(r.Key)
}

func (b *bouncer) Close() error { return nil }

// A processor sends to a topic of its own, which it reads itself; its store is kept in a topic with a name of the user's choice; and it takes part
// in commits.
func TestLoopAndNamedChangelog(t *testing.T) {
	commits, failing := 0, error(nil)
	b := topology.NewBuilder("app")
	store := topology.KeyValueStore("counts", serde.String, serde.Int64, topology.ChangelogTopic("old-table"))
	b.AddSource("in", []string{"in"}, serde.String, serde.String)
	b.AddSource("loop", []string{"round"}, serde.String, serde.String)
	b.AddProcessor("bounce", func() processors.Processor[string, string, string, string] {
		return &bouncer{store: store.Store, commits: &commits, failing: &failing}
	}, []string{"in", "loop"}, topology.Provide(store))
	b.AddSink("again", "round", serde.String, serde.String, []string{"bounce"})
	b.AddRepartitionTopic("round")
	b.CopartitionSources("in", "loop")
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"app-round", "old-table"}, plan.InternalTopics()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"app-round", "in"}}, plan.Internal().CopartitionGroups); diff != "" {
		t.Error(diff)
	}

	d := topologytest.New(t, plan)
	topologytest.Input(d, "in", serde.String, serde.String).Pipe("k", "..x", 1)
	var changes []int64
	for _, m := range topologytest.Output(d, "old-table", serde.String, serde.Int64).Read() {
		changes = append(changes, m.Value)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, changes); diff != "" {
		t.Errorf("the changelog (-want +got):\n%s", diff)
	}
	if commits != 3 {
		t.Errorf("%d commits, want one for each record", commits)
	}
	d.Restart()
	counts, err := topologytest.KeyValue(d, "counts", 0, serde.String, serde.Int64)
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := counts.Get("k"); n != 3 || err != nil {
		t.Errorf("restored %d, %v", n, err)
	}
}

// An error before a commit ends the application: nothing of the commit counts.
func TestBeforeCommitFails(t *testing.T) {
	commits, failing := 0, errors.New("not yet")
	b := topology.NewBuilder("app")
	store := topology.KeyValueStore("counts", serde.String, serde.Int64)
	b.AddSource("in", []string{"in"}, serde.String, serde.String)
	b.AddProcessor("bounce", func() processors.Processor[string, string, string, string] {
		return &bouncer{store: store.Store, commits: &commits, failing: &failing}
	}, []string{"in"}, topology.Provide(store))
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d, err := topologytest.Open(plan)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Pipe(topologytest.Record{Topic: "in", Timestamp: 1, Key: []byte("k"), Value: []byte("v")})
	if !errors.Is(err, failing) {
		t.Errorf("got %v", err)
	}
	if n := len(d.Read("app-counts-changelog")); n != 0 {
		t.Errorf("%d changelog records of a commit that failed", n)
	}
}

func TestProblemsOfNodes(t *testing.T) {
	for want, add := range map[string]func(b *topology.Builder){
		"a topic can't have 0 partitions": func(b *topology.Builder) { b.AddRepartitionTopic("r", topology.Partitions(0)) },
		"not a topic":                     func(b *topology.Builder) { b.AddRepartitionTopic("r r") },
		"option ChangelogTopic":           func(b *topology.Builder) { b.Table("t", serde.String, serde.String, topology.ChangelogTopic("c c")) },
		"is read by source": func(b *topology.Builder) {
			b.Stream("y", serde.String, serde.String).GroupByKey().Count(topology.Store("s"), topology.ChangelogTopic("x"))
		},
		"is written by sink": func(b *topology.Builder) {
			b.Stream("y", serde.String, serde.String).GroupByKey().Count(topology.Store("s"), topology.ChangelogTopic("z")).ToStream().To("z")
		},
		"is the changelog of store a": func(b *topology.Builder) {
			g := b.Stream("y", serde.String, serde.String).GroupByKey()
			g.Count(topology.Store("a"), topology.ChangelogTopic("z"))
			g.Count(topology.Store("b"), topology.ChangelogTopic("z"))
		},
		"but the store has none": func(b *topology.Builder) {
			b.Stream("y", serde.String, serde.String).GroupByKey().Count(topology.Store("s"), topology.ChangelogTopic("z"), topology.NoLogging())
		},
		"no use for the option Change": func(b *topology.Builder) {
			b.GlobalTable("t", serde.String, serde.String, topology.ChangelogTopic("c"))
		},
	} {
		b := topology.NewBuilder("app")
		b.Stream("x", serde.String, serde.String).ForEach(func(string, string) {})
		add(b)
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// A topology with 2 to the power of 60 ways from its source to its end is built and described: nothing walks each of them.
func TestStackedDiamonds(t *testing.T) {
	b := topology.NewBuilder("app", topology.Optimize(topology.AllOptimizations))
	all := func(string, string) bool { return true }
	value := func(_, v string) string { return v }
	s := b.Stream("in", serde.String, serde.String)
	for range 60 {
		s = s.Filter(all).Merge(s.Filter(all))
	}
	s.SelectKey(value).GroupByKey().Count(topology.Store("counts"))
	b.Stream("other", serde.String, serde.String).SelectKey(value).GroupByKey().Count(topology.Store("others"))
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(plan.Describe(), "Processor: KSTREAM-MERGE-"); n != 60 {
		t.Errorf("%d merges are described", n)
	}
}
