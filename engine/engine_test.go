package engine

import (
	"testing"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

func TestCountsExactlyOnce(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "counts")
		a.create("in", 3)
		a.create("out", 2)
		a.produce("in", 3, numbered(1000, 7)...)
		out := a.read("out")
		i := a.start(counts(a.name), "i1")
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= 1000 })
		a.produce("in", 3, numbered(500, 7)...)
		eventually(t, "the rest counted", func() bool { return total(out.lastCounts()) >= 1500 })
		i.stop(t)
		if err := out.onlyRises(); err != nil {
			t.Error(err)
		}
		if got := total(out.lastCounts()); got != 1500 {
			t.Errorf("counted %d records, want 1500", got)
		}
	})
}

// Updates that wait for the commit come once for each key and commit, and the last one is right.
func TestEmitOnCommit(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "oncommit")
		a.create("in", 1)
		a.create("out", 1)
		a.produce("in", 1, numbered(3000, 3)...)
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.String).
			GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).
			Count(topology.Store("counts"), topology.EmitOnCommit()).
			ToStream().
			To(a.topic("out"))
		out := a.read("out")
		i := a.start(build(b), "i1")
		eventually(t, "counted", func() bool { return total(out.lastCounts()) == 3000 })
		i.stop(t)
		if n := len(out.all()); n > 1000 {
			t.Errorf("%d updates for 3000 records of 3 keys, want a few for each commit", n)
		}
	})
}
