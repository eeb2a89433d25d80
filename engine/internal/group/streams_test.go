package group

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// worker is a handler that closes what is taken away after a while, as an engine does.
type worker struct {
	m *Streams

	mu     sync.Mutex
	held   map[assign.TaskID]bool
	target map[assign.TaskID]bool
	lost   []error
	slow   time.Duration // to close a task
}

func (w *worker) Unheard(time.Time, error) {}

func (w *worker) Held() assign.Placement {
	w.mu.Lock()
	defer w.mu.Unlock()
	var t assign.Placement
	for id := range w.held {
		t.Active = append(t.Active, id)
	}
	return t
}

func (w *worker) Given(t assign.Placement) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = map[assign.TaskID]bool{}
	for _, id := range t.Active {
		w.target[id], w.held[id] = true, true
	}
	go func() {
		time.Sleep(w.slow)
		w.mu.Lock()
		for id := range w.held {
			if !w.target[id] {
				delete(w.held, id)
			}
		}
		w.mu.Unlock()
		w.m.Rejoin()
	}()
	return nil
}

func (w *worker) Lost(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = append(w.lost, cause)
	clear(w.held)
	w.target = nil
}

func (w *worker) tasks() int { return len(w.Held().Active) }

func (w *worker) losses() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lost)
}

// topologyOf reads topics, each in a sub-topology of its own.
func topologyOf(topics ...string) *kmsg.StreamsGroupHeartbeatRequestTopology {
	top := kmsg.NewStreamsGroupHeartbeatRequestTopology()
	for i, topic := range topics {
		s := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
		s.SubtopologyID, s.SourceTopics = string(rune('0'+i)), []string{topic}
		top.Subtopologies = append(top.Subtopologies, s)
	}
	return &top
}

type runningStreams struct {
	*Streams
	*worker
	end   func() error // ends Run without leaving
	ended chan struct{}
}

func startStreams(t *testing.T, c *brokertest.Cluster, name, id string, topics ...string) *runningStreams {
	t.Helper()
	w := &worker{held: map[assign.TaskID]bool{}, slow: 20 * time.Millisecond}
	m := NewStreams(StreamsConfig{
		Client: c.Client(t), Group: name, MemberID: id, RebalanceTimeout: 5 * time.Second, Endpoint: "127.0.0.1:80" + id[len(id)-2:],
		Topology: topologyOf(topics...), Logger: slog.New(slog.DiscardHandler),
	}, w)
	w.m = m
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var failed error
	go func() { failed = m.Run(ctx); close(ended) }()
	end := func() error { cancel(); <-ended; return failed }
	t.Cleanup(func() { end() })
	return &runningStreams{m, w, end, ended}
}

func taughtBroker(t *testing.T) (*brokertest.Cluster, *brokertest.StreamsCoordinator) {
	c := brokertest.Embedded(t)
	s := c.TeachStreams(t, 1500*time.Millisecond, 50*time.Millisecond)
	c.CreateTopic(t, "t", 6)
	c.CreateTopic(t, "u", 4)
	return c, s
}

// Members share the tasks, on the project's own coordinator and on Kafka's.
func TestStreamsMembersComeAndGo(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		if c.Embedded != nil {
			c.TeachStreams(t, 3*time.Second, 50*time.Millisecond)
		}
		c.CreateTopic(t, "come-and-go-t", 6)
		c.CreateTopic(t, "come-and-go-u", 4)
		topics := []string{"come-and-go-t", "come-and-go-u"}
		a := startStreams(t, c, "streams-come-and-go", "m-10", topics...)
		eventually(t, "a has all", func() bool { return a.tasks() == 10 })
		b := startStreams(t, c, "streams-come-and-go", "m-11", topics...)
		eventually(t, "half each", func() bool { return a.tasks() == 5 && b.tasks() == 5 })
		members, err := DescribeStreams(t.Context(), c.Client(t), "streams-come-and-go")
		if err != nil || len(members) != 2 || members[0].Endpoint != "127.0.0.1:8010" || len(members[1].Tasks.Active) != 5 {
			t.Errorf("described: %+v, %v", members, err)
		}
		if m, ok := b.Member(); !ok || m.ID != "m-11" || m.InstanceID != nil || m.Generation <= 0 {
			t.Errorf("b commits as %+v, %v", m, ok)
		}
		if err := b.end(); err != nil {
			t.Fatal(err)
		}
		if err := b.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, ok := b.Member(); ok {
			t.Error("b is still a member after it has left")
		}
		eventually(t, "a has all again", func() bool { return a.tasks() == 10 })
		if lost := a.losses(); len(lost) > 0 {
			t.Errorf("a lost its place: %v", lost)
		}
	})
}

