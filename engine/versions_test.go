package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// countsPerWindow is a topology like counts whose second sub-topology counts by windows of a size: versions with different sizes have equal names.
func countsPerWindow(name string, size time.Duration) *topology.Plan {
	b := topology.NewBuilder(name)
	b.Stream(name+"-in", serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).
		Windowed(topology.Tumbling(size).Grace(time.Hour)).
		Count(topology.Store("counts")).
		ToStream().
		Map(func(w topology.Window[string], n int64) (string, int64) { return w.Key, n }).
		To(name + "-out")
	return build(b)
}

// tasksBySub counts an instance's running tasks by sub-topology.
func tasksBySub(s Stats) [2]int {
	var n [2]int
	for _, t := range s.Tasks {
		if t.Running {
			n[t.Name[0]-'0']++
		}
	}
	return n
}

// Two versions whose names are all equal, but not what one of them declares: they share what is equal, both say what differs, and all is counted
// once, by the version that leads until it goes.
func TestVersionsShareOnlyWhatTheyDeclareEqually(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "versions")
		a.create("in", 4)
		a.create("out", 1)
		out := a.read("out")
		long := []Option{WarmupReplicas(0)}
		i1 := a.start(countsPerWindow(a.name, 24*time.Hour), "i1", long...)
		i1.await(t, "it has all tasks", func(s Stats) bool { return tasksBySub(s) == [2]int{4, 4} })
		a.produce("in", 4, numbered(400, 10)...)
		i2 := a.start(countsPerWindow(a.name, 48*time.Hour), "i2", long...)
		i2.await(t, "its half of the tasks that both declare equally", func(s Stats) bool { return tasksBySub(s) == [2]int{2, 0} })
		i1.await(t, "the rest", func(s Stats) bool { return tasksBySub(s) == [2]int{2, 4} })
		a.produce("in", 4, numbered(400, 10)...)
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= 800 })

		for who, want := range map[*instance]string{i1: "172800000 -> 86400000", i2: "86400000 -> 172800000"} {
			if lines := strings.Join(who.Stats().OtherVersions, "\n"); !strings.Contains(lines, "store counts") || !strings.Contains(lines, want) {
				t.Errorf("says of the other version %q, want the store and %s", lines, want)
			}
		}
		i1.stop(t)
		i2.await(t, "all tasks", func(s Stats) bool { return tasksBySub(s) == [2]int{4, 4} && len(s.OtherVersions) == 0 })
	})
}

// twoCounts counts two topics, in sub-topologies whose numbers are those of the order.
func twoCounts(name string, order ...string) *topology.Plan {
	b := topology.NewBuilder(name)
	for _, in := range order {
		b.Stream(name+"-"+in, serde.String, serde.String, topology.Name("read-"+in)).
			GroupByKey(topology.Name("group-"+in)).
			Count(topology.Store("counts-"+in)).
			ToStream(topology.Name("stream-"+in)).
			To(name+"-out", topology.Name("write-"+in))
	}
	return build(b)
}

// A static member that comes back with another topology is handed its former tasks by the broker. Under the same numbers these may be of
// other sub-topologies, which run elsewhere: none of them may be run.
func TestFormerAssignmentIsNotTakenForAnotherTopology(t *testing.T) {
	former, now := newTestVersion(twoCounts("app", "a", "b")), newTestVersion(twoCounts("app", "b", "a"))
	grown := newTestVersion(twoCounts("app", "a", "b", "c"))
	given := assign.Assignment{
		TopologyHash: former.saved.Hash, Leader: former.saved.Hash, Shapes: former.shapes,
		Placement: assign.Placement{Active: []assign.TaskID{{Subtopology: 0}, {Subtopology: 1, Partition: 1}}, Standbys: []assign.TaskID{{Subtopology: 1}}},
	}
	if d := cmp.Diff(given.Placement, former.shared(&given)); d != "" {
		t.Errorf("the same topology doesn't get all: %s", d)
	}
	if got := now.shared(&given); len(got.Active)+len(got.Standbys) > 0 {
		t.Errorf("with the sub-topologies swapped it takes %v", got)
	}
	if d := cmp.Diff(given.Placement, grown.shared(&given)); d != "" {
		t.Errorf("with another sub-topology behind them it doesn't take the former ones: %s", d)
	}
	given.Shapes, given.Leader = nil, "" // from a leader of a version that tells nothing of that
	if d := cmp.Diff(given.Placement, former.shared(&given)); d != "" {
		t.Errorf("the same topology doesn't get all of a former leader: %s", d)
	}
	if got := grown.shared(&given); len(got.Active)+len(got.Standbys) > 0 {
		t.Errorf("of a former leader it takes %v", got)
	}
}

func newTestVersion(p *topology.Plan) *version {
	return newVersion(p.Internal(), plansafety.Snapshot(p))
}

func TestShapesFollowWhatIsDeclared(t *testing.T) {
	base := newTestVersion(countsPerWindow("app", time.Minute)).shapes
	if again := newTestVersion(countsPerWindow("app", time.Minute)).shapes; !cmp.Equal(base, again) {
		t.Errorf("the same topology has shapes %v and %v", base, again)
	}
	other := newTestVersion(countsPerWindow("app", 2*time.Minute)).shapes
	if other[0] != base[0] || other[1] == base[1] {
		t.Errorf("windows of another size: %v, %v", base, other)
	}
	repartitioned := func(s serde.Serde[string]) map[int32]uint64 {
		b := topology.NewBuilder("app")
		b.Stream("in", serde.String, serde.String).Repartition(topology.Name("r"), topology.ValueSerde(s)).To("out")
		return newTestVersion(build(b)).shapes
	}
	text, js := repartitioned(serde.String), repartitioned(serde.JSON[string]())
	if text[0] == js[0] || text[1] == js[1] {
		t.Errorf("another serde in the topic between two sub-topologies: %v, %v", text, js)
	}
}

func TestDifferencesAreReadable(t *testing.T) {
	old, now := newTestVersion(twoCounts("app", "a", "b")), newTestVersion(twoCounts("app", "a", "c"))
	want := []string{
		"store counts-b: orphaned", "store counts-c: new", "input app-b: orphaned", "input app-c: new",
		"sub-topology 1: only there read-b, stream-b, write-b; only here read-c, stream-c, write-c",
	}
	got := now.differences(old.data)
	for _, w := range want {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, w) }) {
			t.Errorf("no line begins with %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
	if len(old.data) > 2000 {
		t.Errorf("a small plan takes %d bytes", len(old.data))
	}
	for what, packed := range map[string][]byte{"doesn't tell": nil, "can't be read": []byte("no plan")} {
		if got := fmt.Sprint(now.differences(packed)); !strings.Contains(got, what) {
			t.Errorf("got %s", got)
		}
	}
}
