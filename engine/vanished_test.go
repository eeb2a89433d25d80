package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/topics"
)

// A changelog that vanished while local state remembers it is no reason to make an empty one.
func TestVanishedChangelogIsAnError(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "vanish")
	a.create("in", 1)
	a.create("out", 1)
	i := a.start(counts(a.name), "i1")
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	i.stop(t)
	if _, err := kadm.NewClient(a.c.Client(t)).DeleteTopic(t.Context(), a.name+"-counts-changelog"); err != nil {
		t.Fatal(err)
	}
	err := a.start(counts(a.name), "i1").failure(t)
	var internal *topics.InternalError
	if !errors.As(err, &internal) || !strings.Contains(err.Error(), "counts-changelog") {
		t.Fatalf("got %v, want an error that names the changelog", err)
	}
}

// An internal topic that is deleted under a running instance ends it with an error that names it, whether or not somebody makes it anew.
func TestInternalTopicVanishesWhileItRuns(t *testing.T) {
	for _, c := range []struct {
		name, topic, want string
		anew              bool
	}{
		{"vanishlog", "counts-changelog", "was deleted while", false},
		{"vanishpart", "by-value-repartition", "was deleted while", false},
		{"vanishanew", "by-value-repartition", "was deleted and made anew", true},
	} {
		a := newApp(t, brokertest.Embedded(t), c.name)
		a.create("in", 1)
		a.create("out", 1)
		out := a.read("out")
		i := a.start(counts(a.name), "i1", func(c *config) { c.vanish = time.Second })
		a.produce("in", 1, "v")
		eventually(t, "counted", func() bool { return len(out.all()) == 1 })
		admin := kadm.NewClient(a.c.Client(t))
		if _, err := admin.DeleteTopic(t.Context(), a.topic(c.topic)); err != nil {
			t.Fatal(err)
		}
		a.produce("in", 1, "v")
		if c.anew {
			i.await(t, "the trouble shows", func(s Stats) bool { return s.State == Recovering })
			a.create(c.topic, 1)
		}
		var internal *topics.InternalError
		if err := i.failure(t); !errors.As(err, &internal) || len(internal.Problems) != 1 || internal.Problems[0].Topic != a.topic(c.topic) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error that says that it %s", c.topic, err, c.want)
		}
	}
}

