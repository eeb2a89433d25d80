package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) { realkafka.Main(m) }

// roll is a handler that assigns every member the list of all members' metadata, and keeps what it is told.
type roll struct {
	name string

	mu       sync.Mutex
	assigned []string
	lost     []error
	unheard  []time.Time
	joins    int
}

func (r *roll) BeforeJoin(context.Context) { r.mu.Lock(); r.joins++; r.mu.Unlock() }
func (r *roll) Metadata() Metadata {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Metadata{Topics: []string{"t"}, Data: []byte(r.name)}
}
func (r *roll) Assign(_ context.Context, members map[string][]byte) (map[string]Assignment, error) {
	var names []string
	for _, m := range members {
		names = append(names, string(m))
	}
	slices.Sort(names)
	out := map[string]Assignment{}
	for i, id := range slices.Sorted(maps.Keys(members)) {
		out[id] = Assignment{Partitions: map[string][]int32{"t": {int32(i)}}, Data: []byte(strings.Join(names, " "))}
	}
	return out, nil
}
func (r *roll) Assigned(data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.assigned = append(r.assigned, string(data))
	return nil
}
func (r *roll) Unheard(since time.Time, _ error) {
	r.mu.Lock()
	r.unheard = append(r.unheard, since)
	r.mu.Unlock()
}
func (r *roll) Lost(cause error) { r.mu.Lock(); r.lost = append(r.lost, cause); r.mu.Unlock() }

func (r *roll) joined() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.joins
}

func (r *roll) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.assigned) == 0 {
		return ""
	}
	return r.assigned[len(r.assigned)-1]
}

// waitLimit is how long tests wait for what comes within moments, unless the machine is busy.
const waitLimit = 2 * time.Minute

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(waitLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("not within %v: %s", waitLimit, what)
}

// running is a member whose Run goes on in a goroutine.
type running struct {
	*Classic
	*roll
	stop func() error // ends Run without leaving
}

func start(t *testing.T, c *brokertest.Cluster, group, name string) *running {
	t.Helper()
	return startFor(t, c, group, name, 3*time.Second)
}

// startFor starts a member with a session of a given length.
func startFor(t *testing.T, c *brokertest.Cluster, group, name string, session time.Duration) *running {
	t.Helper()
	return startWith(t, Config{Client: c.Client(t), Group: group, InstanceID: "i-" + name, SessionTimeout: session,
		RebalanceTimeout: 5 * time.Second, Heartbeat: 100 * time.Millisecond}, name)
}

func startWith(t *testing.T, cfg Config, name string) *running {
	t.Helper()
	h := &roll{name: name}
	cfg.Logger = slog.New(slog.DiscardHandler)
	m := NewClassic(cfg, h)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { stop() })
	return &running{m, h, stop}
}

func TestMembersComeAndGo(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		const session = 5 * time.Minute // half of it is longer than eventually waits
		a := startFor(t, c, "come-and-go", "a", session)
		eventually(t, "a alone", func() bool { return a.last() == "a" })
		b := startFor(t, c, "come-and-go", "b", session)
		eventually(t, "a and b", func() bool { return a.last() == "a b" && b.last() == "a b" })
		if am, _ := a.Member(); am.InstanceID == nil || *am.InstanceID != "i-a" || am.ID == "" {
			t.Fatalf("a commits as %+v", am)
		}

		// A tool sees the members and their partitions.
		groups, err := kadm.NewClient(c.Client(t)).DescribeGroups(t.Context(), "come-and-go")
		described := groups["come-and-go"]
		if parts := described.AssignedPartitions(); err != nil || len(parts["t"]) != 2 {
			t.Fatalf("describe: %v, %v", groups, err)
		}

		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := b.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a alone again", func() bool { return a.last() == "a" })
		if took := time.Since(start); took > session/2 {
			t.Errorf("the others noticed the leave after %v, want no wait for the session", took)
		}
		if len(a.lost) > 0 {
			t.Errorf("a lost its place: %v", a.lost)
		}
	})
}

