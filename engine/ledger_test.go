package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Dropped records are in the ledger once, in the transaction of their task.
func TestLedgerOfDroppedRecords(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "ledger")
		for _, topic := range []string{"in", "out", "dropped"} {
			a.create(topic, 1)
		}
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.String).
			DedupBy(func(v string) string { return v }, topology.Forever, topology.Name("once")).To(a.topic("out"))
		a.produce("in", 1, "a", "b", "a", "c", "b")
		out, ledger := a.read("out"), a.read("dropped")
		i := a.start(build(b), "i1", ErrorHandlers(processors.Handlers{DroppedTopic: a.topic("dropped")}))
		eventually(t, "the output", func() bool { return slices.Equal(out.values(), []string{"a", "b", "c"}) })
		eventually(t, "the ledger", func() bool { return slices.Equal(ledger.values(), []string{"a", "b"}) })
		i.stop(t)
		r := ledger.all()[0]
		at := slices.IndexFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == processors.HeaderErrorOffset })
		if string(r.Key) != "k2" || at < 0 || string(r.Headers[at].Value) != "2" {
			t.Errorf("the first is %s with headers %v", r.Key, r.Headers)
		}
	})
}

// A ledger that doesn't exist is said with its name, at start.
func TestLedgerMissing(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "noledger")
	a.create("in", 1)
	a.create("out", 1)
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.String).
		DedupBy(func(v string) string { return v }, time.Hour, topology.Name("once")).To(a.topic("out"))
	a.produce("in", 1, "a", "a")
	i := a.start(build(b), "i1", ErrorHandlers(processors.Handlers{DroppedTopic: a.topic("dropped")}))
	if err := i.failure(t); !strings.Contains(err.Error(), "missing: [noledger-dropped]") {
		t.Errorf("got %v", err)
	}
}
