package engine

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
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
	if err := e.vanished(t.Context(), nil); err != nil {
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
