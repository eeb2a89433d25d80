package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// firsts passes on what is new.
func firsts(name string) *topology.Plan {
	b := topology.NewBuilder(name)
	b.Stream(name+"-in", serde.String, serde.String).
		DedupBy(func(v string) string { return v }, topology.Forever, topology.Store("seen")).
		To(name + "-out")
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}

// missing counts the values of numbered(n, n) that never came out.
func (o *output) missing(n int) (missing int) {
	seen := map[string]bool{}
	for _, r := range o.all() {
		seen[string(r.Value)] = true
	}
	for _, v := range numbered(n, n) {
		if !seen[v] {
			missing++
		}
	}
	return missing
}

// A state that is ahead of the output would drop what was never written: a record that isn't written takes its place in the state back.
func TestAtLeastOnceStateIsNotAheadOfOutput(t *testing.T) {
	for _, e := range []*kerr.Error{kerr.UnknownServerError, kerr.InvalidProducerEpoch, kerr.NotLeaderForPartition, kerr.OutOfOrderSequenceNumber} {
		t.Run(e.Message, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, brokertest.Embedded(t), "ahead")
			a.create("in", 2)
			a.create("out", 1)
			out := a.read("out")
			i := a.start(firsts(a.name), "i1", Processing(AtLeastOnce))
			i.await(t, "runs", func(s Stats) bool { return s.State == Running })
			fault := a.c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: a.topic("out"), Err: e, Count: 3})
			defer fault.Remove()
			a.produce("in", 2, numbered(300, 300)...)
			eventually(t, "the trouble came", func() bool { return fault.Hits() > 0 })
			eventually(t, "all came out", func() bool { return out.missing(300) == 0 })
			i.stop(t)
		})
	}
}

// Broken connections to a coordinator, moved leaders, lost memberships and failed writes at random: nothing is lost.
func TestAtLeastOnceInAStorm(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	a := newApp(t, brokertest.Embedded(t), "alostorm")
	a.create("in", 4)
	a.create("out", 2)
	out := a.read("out")
	var weather []kfake.Fault
	for _, f := range troubles {
		switch f.Keys[0] {
		case kmsg.EndTxn, kmsg.TxnOffsetCommit, kmsg.InitProducerID:
			continue
		case kmsg.Produce:
			f.Topic = a.topic("out")
		}
		weather = append(weather, f)
	}
	for _, e := range []*kerr.Error{kerr.RequestTimedOut, kerr.IllegalGeneration, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.UnknownServerError} {
		weather = append(weather, kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: e},
			kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: a.name + "-seen-changelog", Err: e})
	}
	i1, i2 := a.start(firsts(a.name), "i1", Processing(AtLeastOnce)), a.start(firsts(a.name), "i2", Processing(AtLeastOnce))
	const rounds, n = 30, 300
	all := numbered(rounds*n, rounds*n)
	for round := range rounds {
		a.produce("in", 4, all[round*n:(round+1)*n]...)
		f := weather[rnd.IntN(len(weather))]
		f.Count = 1 + rnd.IntN(2)
		a.c.Embedded.Cluster().Fault(f)
		time.Sleep(time.Duration(rnd.IntN(150)) * time.Millisecond)
	}
	eventually(t, "all came out", func() bool { return out.missing(rounds*n) == 0 })
	i1.stopInTrouble(t, weather)
	i2.stopInTrouble(t, weather)
}

// A broker of real Kafka that is killed, and one that doesn't answer for a while, lose nothing.
func atLeastOnceOutlivesBrokers(t *testing.T, kafka *realkafka.Cluster) {
	a := newApp(t, &brokertest.Cluster{Addrs: kafka.Addrs()}, "alobrokers")
	for _, suffix := range []string{"in", "out"} {
		a.create(suffix, 3)
		eventually(t, "every broker knows the topics", func() bool { return knownEverywhere(t, a, a.topic(suffix)) })
	}
	out := a.read("out")
	i := a.start(firsts(a.name), "i1", Processing(AtLeastOnce), ReplicationFactor(3))
	const n = 200
	all := numbered(12*n, 12*n)
	for round := range 12 {
		a.produce("in", 3, all[round*n:(round+1)*n]...)
		var err error
		switch round {
		case 2:
			err = kafka.Kill9(1)
		case 4:
			err = kafka.Restart(1)
		case 6:
			err = kafka.Pause(2)
		case 7:
			err = kafka.Resume(2)
		case 9:
			err = kafka.Restart(3)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, fmt.Sprintf("all %d came out", len(all)), func() bool { return out.missing(len(all)) == 0 })
	i.stop(t)
}

// knownEverywhere asks each broker for a topic: they hear of a new one at different times.
func knownEverywhere(t *testing.T, a *app, topic string) bool {
	t.Helper()
	for _, addr := range a.c.Addrs {
		one := brokertest.Cluster{Addrs: []string{addr}}
		found, err := topics.Describe(t.Context(), one.Client(t), topic)
		if err != nil || found[topic].Partitions == 0 {
			return false
		}
	}
	return true
}
