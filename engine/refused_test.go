package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// createWith creates a topic with settings.
func (a *app) createWith(suffix string, partitions int32, config map[string]string) {
	a.t.Helper()
	values := map[string]*string{}
	for k, v := range config {
		values[k] = &v
	}
	_, err := kadm.NewClient(a.c.Client(a.t)).CreateTopic(a.t.Context(), partitions, 1, values, a.topic(suffix))
	if err != nil {
		a.t.Fatal(err)
	}
}

func copies(name string) *topology.Plan {
	b := topology.NewBuilder(name)
	b.Stream(name+"-in", serde.String, serde.String).To(name + "-out")
	return build(b)
}

func (o *output) values() (all []string) {
	for _, r := range o.all() {
		all = append(all, string(r.Value))
	}
	return all
}

func dropped(s Stats) (n int64) {
	for _, d := range s.Dropped {
		n += int64(d.Count)
	}
	return n
}

// A record that is too large for its topic goes to the production-error handler; the limit is the topic's, below and above the default.
func TestTooLargeForTheTopic(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "toolarge")
		a.create("in", 1)
		a.createWith("out", 1, map[string]string{"max.message.bytes": "20000"})
		a.create("letters", 1)
		small := slices.Repeat([]string{strings.Repeat("s", 900)}, 100) // more than a batch of the topic takes
		big := strings.Repeat("B", 30_000)
		a.produce("in", 1, slices.Concat(small, []string{big}, small)...)
		out, letters := a.read("out"), a.read("letters")
		i := a.start(copies(a.name), "i1", Client(kgo.ProducerBatchCompression(kgo.NoCompression())),
			ErrorHandlers(processors.Handlers{Production: processors.DeadLetterOnError(a.topic("letters"))}))
		eventually(t, "the small ones", func() bool { return len(out.all()) == 200 })
		eventually(t, "the dead letter", func() bool { return len(letters.all()) == 1 })
		if got := letters.all()[0]; !bytes.Equal(got.Value, []byte(big)) || string(got.Key) != "k100" {
			t.Errorf("the dead letter isn't the record: key %q, %d bytes", got.Key, len(got.Value))
		}
		if n := dropped(i.Stats()); n != 1 || i.Stats().Aborted != 0 {
			t.Errorf("%d dropped, %d commits taken back; want 1 and 0", n, i.Stats().Aborted)
		}
		i.stop(t)
	})
}

func TestLargerThanTheDefault(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "larger")
		a.create("in", 1)
		a.createWith("out", 1, map[string]string{"max.message.bytes": "3000000"})
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.String).MapValues(func(v string) string { return strings.Repeat(v, 2_000_000) }).To(a.topic("out"))
		a.produce("in", 1, "x", "y")
		out := a.read("out")
		i := a.start(build(b), "i1", Client(kgo.ProducerBatchCompression(kgo.NoCompression())))
		eventually(t, "both", func() bool { return len(out.all()) == 2 })
		i.stop(t)
	})
}

// By default the instance stops, and says which topic doesn't take the record.
func TestTooLargeStopsByDefault(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "toolargefail")
	a.create("in", 1)
	a.createWith("out", 1, map[string]string{"max.message.bytes": "2000"})
	a.produce("in", 1, strings.Repeat("B", 3000))
	err := a.start(copies(a.name), "i1").failure(t)
	var refused *processors.RefusedError
	if !errors.As(err, &refused) || refused.Topic != a.topic("out") || !strings.Contains(err.Error(), "in-0 offset 0") {
		t.Errorf("got %v", err)
	}
}

// keyless copies records, those that begin with "bad" without their key.
func keyless(name string) *topology.Plan {
	b := topology.NewBuilder(name)
	b.Stream(name+"-in", serde.String, serde.String).Map(func(k, v string) (*string, string) {
		if strings.HasPrefix(v, "bad") {
			return nil, v
		}
		return &k, v
	}).To(name+"-out", topology.KeySerde(serde.Ptr(serde.String)), topology.ValueSerde(serde.String))
	return build(b)
}

// A compacted topic takes no records without a key: the brokers say so of a whole batch. The ones to blame are found and left out, and all
// others are written once, in order.
func TestInvalidRecords(t *testing.T) {
	for _, g := range []Guarantee{ExactlyOnce, AtLeastOnce} {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			a := newApp(t, &brokertest.Cluster{Addrs: realkafka.Shared(t, 1).Addrs()}, fmt.Sprintf("invalid%d", g))
			a.create("in", 1)
			a.createWith("out", 1, map[string]string{"cleanup.policy": "compact"})
			var values, want []string
			for n := range 300 {
				v := fmt.Sprint("v", n)
				if n%100 == 50 {
					v = "bad" + v
				} else {
					want = append(want, v)
				}
				values = append(values, v)
			}
			a.produce("in", 1, values...)
			out := a.read("out")
			i := a.start(keyless(a.name), "i1", Processing(g), ErrorHandlers(processors.Handlers{Production: processors.SkipOnError()}))
			eventually(t, "all that can be written", func() bool { return len(out.all()) >= len(want) && i.Stats().Lag == 0 })
			if got := out.values(); g == ExactlyOnce && !slices.Equal(got, want) {
				t.Errorf("got %d values, want %d: %v", len(got), len(want), got)
			}
			i.stop(t)
		})
	}
}

// The record to blame may be the first since the last commit: the task has nothing to commit then, yet is taken back and goes on.
func TestInvalidRecordComesFirst(t *testing.T) {
	for _, g := range []Guarantee{ExactlyOnce, AtLeastOnce} {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			a := newApp(t, &brokertest.Cluster{Addrs: realkafka.Shared(t, 1).Addrs()}, fmt.Sprintf("invalidfirst%d", g))
			a.create("in", 1)
			a.createWith("out", 1, map[string]string{"cleanup.policy": "compact"})
			a.produce("in", 1, "bad", "v1", "v2", "v3")
			out := a.read("out")
			i := a.start(keyless(a.name), "i1", Processing(g), ErrorHandlers(processors.Handlers{Production: processors.SkipOnError()}))
			eventually(t, "the others", func() bool { return slices.Equal(out.values(), []string{"v1", "v2", "v3"}) })
			i.stop(t)
		})
	}
}

// What a fingerprint is made of.
func TestFingerprint(t *testing.T) {
	base := txn.Record{Topic: "t", Key: []byte("k"), Value: []byte("v"), Timestamp: 1}
	same := base
	same.Partition = 3
	if base.Fingerprint() != same.Fingerprint() {
		t.Error("equal contents differ")
	}
	for _, other := range []txn.Record{
		{Topic: "u", Key: base.Key, Value: base.Value, Timestamp: 1}, {Topic: "t", Value: base.Value, Timestamp: 1},
		{Topic: "t", Key: []byte("kv"), Value: []byte{}, Timestamp: 1}, {Topic: "t", Key: base.Key, Value: base.Value, Timestamp: 2},
	} {
		if other.Fingerprint() == base.Fingerprint() {
			t.Errorf("%+v has the same fingerprint", other)
		}
	}
}
