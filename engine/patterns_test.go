package engine

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// countsOf counts the values of all topics whose names begin alike, behind a repartition topic.
func countsOf(name string, opts ...topology.Option) *topology.Plan {
	b := topology.NewBuilder(name)
	b.StreamPattern(name+"-in-.*", serde.String, serde.String).
		SelectKey(func(_, v string) string { return v }).
		Repartition(append(opts, topology.Name("by-value"))...).
		GroupByKey().
		Count(topology.Store("counts")).
		ToStream().
		To(name + "-out")
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}

// Topics that begin to match while instances run are read by them, also those with more partitions; topics that are deleted don't stop them.
func TestPatternTopicsComeAndGo(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "comeandgo")
		a.create("in-a", 2)
		a.create("out", 1)
		out := a.read("out")
		p := countsOf(a.name, topology.Partitions(2))
		look := LookForTopics(100 * time.Millisecond)
		i1, i2 := a.start(p, "i1", look), a.start(p, "i2", look)
		counted := func(n int64) func() bool {
			return func() bool { return total(out.lastCounts()) == n }
		}
		a.produce("in-a", 2, numbered(100, 5)...)
		eventually(t, "the first topic is counted", counted(100))
		a.create("in-b", 4)
		a.produce("in-b", 4, numbered(200, 5)...)
		a.produce("in-a", 2, numbered(100, 5)...)
		eventually(t, "a new one is counted", counted(400))
		if _, err := kadm.NewClient(c.Client(t)).DeleteTopics(t.Context(), a.topic("in-a")); err != nil {
			t.Fatal(err)
		}
		a.create("in-c", 1)
		a.produce("in-c", 1, numbered(100, 5)...)
		a.produce("in-b", 4, numbered(200, 5)...)
		eventually(t, "others are counted after one is deleted", counted(700))
		i1.stop(t)
		i2.stop(t)
		if err := out.onlyRises(); err != nil {
			t.Error(err)
		}
	})
}

// A new topic that doesn't fit, since the internal topics have too few partitions for it, is left out; the others go on.
func TestPatternTopicThatDoesNotFit(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "misfit")
	a.create("in-a", 2)
	a.create("out", 1)
	out := a.read("out")
	i := a.start(countsOf(a.name), "i1", LookForTopics(50*time.Millisecond))
	a.produce("in-a", 2, numbered(100, 5)...)
	eventually(t, "counted", func() bool { return total(out.lastCounts()) == 100 })
	a.create("in-b", 5)
	a.produce("in-b", 5, numbered(50, 5)...)
	time.Sleep(300 * time.Millisecond)
	a.produce("in-a", 2, numbered(100, 5)...)
	eventually(t, "what fits goes on", func() bool { return total(out.lastCounts()) == 200 })
	i.stop(t)
}
