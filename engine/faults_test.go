package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// troubles are answers that a broker may give in bad weather, each in the place where it hurts.
var troubles = []kfake.Fault{
	{Keys: []kmsg.Key{kmsg.EndTxn}, TopLevel: true, Err: kerr.UnknownServerError},
	{Keys: []kmsg.Key{kmsg.EndTxn}, TopLevel: true, Err: kerr.RequestTimedOut}, // after doing it
	{Keys: []kmsg.Key{kmsg.EndTxn}, TopLevel: true, Err: kerr.InvalidProducerEpoch},
	{Keys: []kmsg.Key{kmsg.EndTxn}, TopLevel: true, Err: kerr.ProducerFenced},
	{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.IllegalGeneration},
	{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.CoordinatorLoadInProgress},
	{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.InvalidProducerIDMapping},
	{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.TransactionAbortable},
	{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidProducerEpoch},
	{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition},
	{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TransactionAbortable},
	{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.UnknownMemberID},
	{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.IllegalGeneration},
	{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.NotCoordinator},
	{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Err: kerr.CoordinatorNotAvailable},
	{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.UnstableOffsetCommit},
	{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition},
	{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.OffsetOutOfRange}, // a new owner has committed, and purged
	{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.LeaderNotAvailable},
	{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.ConcurrentTransactions},
}

// theEngines leaves the test's own producer and reader in peace: a reader that is told it is out of range would begin anew.
func theEngines(req kmsg.Request) bool {
	switch req := req.(type) {
	case *kmsg.ProduceRequest:
		return req.TransactionID != nil
	case *kmsg.FetchRequest:
		return req.MaxWaitMillis != int32(readersWait/time.Millisecond)
	}
	return true
}

// Each trouble alone, in the middle of work: the process goes on, and every input counts once.
func TestEachTroubleIsSurvived(t *testing.T) {
	for _, f := range troubles {
		t.Run(f.Keys[0].Name()+"/"+f.Err.Message, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, brokertest.Embedded(t), "trouble")
			a.create("in", 2)
			a.create("out", 1)
			out := a.read("out")
			i := a.start(counts(a.name), "i1")
			a.produce("in", 2, numbered(500, 20)...)
			eventually(t, "the first counted", func() bool { return total(out.lastCounts()) >= 100 })
			f.When = theEngines
			handle := a.c.Embedded.Cluster().Fault(f)
			defer handle.Remove()
			a.produce("in", 2, numbered(500, 20)...)
			if f.Keys[0] == kmsg.JoinGroup || f.Keys[0] == kmsg.OffsetFetch || f.Keys[0] == kmsg.ListOffsets {
				i.membership.Rejoin()
				a.c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.UnknownMemberID})
			}
			if f.Keys[0] == kmsg.InitProducerID {
				a.c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, TopLevel: true, Err: kerr.ProducerFenced})
			}
			eventually(t, "the trouble came", func() bool { return handle.Hits() > 0 })
			a.produce("in", 2, numbered(500, 20)...)
			eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= 1500 })
			i.await(t, "runs again", func(s Stats) bool { return s.State == Running })
			i.stop(t)
			if err := out.onlyRises(); err != nil {
				t.Error(err)
			}
			if got := total(out.lastCounts()); got != 1500 {
				t.Errorf("counted %d, want 1500", got)
			}
		})
	}
}

// All troubles at random, with two instances: a short storm with a seed that can be repeated.
func TestStormOfTroubles(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	a := newApp(t, brokertest.Embedded(t), "storm")
	a.create("in", 4)
	a.create("out", 2)
	out := a.read("out")
	i1, i2 := a.start(counts(a.name), "i1"), a.start(counts(a.name), "i2")
	const rounds, n = 40, 400
	for range rounds {
		a.produce("in", 4, numbered(n, 30)...)
		f := troubles[rnd.IntN(len(troubles))]
		f.Count, f.When = 1+rnd.IntN(2), theEngines
		a.c.Embedded.Cluster().Fault(f)
		time.Sleep(time.Duration(rnd.IntN(150)) * time.Millisecond)
	}
	eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= rounds*n })
	i1.stopInTrouble(t, troubles)
	i2.stopInTrouble(t, troubles)
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
	if got := total(out.lastCounts()); got != rounds*n {
		t.Errorf("counted %d, want %d", got, rounds*n)
	}
}

