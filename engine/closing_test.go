package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/internal/faultproxy"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// vanishNetwork takes the brokers away: what is open is held for ever, and nothing new is let through.
func vanishNetwork(n *faultproxy.Network) {
	n.Refuse(true)
	for _, c := range n.Conns() {
		c.BlackHole(true)
	}
}

// A task that waits for room in a full producer, in the middle of a record, doesn't hold up the end where brokers are away, and Run says that the
// last commit is missing. The next start does its work again.
func TestCloseDoesNotWaitForRoom(t *testing.T) {
	const many = 25_000 // more than a producer takes
	a := newApp(t, brokertest.Embedded(t), "room")
	a.create("in", 1)
	a.create("out", 1)
	first, cut := make(chan struct{}, 1), make(chan struct{})
	plan := func(gated bool) *topology.Plan {
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.String).
			FlatMapValues(func(v string, emit func(string)) {
				if gated {
					first <- struct{}{}
					<-cut
				}
				for range many {
					emit(v)
				}
			}).
			To(a.topic("out"))
		return build(b)
	}
	n := proxied(t)
	i := a.start(plan(true), "i1", through(n), CloseTimeout(5*time.Minute))
	a.produce("in", 1, "v")
	<-first
	vanishNetwork(n)
	close(cut)
	eventually(t, "the task waits for room", func() bool { _, waiting := i.producer.Waiting(); return waiting })
	i.cancel()
	var uncommitted *UncommittedError
	if err := i.failure(t); !errors.As(err, &uncommitted) {
		t.Fatalf("Run: %v, want an error that says that the last commit is missing", err)
	}

	out := a.read("out")
	i = a.start(plan(false), "i1")
	eventually(t, "all is there", func() bool { return len(out.all()) >= many })
	i.stop(t)
	if got := len(out.all()); got != many {
		t.Errorf("%d records are there, want %d", got, many)
	}
}

// Brokers that are slow, but there, get the time that a close may take: nothing is given up while they take records.
func TestCloseWaitsForSlowBrokers(t *testing.T) {
	const many = 60_000
	a := newApp(t, brokertest.Embedded(t), "slowroom")
	a.create("in", 1)
	a.create("out", 1)
	b := topology.NewBuilder(a.name)
	began := make(chan struct{}, 1)
	b.Stream(a.topic("in"), serde.String, serde.String).
		FlatMapValues(func(v string, emit func(string)) {
			began <- struct{}{}
			for range many {
				emit(v)
			}
		}).
		To(a.topic("out"))
	n := proxied(t)
	i := a.start(build(b), "i1", through(n))
	out := a.read("out")
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	for _, c := range n.Conns() {
		c.Delay(100 * time.Millisecond)
	}
	a.produce("in", 1, "v")
	<-began
	i.stop(t)
	eventually(t, "all is there", func() bool { return len(out.all()) == many })
}

// An instance that is thrown out of its group while it closes commits nothing of what it has sent, and there is nothing that a user would have to know
// of: others do its work.
func TestLossOfMembershipAtCloseIsNoError(t *testing.T) {
	e, _ := withoutBrokers(t)
	var err error
	if e.inputs, err = fetch.NewInputs(fetch.InputsConfig{Client: e.clientOptions("test"), MaxBytes: 1 << 20, MaxPartitionBytes: 1 << 20, MaxWait: time.Second}); err != nil {
		t.Fatal(err)
	}
	defer e.inputs.Close()
	e.members = newMembers(e, "")
	e.members.Lost(errors.New("the session ended"))
	e.closing.Store(true)
	if err := e.dropLost(); !doneByOthers(err) {
		t.Errorf("got %v, want the loss", err)
	}
}

// An input that can't be read on is no reason to end without the last commit: what was processed is committed, and the next start deals with it.
func TestInputOutOfRangeAtCloseIsLeftAlone(t *testing.T) {
	e, _ := withoutBrokers(t)
	r := &runner{spec: &taskSpec{}, open: true}
	e.runners[r.spec.id] = r
	e.closing.Store(true)
	if err := e.outOfRange(outside{r, errors.New("the log begins later")}); err != nil {
		t.Errorf("got %v, want the close to go on", err)
	}
}

// Instances that are closed in the middle of a backlog stop processing before their last commit: what they would do after it would be done again by the
// next start, and at least once its output would be there twice.
func TestCloseDoublesNothing(t *testing.T) {
	const n = 40_000
	var processed atomic.Int64
	a := newApp(t, brokertest.Embedded(t), "closedouble")
	a.create("in", 4)
	a.create("out", 4)
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.String).
		MapValues(func(v string) string {
			processed.Add(1)
			for began := time.Now(); time.Since(began) < 20*time.Microsecond; { // there is always more to do
			}
			return v
		}).
		To(a.topic("out"))
	plan := build(b)
	a.produce("in", 4, numbered(n, n)...)
	out := a.read("out")
	for range 4 {
		i := a.start(plan, "i1", Processing(AtLeastOnce), func(c *config) {
			c.stepped = func(s step) {
				if s == stepDrained {
					time.Sleep(20 * time.Millisecond) // the group is slow to let it go
				}
			}
		})
		eventually(t, "it works", func() bool { return i.Stats().Processed > 0 })
		i.stop(t)
	}
	i := a.start(plan, "i1", Processing(AtLeastOnce))
	eventually(t, "all came out", func() bool { return out.missing(n) == 0 })
	i.stop(t)
	if got := len(out.all()); got != n || processed.Load() != n {
		t.Errorf("%d records came out of %d, and %d were processed", got, n, processed.Load())
	}
}

// Only what a next start makes good lets an instance close as if nothing was wrong.
func TestOnlyUncommitted(t *testing.T) {
	uncommitted, fatal := &UncommittedError{errors.New("brokers are away")}, errors.New("a record that fails")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{fatal, false},
		{uncommitted, true},
		{fmt.Errorf("closing: %w", uncommitted), true},
		{errors.Join(uncommitted, uncommitted), true},
		{errors.Join(uncommitted, fatal), false},
		{errors.Join(fatal, uncommitted), false},
		{fmt.Errorf("closing: %w", errors.Join(uncommitted, fatal)), false},
		{&UncommittedError{errors.Join(fatal, errors.New("and more"))}, true},
	} {
		if got := onlyUncommitted(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// An instance that stays in its group keeps its place there when it closes; one that doesn't gives it up.
func TestStayInGroup(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "stay")
	a.create("in", 1)
	a.create("out", 1)
	members := func() int {
		groups, err := kadm.NewClient(a.c.Client(t)).DescribeGroups(t.Context(), a.name)
		if err == nil {
			err = groups.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		return len(groups[a.name].Members)
	}
	for _, stay := range []bool{true, false} {
		var opts []Option
		if stay {
			opts = append(opts, StayInGroup(), SessionTimeout(time.Minute))
		}
		i := a.start(counts(a.name), "i", opts...)
		i.await(t, "runs", func(s Stats) bool { return s.State == Running && runningTasks(s) == len(s.Tasks) && len(s.Tasks) > 0 })
		i.stop(t)
		if n := members(); n == 1 != stay {
			t.Errorf("StayInGroup %v: %d members are left", stay, n)
		}
	}
}
