package engine

import (
	"testing"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
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