// The only broker of a real cluster is killed in the middle, stays away for a while, and comes back: the instance waits visibly and goes on.
func TestBrokerGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	k := realkafka.Start(t, 1)
	a := newApp(t, &brokertest.Cluster{Addrs: k.Addrs()}, "outage")
	a.create("in", 3)
	a.create("out", 1)
	i := a.start(counts(a.name), "i1", SessionTimeout(10*time.Second))
	a.produce("in", 3, numbered(2000, 40)...)
	i.await(t, "runs", func(s Stats) bool { return s.State == Running && s.Commits > 0 })
	a.produce("in", 3, numbered(2000, 40)...)
	if err := k.Kill9(1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	if err := k.Restart(1); err != nil {
		t.Fatal(err)
	}
	a.produce("in", 3, numbered(2000, 40)...)
	out := a.read("out")
	eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= 6000 })
	i.await(t, "runs again", func(s Stats) bool { return s.State == Running })
	i.stop(t)
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
	if got := total(out.lastCounts()); got != 6000 {
		t.Errorf("counted %d, want 6000", got)
	}
}

// One cluster of three brokers, which takes long to start, serves the tests in which some of them are killed, stopped and restarted.
func TestBrokersComeAndGo(t *testing.T) {
	t.Parallel()
	k := realkafka.Start(t, 3)
	t.Run("exactly once", func(t *testing.T) { brokersAreKilledOneByOne(t, k) })
	t.Run("at least once", func(t *testing.T) { atLeastOnceOutlivesBrokers(t, k) })
}

// Brokers of three are killed and restarted one after the other under load, each the leader of something: two instances go on, and every
// input counts once.
func brokersAreKilledOneByOne(t *testing.T, k *realkafka.Cluster) {
	a := newApp(t, &brokertest.Cluster{Addrs: k.Addrs()}, "brokers")
	a.create("in", 6)
	a.create("out", 3)
	out := a.read("out")
	i1 := a.start(counts(a.name), "i1", ReplicationFactor(3), SessionTimeout(10*time.Second))
	i2 := a.start(counts(a.name), "i2", ReplicationFactor(3), SessionTimeout(10*time.Second))
	produced := 0
	feed := func() { a.produce("in", 6, numbered(1000, 40)...); produced += 1000 }
	for broker := 1; broker <= 2; broker++ {
		feed()
		if err := k.Kill9(broker); err != nil {
			t.Fatal(err)
		}
		feed()
		if err := k.Restart(broker); err != nil {
			t.Fatal(err)
		}
		feed()
		want := int64(produced)
		eventually(t, "counted after the restart", func() bool { return total(out.lastCounts()) >= want })
	}
	for _, i := range []*instance{i1, i2} {
		i.await(t, "runs again", func(s Stats) bool { return s.State == Running })
		i.stop(t)
	}
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
	if got := total(out.lastCounts()); got != int64(produced) {
		t.Errorf("counted %d, want %d", got, produced)
	}
}

// Brokers that are just coming up, and can't say yet what earlier transactions left open, hold up a start, and don't end it.
func TestStartWaitsForWhatIsLeftOpen(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "unsettled")
	a.create("in", 1)
	a.create("out", 1)
	out := a.read("out")
	a.produce("in", 1, "v")
	i := a.start(counts(a.name), "i1")
	eventually(t, "counted", func() bool { return total(out.lastCounts()) == 1 })
	i.stop(t)
	handle := a.c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeProducers}, Err: kerr.UnknownServerError, Count: 3})
	defer handle.Remove()
	a.produce("in", 1, "v")
	i = a.start(counts(a.name), "i1")
	eventually(t, "counted after a start with trouble", func() bool { return total(out.lastCounts()) == 2 })
	if n := handle.Hits(); n != 3 {
		t.Errorf("%d requests were refused, want 3", n)
	}
	i.stop(t)
}
