package engine

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// An instance whose heartbeats aren't taken for the session timeout can't know that its tasks are still its own: it isn't ready, and says so.
func TestNotReadyWithoutHeartbeats(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "unheard")
	a.create("in", 1)
	a.create("out", 1)
	lines := &logLines{}
	i := a.start(counts(a.name), "i1", Logger(slog.New(slog.NewTextHandler(lines, nil))), HTTP("127.0.0.1:0"))
	running := func(s Stats) bool { return s.State == Running }
	i.await(t, "runs", running)
	if line := lines.first("msg=running"); !strings.Contains(line, "tasks=2") {
		t.Errorf("the log says of that: %q", line)
	}
	if line := lines.first("HTTP listens"); !strings.Contains(line, i.HTTPAddr()) {
		t.Errorf("the log says of HTTP: %q", line)
	}
	silent := a.c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.CoordinatorLoadInProgress, Count: -1})
	defer silent.Remove()
	i.await(t, "isn't ready", func(s Stats) bool { return s.State == Recovering && strings.Contains(s.Reason, "heartbeat") })
	if age := serves(t, i)["tributary_heartbeat_age_seconds"]; age < 5.5 { // the session timeout is 6 s
		t.Errorf("the last heartbeat is %v s old", age)
	}
	resp, err := http.Get("http://" + i.HTTPAddr() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "no heartbeat was taken since") {
		t.Errorf("/readyz: %d %s %v", resp.StatusCode, text, err)
	}
	silent.Remove()
	i.await(t, "runs again", running)
	contains(t, "begins", lines.first("no heartbeat was taken"), "level=WARN")
	contains(t, "ends", lines.first("answers again"), "level=INFO", "after=")
	i.stop(t)
}

// chosen is a topology whose records choose their topic.
func chosen(a *app) *topology.Plan {
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.String).ToDynamic(func(string, string) string { return a.topic("out") })
	return build(b)
}

// Brokers that don't say a topic's limits hold up neither the first record to a topic that the topology names, since these are known by then, nor
// a close; and that they didn't is no error.
func TestLimitsThatCantBeRead(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "limits")
	a.create("in", 1)
	a.create("out", 1)
	cluster := a.c.Embedded.Cluster()
	asked := make(chan struct{}, 1000)
	unanswered := func() {
		cluster.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			select {
			case asked <- struct{}{}:
			default:
			}
			return nil, io.ErrUnexpectedEOF, true // cuts the connection
		})
	}
	running := func(s Stats) bool { return s.State == Running }
	copied := topology.NewBuilder(a.name)
	copied.Stream(a.topic("in"), serde.String, serde.String).To(a.topic("out"))
	out := a.read("out")
	i := a.start(build(copied), "i1")
	i.await(t, "runs", running)
	unanswered()
	a.produce("in", 1, "v")
	eventually(t, "written", func() bool { return len(out.all()) == 1 })
	if len(asked) > 0 {
		t.Error("the limit of a topic that the topology names was asked for with its first record")
	}
	i.stop(t)

	a.name += "chosen" // another application
	a.create("in", 1)
	a.create("out", 1)
	i = a.start(chosen(a), "i1", CloseTimeout(2*waitLimit)) // the test doesn't wait for as long as a close may
	i.await(t, "runs", running)
	a.produce("in", 1, "v")
	<-asked
	i.cancel()
	if err := i.failure(t); !errors.As(err, new(*UncommittedError)) {
		t.Errorf("Run: %v, want an error that says that the record's work is done again", err)
	}
}

func TestResetNeedsBrokers(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "nobrokers")
	if _, err := ResetApplication(t.Context(), counts(a.name), ResetOptions{}); err == nil || !strings.Contains(err.Error(), "Brokers") {
		t.Errorf("without brokers: %v", err)
	}
	for _, opts := range []ResetOptions{{Brokers: a.c.Addrs}, {Client: []kgo.Opt{kgo.SeedBrokers(a.c.Addrs...)}}} {
		if _, err := ResetApplication(t.Context(), counts(a.name), opts); err != nil {
			t.Errorf("with brokers: %v", err)
		}
	}
}

func TestNoPlan(t *testing.T) {
	if _, err := New(nil, Brokers("localhost:9092")); err == nil || !strings.Contains(err.Error(), "Build") {
		t.Errorf("got %v", err)
	}
}
