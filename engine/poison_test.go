package engine

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// prices joins a stream with a table that is restored from its source topic.
func prices(name string) *topology.Plan {
	b := topology.NewBuilder(name, topology.Optimize(topology.ReuseSourceTopics))
	table := b.Table(name+"-prices", serde.String, serde.Int64, topology.Store("prices"))
	b.Stream(name+"-in", serde.String, serde.String).
		LeftJoin(table, func(v string, price *int64) string {
			if price == nil {
				return v + "=none"
			}
			return v + "=" + strings.Repeat("I", int(*price))
		}).To(name + "-out")
	return build(b)
}

// A record that the handler let go while the table was read isn't in the store after a restore from the source topic either (KAFKA-8037);
// and where the handler now says "fail", the restore does.
func TestPoisonIsNotRestoredFromTheSource(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "poison")
		for _, topic := range []string{"in", "prices", "out"} {
			a.create(topic, 1)
		}
		client := a.c.Client(t, kgo.DefaultProduceTopic(a.topic("prices")))
		for _, r := range []kgo.Record{
			{Key: []byte("k0"), Value: binary.BigEndian.AppendUint64(nil, 3)}, {Key: []byte("k0"), Value: []byte("poison")},
			{Value: binary.BigEndian.AppendUint64(nil, 1)}, {Key: []byte("k1"), Value: []byte("poison")}, {Key: []byte("k2"), Value: binary.BigEndian.AppendUint64(nil, 2)},
		} {
			if err := client.ProduceSync(t.Context(), &r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		skip := ErrorHandlers(processors.Handlers{Deserialization: processors.SkipOnError()})
		out := a.read("out")
		want := "a=III b=none c=II"
		for round := range 2 {
			i := a.start(prices(a.name), "i1", skip)
			i.await(t, "the table is read", func(s Stats) bool { return s.State == Running && s.Lag == 0 })
			a.produce("in", 1, "a", "b", "c") // with keys k0, k1, k2
			eventually(t, "joined", func() bool { return len(out.all()) == 3*(round+1) })
			if got := strings.Join(out.values()[3*round:], " "); got != want {
				t.Errorf("round %d: %s, want %s", round, got, want)
			}
			i.stop(t)
			if err := os.RemoveAll(a.dir + "/i1"); err != nil { // the state is restored next time
				t.Fatal(err)
			}
		}
		err := a.start(prices(a.name), "i1", ErrorHandlers(processors.Handlers{Deserialization: processors.FailOnError()})).failure(t)
		if err == nil || !strings.Contains(err.Error(), "prices-0 offset 1") || !strings.Contains(err.Error(), "restored from") {
			t.Errorf("got %v, want the record that can't be decoded", err)
		}
	})
}