// A static member that dies and comes back takes its own assignment, and the others don't notice.
func TestRestartTakesItsOwnPlace(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		const session = 5 * time.Minute // half of it is longer than eventually waits
		a := startFor(t, c, "restart", "a", session)
		b := startFor(t, c, "restart", "b", session)
		eventually(t, "a and b", func() bool { return a.last() == "a b" && b.last() == "a b" })
		for _, m := range []*running{a, b} { // one of them leads
			before, _ := m.Member()
			joins := map[*running]int{a: a.joined(), b: b.joined()}
			if err := m.stop(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			again := startFor(t, c, "restart", m.name, session)
			eventually(t, m.name+" is back", func() bool { return again.last() == "a b" })
			if took := time.Since(began); took > session/2 {
				t.Errorf("%s was back after %v", m.name, took)
			}
			now, _ := again.Member()
			if now.Generation != before.Generation || now.ID == before.ID {
				t.Errorf("%s: was %+v, is %+v; want another member id in the same generation", m.name, before, now)
			}
			for other, n := range joins {
				if other != m && other.joined() != n {
					t.Errorf("%s joined again", other.name)
				}
			}
		}
	})
}

// A member that is silent for longer than its session is told that it lost everything, can't commit, and joins again.
func TestSilentMemberLosesItsPlace(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		id := c.CreateTopic(t, "silent", 1)
		client := c.Client(t)
		a := start(t, c, "silent", "a")
		eventually(t, "a", func() bool { return a.last() == "a" })
		zombie, _ := a.Member()
		if err := a.stop(); err != nil { // its process hangs
			t.Fatal(err)
		}
		b := start(t, c, "silent", "b")
		eventually(t, "b alone", func() bool { return b.last() == "b" })
		err := offsets.Commit(t.Context(), client, "silent", zombie, []offsets.Position{{Partition: offsets.Partition{Topic: "silent", ID: id}, Offset: 1}})
		if !offsets.LostMembership(err) {
			t.Fatalf("the zombie's commit: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		a.memberID = zombie.ID // it goes on where it was
		go func() {
			done <- func() error { a.Classic.refused(a.heartbeat(ctx, zombie.Generation)); return a.Run(ctx) }()
		}()
		eventually(t, "a is back", func() bool { return a.last() == "a b" })
		cancel()
		<-done
		if len(a.lost) != 1 || !errors.Is(a.lost[0], kerr.UnknownMemberID) {
			t.Errorf("a was told %v, want one loss", a.lost)
		}
	})
}

// A coordinator that is busy answers a join later than the group's timeouts say. Who gives the join up too early joins once more behind it, which makes the
// group begin anew, for all members: under load they never come together.
func TestJoinWaitsForABusyCoordinator(t *testing.T) {
	c := brokertest.Embedded(t)
	cluster := c.Embedded.Cluster()
	cluster.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.SleepControl(func() { time.Sleep(3500 * time.Millisecond) })
		return nil, nil, false
	})
	m := startWith(t, Config{Client: c.Client(t), Group: "busy", InstanceID: "i-a", SessionTimeout: 2500 * time.Millisecond, RebalanceTimeout: 500 * time.Millisecond,
		Heartbeat: 50 * time.Millisecond}, "a")
	eventually(t, "a", func() bool { return m.last() == "a" })
	if n := m.joined(); n != 1 {
		t.Errorf("joined %d times", n)
	}
}

// Two processes with one identity: the one that came first is told what is wrong, and stops.
func TestSameIdentityIsFatal(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		h := &roll{name: "a"}
		m := NewClassic(Config{Client: c.Client(t), Group: "twins", InstanceID: "i-a", SessionTimeout: 3 * time.Second,
			RebalanceTimeout: 5 * time.Second, Heartbeat: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}, h)
		done := make(chan error, 1)
		go func() { done <- m.Run(t.Context()) }()
		eventually(t, "the first", func() bool { return h.last() == "a" })
		start(t, c, "twins", "a")
		select {
		case err := <-done:
			var fatal *FatalError
			if !errors.As(err, &fatal) || !strings.Contains(err.Error(), "state directory") {
				t.Fatalf("got %v", err)
			}
		case <-time.After(waitLimit):
			t.Fatal("the first goes on")
		}
	})
}

func TestRejoinTellsTheOthers(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		var members []*running
		for i := range 3 {
			members = append(members, start(t, c, "rejoin", fmt.Sprint("m", i)))
		}
		eventually(t, "all", func() bool { return members[0].last() == "m0 m1 m2" && members[2].last() == "m0 m1 m2" })
		for _, m := range members {
			m.mu.Lock()
			m.name += "x"
			m.mu.Unlock()
			m.Rejoin()
			eventually(t, "the new metadata of "+m.name, func() bool { return strings.Contains(members[0].last(), m.name) })
		}
	})
}