// Whoever would give local state up for a topic that is gone waits until brokers say what there is.
func TestLocalStateWaitsForAnAnswer(t *testing.T) {
	c := brokertest.Embedded(t)
	a := newApp(t, c, "answer")
	var away atomic.Bool
	away.Store(true)
	dial := func(ctx context.Context, network, host string) (net.Conn, error) {
		if away.Load() {
			return nil, errors.New("the brokers are away")
		}
		return new(net.Dialer).DialContext(ctx, network, host)
	}
	e, err := New(counts(a.name), Brokers("127.0.0.1:1"), StateDir(t.TempDir()), func(c *config) { c.vanish = 50 * time.Millisecond })
	if err != nil {
		t.Fatal(err)
	}
	e.control = c.Client(t, kgo.Dialer(dial))
	name := a.name + "-counts-changelog"
	e.known.Store(&catalog{topics: map[string]topics.Topic{name: {Name: name}}})
	if err := e.vanished(t.Context(), nil, e.knownInternal()); err != nil {
		t.Fatalf("whoever can go on without an answer: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.awaitInternal(t.Context()) }()
	select {
	case err := <-ended:
		t.Fatalf("while no broker answers: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	away.Store(false)
	var internal *topics.InternalError
	if err := <-ended; !errors.As(err, &internal) || internal.Problems[0].Topic != name {
		t.Fatalf("got %v, want an error that names the changelog", err)
	}
}

// A topic of the user that is deleted under running instances ends them with an error that names it: a source all of them, whether or not they read it
// and whether or not something comes, an output the one that would write to it.
func TestUserTopicVanishesWhileItRuns(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		for _, topic := range []string{"in", "out"} {
			a := newApp(t, c, "gone"+topic)
			a.create("in", 1)
			a.create("out", 1)
			out := a.read("out")
			quick := func(c *config) { c.vanish, c.inputsEvery = time.Second, time.Second }
			instances := []*instance{a.start(counts(a.name), "i1", quick)}
			a.produce("in", 1, "v")
			eventually(t, "counted", func() bool { return len(out.all()) == 1 })
			if topic == "in" {
				instances = append(instances, a.start(counts(a.name), "i2", quick)) // of two tasks each has one
				instances[1].await(t, "runs", func(s Stats) bool { return s.State == Running })
			}
			a.delete(topic)
			if topic == "out" {
				a.produce("in", 1, "v")
			}
			for _, i := range instances {
				var gone *DeletedTopicsError
				if err := i.failure(t); !errors.As(err, &gone) || !slices.Equal(slices.Concat(gone.Sources, gone.Outputs), []string{a.topic(topic)}) ||
					(len(gone.Sources) > 0) != (topic == "in") || !strings.Contains(err.Error(), a.topic(topic)+" was deleted while the application ran; create it") {
					t.Errorf("%s: got %v, want an error that says that it was deleted", topic, err)
				}
			}
		}
	})
}

func (a *app) delete(suffix string) {
	a.t.Helper()
	if _, err := kadm.NewClient(a.c.Client(a.t)).DeleteTopic(a.t.Context(), a.topic(suffix)); err != nil {
		a.t.Fatal(err)
	}
}

// A source that somebody made anew is another one than that whose offsets are committed; an output is written to again.
func TestUserTopicIsMadeAnewWhileItRuns(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "usersanew")
	a.create("in", 1)
	a.create("out", 1)
	first := a.read("out")
	i := a.start(counts(a.name), "i1", func(c *config) { c.vanish = time.Second })
	a.produce("in", 1, "v")
	eventually(t, "counted", func() bool { return len(first.all()) == 1 })
	a.delete("out")
	a.create("out", 1)
	second := a.read("out")
	a.produce("in", 1, "v")
	eventually(t, "counted into the new topic", func() bool { return len(second.all()) == 1 })
	a.delete("in")
	a.create("in", 1)
	var gone *DeletedTopicsError
	if err := i.failure(t); !errors.As(err, &gone) || !slices.Equal(gone.Sources, []string{a.topic("in")}) || !slices.Equal(gone.Anew, gone.Sources) ||
		!strings.Contains(err.Error(), "was deleted and made anew") {
		t.Errorf("got %v, want an error that says that the source was made anew", err)
	}
}

// A broker that was away and doesn't know yet which topics there are ends nothing.
func TestLaggingMetadataEndsNothing(t *testing.T) {
	c := brokertest.Embedded(t)
	a := newApp(t, c, "lagging")
	a.create("in", 1)
	a.create("out", 1)
	out := a.read("out")
	i := a.start(counts(a.name), "i1", func(c *config) { c.vanish = 20 * time.Second })
	a.produce("in", 1, "v")
	eventually(t, "counted", func() bool { return len(out.all()) == 1 })
	var lied atomic.Int64
	denyTopics(c, func(asked []string) []string {
		if lied.Load() >= 3 || !slices.Contains(asked, a.topic("in")) {
			return nil
		}
		lied.Add(1)
		return asked
	})
	i.suspectInputs()
	eventually(t, "brokers have denied the topic", func() bool { return lied.Load() == 3 })
	a.produce("in", 1, "v")
	eventually(t, "counted on", func() bool { return len(out.all()) == 2 })
	i.stop(t)
}

// denyTopics has brokers say of some of the topics that they are asked for that they don't know them.
func denyTopics(c *brokertest.Cluster, some func(asked []string) []string) {
	cluster := c.Embedded.Cluster()
	cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		m := req.(*kmsg.MetadataRequest)
		var asked []string
		for _, t := range m.Topics {
			if t.Topic != nil {
				asked = append(asked, *t.Topic)
			}
		}
		denied := some(asked)
		if len(denied) == 0 {
			return nil, nil, false
		}
		resp := m.ResponseKind().(*kmsg.MetadataResponse)
		for _, topic := range denied {
			answer := kmsg.NewMetadataResponseTopic()
			answer.Topic, answer.ErrorCode = kmsg.StringPtr(topic), kerr.UnknownTopicOrPartition.Code
			resp.Topics = append(resp.Topics, answer)
		}
		return resp, nil, true
	})
}

// Topics that are unknown at one look and known at the next were not deleted, though at every look some are unknown.
func TestTopicsUnknownInTurnAreNotDeleted(t *testing.T) {
	c := brokertest.Embedded(t)
	a := newApp(t, c, "inturn")
	a.create("in", 1)
	a.create("out", 1)
	out := a.read("out")
	i := a.start(counts(a.name), "i1", func(c *config) { c.vanish = time.Second })
	a.produce("in", 1, "v")
	eventually(t, "counted", func() bool { return len(out.all()) == 1 })
	const looks = 10
	var looked atomic.Int64
	denyTopics(c, func(asked []string) []string {
		inputs := []string{a.topic("in"), a.topic("by-value-repartition")}
		if !slices.Contains(asked, inputs[0]) || !slices.Contains(asked, inputs[1]) || looked.Load() >= looks {
			return nil
		}
		return inputs[looked.Add(1)%2:][:1]
	})
	i.suspectInputs()
	eventually(t, "brokers have denied topics", func() bool { return looked.Load() == looks })
	a.produce("in", 1, "v")
	eventually(t, "counted on", func() bool { return len(out.all()) == 2 })
	i.stop(t)
}

// A broker that goes on saying that it doesn't know a topic makes for one look, and one line in the log.
func TestUnknownTopicsAreToldOnce(t *testing.T) {
	var log bytes.Buffer
	e := &Engine{log: slog.New(slog.NewTextHandler(&log, nil)), suspect: make(chan struct{}, 1), life: t.Context()}
	e.known.Store(&catalog{})
	r := &runner{spec: &taskSpec{}}
	for range 5 {
		e.fetchFailed(r, &fetch.Batch{Partition: fetch.Partition{Topic: "in"}, Err: kerr.UnknownTopicOrPartition})
	}
	if n := strings.Count(log.String(), "looking whether"); n != 1 || len(e.suspect) != 1 {
		t.Errorf("%d warnings:\n%s", n, &log)
	}
}
