package versions

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// versionOf is the version of a topology that is being built.
func versionOf(t *testing.T, b *topology.Builder) *Version {
	t.Helper()
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return New(p.Internal(), plansafety.Snapshot(p))
}

// countsPerWindow has a second sub-topology that counts by windows of a size: versions with different sizes have equal names.
func countsPerWindow(t *testing.T, size time.Duration) *Version {
	t.Helper()
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).
		Windowed(topology.Tumbling(size).Grace(time.Hour)).
		Count(topology.Store("counts"))
	return versionOf(t, b)
}

// twoCounts counts topics, in sub-topologies whose numbers are those of the order.
func twoCounts(t *testing.T, order ...string) *Version {
	t.Helper()
	const name = "app"
	b := topology.NewBuilder(name)
	for _, in := range order {
		b.Stream(name+"-"+in, serde.String, serde.String, topology.Name("read-"+in)).
			GroupByKey(topology.Name("group-"+in)).
			Count(topology.Store("counts-"+in)).
			ToStream(topology.Name("stream-"+in)).
			To(name+"-out", topology.Name("write-"+in))
	}
	return versionOf(t, b)
}

// A static member that comes back with another topology is handed its former tasks by the broker. Under the same numbers these may be of
// other sub-topologies, which run elsewhere: none of them may be run.
func TestFormerAssignmentIsNotTakenForAnotherTopology(t *testing.T) {
	former, now := twoCounts(t, "a", "b"), twoCounts(t, "b", "a")
	grown := twoCounts(t, "a", "b", "c")
	given := assign.Assignment{
		TopologyHash: former.Saved.Hash, Leader: former.Saved.Hash, Shapes: former.Shapes,
		Placement: assign.Placement{Active: []assign.TaskID{{Subtopology: 0}, {Subtopology: 1, Partition: 1}}, Standbys: []assign.TaskID{{Subtopology: 1}}},
	}
	if d := cmp.Diff(given.Placement, former.Shared(&given)); d != "" {
		t.Errorf("the same topology doesn't get all: %s", d)
	}
	if got := now.Shared(&given); len(got.Active)+len(got.Standbys) > 0 {
		t.Errorf("with the sub-topologies swapped it takes %v", got)
	}
	if d := cmp.Diff(given.Placement, grown.Shared(&given)); d != "" {
		t.Errorf("with another sub-topology behind them it doesn't take the former ones: %s", d)
	}
	given.Shapes, given.Leader = nil, "" // from a leader of a version that tells nothing of that
	if d := cmp.Diff(given.Placement, former.Shared(&given)); d != "" {
		t.Errorf("the same topology doesn't get all of a former leader: %s", d)
	}
	if got := grown.Shared(&given); len(got.Active)+len(got.Standbys) > 0 {
		t.Errorf("of a former leader it takes %v", got)
	}
}

func TestShapesFollowWhatIsDeclared(t *testing.T) {
	base := countsPerWindow(t, time.Minute).Shapes
	if again := countsPerWindow(t, time.Minute).Shapes; !cmp.Equal(base, again) {
		t.Errorf("the same topology has shapes %v and %v", base, again)
	}
	other := countsPerWindow(t, 2*time.Minute).Shapes
	if other[0] != base[0] || other[1] == base[1] {
		t.Errorf("windows of another size: %v, %v", base, other)
	}
	repartitioned := func(s serde.Serde[string]) map[int32]uint64 {
		b := topology.NewBuilder("app")
		b.Stream("in", serde.String, serde.String).Repartition(topology.Name("r"), topology.ValueSerde(s)).To("out")
		return versionOf(t, b).Shapes
	}
	text, js := repartitioned(serde.String), repartitioned(serde.JSON[string]())
	if text[0] == js[0] || text[1] == js[1] {
		t.Errorf("another serde in the topic between two sub-topologies: %v, %v", text, js)
	}
}

func TestDifferencesAreReadable(t *testing.T) {
	old, now := twoCounts(t, "a", "b"), twoCounts(t, "a", "c")
	want := []string{
		"store counts-b: orphaned", "store counts-c: new", "input app-b: orphaned", "input app-c: new",
		"sub-topology 1: only there read-b, stream-b, write-b; only here read-c, stream-c, write-c",
	}
	got := now.differences(old.Packed)
	for _, w := range want {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, w) }) {
			t.Errorf("no line begins with %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
	if len(old.Packed) > 2000 {
		t.Errorf("a small plan takes %d bytes", len(old.Packed))
	}
	for what, packed := range map[string][]byte{"doesn't tell": nil, "can't be read": []byte("no plan")} {
		if got := fmt.Sprint(now.differences(packed)); !strings.Contains(got, what) {
			t.Errorf("got %s", got)
		}
	}
}
