package engine

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// grouped groups the records of the application's input by their keys.
func grouped(name string) (*topology.Builder, *topology.GroupedStream[string, string]) {
	b := topology.NewBuilder(name)
	return b, b.Stream(name+"-in", serde.String, serde.String).GroupByKey()
}

func counted(name string, opts ...topology.Option) *topology.Plan {
	b, g := grouped(name)
	g.Count(opts...)
	return build(b)
}

// runOnce has an instance read what there is, and returns what it logs.
func (a *app) runOnce(p *topology.Plan, dir string) *logLines {
	a.t.Helper()
	lines := &logLines{}
	i := a.start(p, dir, Logger(slog.New(slog.NewTextHandler(lines, nil))))
	i.await(a.t, "all is read", func(s Stats) bool { return s.State == Running && s.Lag == 0 })
	i.stop(a.t)
	return lines
}

func contains(t *testing.T, what, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s: lacks %q", what, text, want)
		}
	}
}

// A store that is declared as another kind is told apart by the plan that the state directory was last used with, by the state in it, by its
// changelog's settings, or by the records in there; whatever there is. No advice is to alter what must stay as it is.
func TestChangedKindOfStore(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "chgkind")
	a.create("in", 1)
	a.produce("in", 1, "a", "b")
	a.runOnce(counted(a.name, topology.Store("c")), "i1")
	windowed := func() *topology.Plan {
		b, g := grouped(a.name)
		g.Windowed(topology.Tumbling(time.Minute)).Count(topology.Store("c"))
		return build(b)
	}

	var changed *ChangedStoreError
	want := []string{`store "c"`, "timestampedKeyValue", "timestampedWindow", "topology.Store", "reset", changingPage}
	err := a.start(windowed(), "i1").failure(t)
	if !errors.As(err, &changed) || changed.Was != state.TimestampedKeyValue || changed.Is != state.TimestampedWindow {
		t.Fatalf("with the last plan: got %v", err)
	}
	contains(t, "with the last plan", err.Error(), want...)

	err = a.start(windowed(), "fresh").failure(t)
	if !errors.As(err, new(*topics.InternalError)) {
		t.Fatalf("by the changelog's settings: got %v", err)
	}
	contains(t, "by the changelog's settings", err.Error(), `store "c"`, "leave the topic as it is", "topology.Store", "reset", changingPage)

	set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: kadm.StringPtr("compact,delete")}}
	if _, err := kadm.NewClient(a.c.Client(t)).AlterTopicConfigs(t.Context(), set, a.topic("c-changelog")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(a.dir, "i1", a.name, lastPlanFile)); err != nil { // as an earlier version leaves it
		t.Fatal(err)
	}
	changed = nil
	err = a.start(windowed(), "i1").failure(t)
	if !errors.As(err, &changed) {
		t.Fatalf("by the state: got %v", err)
	}
	contains(t, "by the state", err.Error(), want...)
	if aside, _ := filepath.Glob(filepath.Join(a.dir, "i1", a.name, "*.damaged-*")); len(aside) > 0 {
		t.Errorf("state was set aside that could still be used: %v", aside)
	}

	err = a.start(windowed(), "fresh").failure(t)
	if err == nil {
		t.Fatal("a changelog of another kind was restored")
	}
	contains(t, "by the records", err.Error(), a.topic("c-changelog"), `store "c"`, "topology.Store", "reset", changingPage)

	a.runOnce(counted(a.name, topology.Store("d")), "i1") // as advised
}

// A change that can't be refused, since nobody knows whether the bytes are the same, is said at the next start.
func TestChangesSinceTheLastStartAreSaid(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "chgserde")
	a.create("in", 1)
	a.produce("in", 1, "a", "b")
	a.runOnce(counted(a.name, topology.Store("c")), "i1")
	if line := a.runOnce(counted(a.name, topology.Store("c")), "i1").first("topology has changed"); line != "" {
		t.Errorf("nothing has changed: %s", line)
	}
	b, g := grouped(a.name)
	g.Aggregate(func() string { return "" }, func(_, v, sum string) string { return sum + v }, topology.Store("c"))
	line := a.runOnce(build(b), "i1").first("topology has changed")
	contains(t, "another value serde", line, "level=WARN", "store=c", "value serde", "give the store a new name", changingPage)
}

// Where generated names have shifted, an instance says which changelogs are left behind, also on a machine that knows nothing of before.
func TestUnusedChangelogsAreNamed(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "chgname")
	a.create("in", 1)
	a.produce("in", 1, "a", "b")
	lines := &logLines{}
	i := a.start(counted(a.name), "i1", Logger(slog.New(slog.NewTextHandler(lines, nil))))
	i.await(t, "all is read", func(s Stats) bool { return s.State == Running && s.Lag == 0 })
	i.warnUnused(t.Context()) // the instance itself may still be looking
	i.stop(t)
	if line := lines.first("belong to no store"); line != "" {
		t.Errorf("nothing has shifted: %s", line)
	}
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.String).Filter(func(_, _ string) bool { return true }).GroupByKey().Count()
	shifted := build(b)
	const old = "KSTREAM-AGGREGATE-STATE-STORE-0000000001"
	for _, dir := range []string{"i1", "fresh"} {
		lines := &logLines{}
		i := a.start(shifted, dir, Logger(slog.New(slog.NewTextHandler(lines, nil))))
		eventually(t, "unused changelogs are named", func() bool { return lines.first("belong to no store") != "" })
		i.stop(t)
		contains(t, dir, lines.first("belong to no store"), "level=WARN", a.name+"-"+old+"-changelog", "["+old+"]", "topology.Store", "tributary diff", changingPage)
	}
}

// A start that fails doesn't pass for the last use of the state directory: the next one, which works, is told of the change as well.
func TestAStartThatFailsKeepsThePlanOfBefore(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "failkeep")
	a.create("in", 1)
	a.runOnce(counted(a.name, topology.Store("old")), "i1")
	file := filepath.Join(t.TempDir(), "file") // below which there can be no table
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b, g := grouped(a.name)
	g.Count(topology.Store("new"))
	b.Stream(a.name+"-in2", serde.String, serde.JSON[struct{ A int }]()).ToLake(lake.Delta(filepath.Join(file, "table")), topology.Name("rows"))
	a.create("in2", 1)
	if err := a.start(build(b), "i1").failure(t); err == nil {
		t.Fatal("a table was opened below a file")
	}
	contains(t, "after the failed start", a.runOnce(counted(a.name, topology.Store("new")), "i1").first("topology has changed"), "old -> new")
}