// A member that dies and comes back takes its own tasks at once; one that stays away loses them after its session.
func TestStreamsRestart(t *testing.T) {
	c, coordinator := taughtBroker(t)
	a := startStreams(t, c, "g", "m-20", "t", "u")
	b := startStreams(t, c, "g", "m-21", "t", "u")
	eventually(t, "half each", func() bool { return a.tasks() == 5 && b.tasks() == 5 })
	had := b.Held().Active
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	again := startStreams(t, c, "g", "m-21", "t", "u")
	eventually(t, "b is back", func() bool { return again.tasks() == 5 })
	assign.Sort(had)
	got := again.Held().Active
	assign.Sort(got)
	if !slices.Equal(had, got) {
		t.Errorf("b had %v and came back to %v", had, got)
	}
	if err := again.end(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a has all", func() bool { return a.tasks() == 10 })
	if members := coordinator.Members("g"); len(members) != 1 {
		t.Errorf("members: %v", members)
	}
}

// A member that is thrown out drops everything, and joins again.
func TestStreamsFenced(t *testing.T) {
	for _, cause := range []error{kerr.UnknownMemberID, kerr.FencedMemberEpoch, kerr.GroupIDNotFound} {
		c, coordinator := taughtBroker(t)
		a := startStreams(t, c, "g", "m-30", "t")
		eventually(t, "a has all", func() bool { return a.tasks() == 6 })
		coordinator.Fence("m-30", cause)
		eventually(t, "a was told", func() bool { return len(a.losses()) == 1 })
		if !errors.Is(a.losses()[0], cause) {
			t.Errorf("a lost its place because of %v, want %v", a.losses()[0], cause)
		}
		eventually(t, "a has all again", func() bool { return a.tasks() == 6 })
	}
}

// Answers that are lost are asked for again: nothing is lost, and no task is in two places.
func TestStreamsLostReplies(t *testing.T) {
	c, coordinator := taughtBroker(t)
	coordinator.LoseReplies(2) // also of the first join
	a := startStreams(t, c, "g", "m-40", "t", "u")
	eventually(t, "a has all", func() bool { return a.tasks() == 10 })
	for range 3 {
		coordinator.LoseReplies(1)
		b := startStreams(t, c, "g", "m-41", "t", "u")
		eventually(t, "b has its half", func() bool { return b.tasks() == 5 })
		eventually(t, "and a the other", func() bool { return a.tasks() == 5 })
		coordinator.LoseReplies(1)
		if err := b.end(); err != nil {
			t.Fatal(err)
		}
		coordinator.LoseReplies(0)
		if err := b.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a has all again", func() bool { return a.tasks() == 10 })
	}
}

// What only a person can mend ends Run, and says what to do.
func TestStreamsRefusals(t *testing.T) {
	for _, c := range []struct {
		answer error
		advice string
	}{
		{kerr.InvalidRequest, "brokers don't change the topology"},
		{kerr.StreamsInvalidTopology, "brokers don't change the topology"},
		{kerr.StreamsTopologyFenced, "newer version of the topology"},
		{kerr.GroupIDNotFound, "members of another protocol"},
		{kerr.GroupAuthorizationFailed, "READ on the group"},
		{kerr.TopicAuthorizationFailed, "DESCRIBE on the topics"},
		{kerr.GroupMaxSizeReached, "group.max.size"},
		{kerr.UnsupportedVersion, "use the classic protocol"},
	} {
		cluster, coordinator := taughtBroker(t)
		coordinator.Refuse(c.answer)
		a := startStreams(t, cluster, "g", "m-50", "t")
		select {
		case <-a.ended:
		case <-time.After(waitLimit):
			t.Fatalf("%v doesn't end the membership", c.answer)
		}
		err := a.end()
		var fatal *FatalError
		if !errors.As(err, &fatal) || !errors.Is(err, c.answer) || !strings.Contains(err.Error(), c.advice) {
			t.Errorf("%v: %v, want advice with %q", c.answer, err, c.advice)
		}
	}
	cluster, coordinator := taughtBroker(t)
	coordinator.Refuse(kerr.CoordinatorLoadInProgress)
	a := startStreams(t, cluster, "g", "m-51", "t")
	time.Sleep(100 * time.Millisecond)
	coordinator.Refuse(nil)
	eventually(t, "it is tried again while the coordinator loads", func() bool { return a.tasks() == 6 })
}

// A status that asks the application to stop ends Run; others are said, and pass.
func TestStreamsStatus(t *testing.T) {
	c, coordinator := taughtBroker(t)
	a := startStreams(t, c, "g", "m-60", "t")
	coordinator.SetStatus(missingSourceTopics, "t is missing")
	eventually(t, "a has all", func() bool { return a.tasks() == 6 })
	coordinator.SetStatus(0, "")
	coordinator.SetStatus(shutdownRequested, "member m-99 has failed")
	eventually(t, "Run has ended", func() bool { return len(a.losses()) == 1 })
	err := a.end()
	var status *StatusError
	if !errors.As(err, &status) || status.Code != shutdownRequested || !strings.Contains(err.Error(), "m-99") {
		t.Errorf("the application was asked to stop: %v", err)
	}
}

// Statuses about topics are given time, then end the membership with advice.
func TestStreamsStatusPatience(t *testing.T) {
	for _, code := range []int8{missingSourceTopics, wronglyPartitioned, missingInternalTopics} {
		if advice := statusAdvice(code, patience-1); advice != "" {
			t.Errorf("%s: advice at once: %s", statusName(code), advice)
		}
		if advice := statusAdvice(code, patience); advice == "" {
			t.Errorf("%s: no advice after %v", statusName(code), patience)
		}
	}
	if advice := statusAdvice(assignmentDelayed, time.Hour); advice != "" {
		t.Errorf("a delayed assignment ends the membership: %s", advice)
	}
}

// Commits are checked by the member's id and epoch: a member that was thrown out can't commit.
func TestStreamsCommits(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		if c.Embedded != nil {
			c.TeachStreams(t, 3*time.Second, 50*time.Millisecond)
		}
		id := c.CreateTopic(t, "streams-commits-t", 2)
		a := startStreams(t, c, "streams-commits", "m-70", "streams-commits-t")
		eventually(t, "a has all", func() bool { return a.tasks() == 2 })
		m, _ := a.Member()
		position := []offsets.Position{{Partition: offsets.Partition{Topic: "streams-commits-t", ID: id, Partition: 1}, Offset: 7}}
		client := c.Client(t)
		if err := offsets.Commit(t.Context(), client, "streams-commits", m, position); err != nil {
			t.Fatal(err)
		}
		found, err := offsets.Fetch(t.Context(), client, "streams-commits", []offsets.Partition{position[0].Partition})
		if err != nil || found[0].Offset != 7 {
			t.Errorf("committed 7, found %v, %v", found, err)
		}
		for _, stranger := range []offsets.Member{{ID: "m-71", Generation: m.Generation}, {ID: m.ID, Generation: m.Generation + 1}} {
			if err := offsets.Commit(t.Context(), client, "streams-commits", stranger, position); !offsets.LostMembership(err) {
				t.Errorf("%+v committed: %v", stranger, err)
			}
		}
	})
}

// An assignment whose answer was lost is looked up: coordinators tell it once.
func TestStreamsLostAssignment(t *testing.T) {
	c, coordinator := taughtBroker(t)
	a := startStreams(t, c, "g", "m-80", "t")
	b := startStreams(t, c, "g", "m-81", "t")
	eventually(t, "half each", func() bool { return a.tasks() == 3 && b.tasks() == 3 })
	coordinator.LoseAssignment()
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	if err := b.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a has all", func() bool { return a.tasks() == 6 })
	if coordinator.LosesAssignment() {
		t.Error("no assignment was lost")
	}
}
