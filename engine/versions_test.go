package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
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
