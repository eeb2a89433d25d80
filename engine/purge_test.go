package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// produceAt writes values to partition 0 of a topic, each a second after the one before.
func (a *app) produceAt(suffix string, at time.Time, values ...string) {
	a.t.Helper()
	client := a.c.Client(a.t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i, v := range values {
		r := &kgo.Record{Topic: a.topic(suffix), Key: []byte("k"), Value: []byte(v), Timestamp: at.Add(time.Duration(i) * time.Second)}
		if err := client.ProduceSync(a.t.Context(), r).FirstErr(); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *app) logStart(topic string) (offset int64) {
	a.t.Helper()
	starts, err := kadm.NewClient(a.c.Client(a.t)).ListStartOffsets(a.t.Context(), topic)
	if err != nil {
		a.t.Fatal(err)
	}
	o, _ := starts.Lookup(topic, 0)
	return o.Offset
}

// brokersDelete waits until brokers have deleted, by the clock on the wall, what is as old as at.
func (a *app) brokersDelete(witness string, at time.Time) {
	a.t.Helper()
	a.createWith(witness, 1, map[string]string{"cleanup.policy": "compact,delete", "retention.ms": fmt.Sprint((25 * time.Hour).Milliseconds())})
	a.produceAt(witness, at, "old")
	eventually(a.t, "brokers delete old records", func() bool { return a.logStart(a.topic(witness)) == 1 })
}

func seenOnce(name string) *topology.Plan {
	b := topology.NewBuilder(name)
	b.Stream(name+"-in", serde.String, serde.String).
		DedupBy(func(v string) string { return v }, time.Hour, topology.Store("seen")).To(name + "-out")
	return build(b)
}

// The windows of events that are older than the changelog's retention, by the clock on the wall, outlast the state directory; and what has
// expired by event time is deleted from the changelog.
func TestEventsOfLongAgo(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "longago")
		for _, topic := range []string{"in", "out"} {
			a.createWith(topic, 1, map[string]string{"retention.ms": "-1"})
		}
		out, changelog := a.read("out"), a.name+"-seen-changelog"
		sent := func(want int) {
			t.Helper()
			eventually(t, fmt.Sprint(want, " records come out"), func() bool { return len(out.all()) >= want })
			if all := out.all(); len(all) > want {
				t.Fatalf("%d records came out, want %d: %q is doubled", len(all), want, all[want].Value)
			}
		}
		yearAgo := time.Now().Add(-365 * 24 * time.Hour).Truncate(time.Hour)
		events := numbered(20, 20)
		i := a.start(seenOnce(a.name), "i1")
		a.produceAt("in", yearAgo, events...)
		sent(20)
		i.stop(t)
		a.brokersDelete("witness", yearAgo)

		i = a.start(seenOnce(a.name), "i2", PurgeInterval(50*time.Millisecond)) // another machine
		a.produceAt("in", yearAgo, append(events, "another")...)
		sent(21)
		if at := a.logStart(changelog); at > 0 {
			t.Errorf("the changelog begins at %d, though all in it is alive", at)
		}
		later := yearAgo.Add(27 * time.Hour)
		a.produceAt("in", later, "later")
		sent(22)
		eventually(t, "what has expired is deleted", func() bool { return a.logStart(changelog) >= 20 })
		i.stop(t)

		i = a.start(seenOnce(a.name), "i3") // a third one begins where the changelog does
		a.produceAt("in", later, "later", "last")
		sent(23)
		i.stop(t)
	})
}

// Who sets how brokers delete from a changelog has it so: the engine deletes nothing there.
func TestChangelogWithARetentionOfItsOwn(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "ownretention")
	a.create("in", 1)
	a.create("out", 1)
	out := a.read("out")
	id := func(v string) string { return v }
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.String).
		DedupBy(id, time.Hour, topology.Store("own"), topology.ChangelogConfig("retention.ms", fmt.Sprint((1000*24*time.Hour).Milliseconds()))).
		DedupBy(id, time.Hour, topology.Store("engine")).
		To(a.topic("out"))
	i := a.start(build(b), "i1", PurgeInterval(10*time.Millisecond))
	for n := range 3 {
		a.produceAt("in", time.Now().Add(time.Duration(n-4)*30*time.Hour), fmt.Sprint("v", n))
		eventually(t, "it comes out", func() bool { return len(out.all()) > n })
	}
	eventually(t, "the other changelog is purged", func() bool { return a.logStart(a.name+"-engine-changelog") > 0 })
	i.stop(t)
	if at := a.logStart(a.name + "-own-changelog"); at != 0 {
		t.Errorf("the changelog begins at %d", at)
	}
}
