package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// countsKept keeps the newest count of each value in a table of current state.
func countsKept(name, dir string) *topology.Plan {
	b := topology.NewBuilder(name)
	b.Stream(name+"-in", serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).
		Count(topology.Store("counts")).
		ToStream().
		ToLake(lake.Delta(dir, lake.KeyColumn("word"), lake.CurrentState(), lake.DeletionVectors()), topology.Name("counts-table"),
			topology.KeySerde(serde.String), topology.ValueSerde(serde.Int64))
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}

// A table's stream is kept as current state by two instances at once, and by what is left of them.
func TestCurrentStateOfATable(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "kept")
		a.create("in", 2)
		dir := t.TempDir()
		state := func() map[string]int64 {
			out := map[string]int64{}
			for row, err := range lake.ReadRows(t.Context(), dir) {
				if err != nil {
					t.Log(err) // the table may not be made yet
					return nil
				}
				out[row["word"].(string)] += row["value"].(int64)
			}
			return out
		}
		rounds := int64(0)
		feed := func() {
			a.produce("in", 2, numbered(600, 30)...)
			rounds++
			time.Sleep(100 * time.Millisecond)
		}
		want := func() bool {
			got := state()
			for k := range 30 {
				if got[fmt.Sprint("v", k)] != rounds*20 {
					return false
				}
			}
			return len(got) == 30
		}
		i1 := a.start(countsKept(a.name, dir), "i1", quickLake)
		feed()
		eventually(t, "the first state", want)
		i2 := a.start(countsKept(a.name, dir), "i2", quickLake)
		for range 4 {
			feed()
		}
		eventually(t, "the state of both", want)
		i1.stop(t)
		feed()
		eventually(t, "the state of the other", want)
		i2.stop(t)
	})
}
