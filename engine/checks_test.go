package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

func build(b *topology.Builder) *topology.Plan {
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}

// What is wrong with the topics is found before anything is read, all of it, with advice.
func TestTopicsAreCheckedAtStart(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "checks")
	handlers := processors.Handlers{Processing: processors.DeadLetterOnError("nosuch.dead"), DroppedTopic: "nosuch.dropped"}
	err := a.start(counts(a.name), "i1", ErrorHandlers(handlers)).failure(t)
	var missing *plan.MissingTopicsError
	var sinks *MissingSinksError
	if !errors.As(err, &missing) || !errors.As(err, &sinks) || len(sinks.Topics) != 1 {
		t.Fatalf("got %v, want both the missing input and the missing output", err)
	}
	if want := []string{"nosuch.dead", "nosuch.dropped"}; !slices.Equal(sinks.Handlers, want) || !strings.Contains(err.Error(), "dead letters") {
		t.Errorf("got %v: want %v as well", err, want)
	}

	a.create("left", 4)
	a.create("right", 6)
	a.create("joined", 1)
	b := topology.NewBuilder(a.name)
	right := b.Table(a.topic("right"), serde.String, serde.String, topology.Store("right"))
	b.Stream(a.topic("left"), serde.String, serde.String).
		Join(right, func(l, r string) string { return l + r }).To(a.topic("joined"))
	err = a.start(build(b), "i1").failure(t)
	var copartition *plan.CopartitionError
	if !errors.As(err, &copartition) || !strings.Contains(err.Error(), "has 4") || !strings.Contains(err.Error(), "has 6") {
		t.Fatalf("got %v, want the numbers of both topics", err)
	}
}

// What brokers take long for shows in the state meanwhile.
func TestTroubleShowsWhileBrokersTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]int{time.Second: 0, time.Minute: 1} {
			shown := 0
			err := patiently(func() { shown++ }, func() error { time.Sleep(took); return errors.New("done") })
			if err == nil || err.Error() != "done" || shown != want {
				t.Errorf("after %v: shown %d times, want %d; %v", took, shown, want, err)
			}
		}
	})
}

func TestStateDirectoryInUse(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "inuse")
	a.create("in", 1)
	a.create("out", 1)
	i := a.start(counts(a.name), "i1")
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	if err := a.start(counts(a.name), "i1").failure(t); !strings.Contains(err.Error(), "in use") {
		t.Fatalf("got %v", err)
	}
	i.stop(t)
}

// Retention that overtook the application is an error with the numbers, unless a policy says otherwise.
func TestOvertakenByRetention(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "retention")
		a.create("in", 1)
		a.create("out", 1)
		a.produce("in", 1, numbered(10, 10)...)
		out := a.read("out")
		i := a.start(counts(a.name), "i1")
		eventually(t, "counted", func() bool { return total(out.lastCounts()) == 10 })
		i.stop(t)
		a.produce("in", 1, numbered(10, 10)...)
		cut := kadm.Offsets{}
		cut.AddOffset(a.topic("in"), 0, 15, -1)
		if _, err := kadm.NewClient(a.c.Client(t)).DeleteRecords(t.Context(), cut); err != nil {
			t.Fatal(err)
		}
		err := a.start(counts(a.name), "i1").failure(t)
		var overtaken *OffsetOutOfRangeError
		if !errors.As(err, &overtaken) || overtaken.Committed != 10 || overtaken.Start != 15 {
			t.Fatalf("got %v, want offsets 10 and 15", err)
		}
		i = a.start(counts(a.name), "i1", OutOfRange(Earliest))
		eventually(t, "the rest counted", func() bool { return total(out.lastCounts()) == 15 })
		i.stop(t)
	})
}

// broken is a topology whose function panics at one value and fails at another.
func broken(name string) *topology.Plan {
	b := topology.NewBuilder(name)
	b.Stream(name+"-in", serde.String, serde.Int64).
		TryMapValues(func(_ string, v int64) (int64, error) {
			switch v {
			case 13:
				panic("unlucky")
			case 14:
				return 0, errors.New("just no")
			}
			return v, nil
		}, topology.Name("picky")).
		To(name + "-out")
	return build(b)
}

func (a *app) produceNumbers(values ...any) {
	a.t.Helper()
	client := a.c.Client(a.t, kgo.DefaultProduceTopic(a.topic("in")))
	for i, v := range values {
		r := &kgo.Record{Key: []byte(fmt.Sprint("k", i))}
		switch v := v.(type) {
		case int:
			r.Value = binary.BigEndian.AppendUint64(nil, uint64(v))
		case string:
			r.Value = []byte(v)
		}
		if err := client.ProduceSync(a.t.Context(), r).FirstErr(); err != nil {
			a.t.Fatal(err)
		}
	}
}

// Dead letters are written in the same transaction, with the original bytes and the reason.
func TestDeadLetters(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "dead")
		a.create("in", 1)
		a.create("out", 1)
		a.create("letters", 1)
		a.produceNumbers(1, "short", 13, 14, nil, 2)
		out, letters := a.read("out"), a.read("letters")
		to := processors.DeadLetterOnError(a.topic("letters"))
		i := a.start(broken(a.name), "i1", ErrorHandlers(processors.Handlers{Deserialization: to, Processing: to}))
		eventually(t, "both good records", func() bool { return len(out.all()) == 2 })
		eventually(t, "four dead letters", func() bool { return len(letters.all()) == 4 })
		i.stop(t)
		header := func(r *kgo.Record, key string) string {
			for _, h := range r.Headers {
				if h.Key == key {
					return string(h.Value)
				}
			}
			return ""
		}
		for n, want := range []string{"value", "unlucky", "just no", "null"} {
			r := letters.all()[n]
			if msg := header(r, processors.HeaderErrorMessage); !strings.Contains(msg, want) || header(r, processors.HeaderErrorOffset) != fmt.Sprint(n+1) {
				t.Errorf("letter %d: offset %s, %q; want %q", n, header(r, processors.HeaderErrorOffset), msg, want)
			}
		}
		if got := letters.all()[0]; string(got.Value) != "short" || string(got.Key) != "k1" {
			t.Errorf("the original bytes: %q %q", got.Key, got.Value)
		}
		dropped := 0
		for _, d := range i.Stats().Dropped {
			dropped += int(d.Count)
		}
		if dropped != 4 {
			t.Errorf("%d dropped records counted, want 4: %+v", dropped, i.Stats().Dropped)
		}
	})
}

// By default the instance stops at the first failure, with an error that says where; nothing of the failing record is seen.
func TestFailureStopsTheInstance(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "fail")
	a.create("in", 1)
	a.create("out", 1)
	a.produceNumbers(1, 2, 13, 3)
	i := a.start(broken(a.name), "i1", CommitInterval(10*time.Millisecond))
	err := i.failure(t)
	for _, want := range []string{"task 0_0", "picky", a.topic("in") + "-0 offset 2", "unlucky"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: lacks %q", err, want)
		}
	}
	if n := strings.Count(err.Error(), "task 0_0"); n != 1 {
		t.Errorf("%v: names the task %d times", err, n)
	}
	if s, _ := i.states.get(); s != Failed {
		t.Errorf("state %v", s)
	}
}

func TestGlobalTable(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "global")
		a.create("in", 2)
		a.create("names", 3)
		a.create("out", 1)
		a.produce("names", 3, "zero", "one", "two") // k0, k1, k2
		plan := func() *topology.Plan {
			b := topology.NewBuilder(a.name)
			names := b.GlobalTable(a.topic("names"), serde.String, serde.String, topology.Store("names"))
			b.Stream(a.topic("in"), serde.String, serde.String).
				LeftJoinGlobal(names, func(_, v string) string { return v }, func(v string, name *string) string {
					if name == nil {
						return v + "=?"
					}
					return v + "=" + *name
				}).To(a.topic("out"))
			return build(b)
		}
		out := a.read("out")
		seen := func(want string) func() bool {
			return func() bool {
				for _, r := range out.all() {
					if string(r.Value) == want {
						return true
					}
				}
				return false
			}
		}
		a.produce("in", 2, "k0", "k2", "k9")
		i := a.start(plan(), "i1")
		for _, want := range []string{"k0=zero", "k2=two", "k9=?"} {
			eventually(t, want, seen(want))
		}
		a.produce("names", 3, "ZERO")
		eventually(t, "the update", func() bool { a.produce("in", 2, "k0"); return seen("k0=ZERO")() })
		i.stop(t)
		i = a.start(plan(), "i1") // from its own database
		a.produce("in", 2, "k1")
		eventually(t, "after a restart", seen("k1=one"))
		i.stop(t)
	})
}

func TestAtLeastOnce(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "atleast")
		a.create("in", 2)
		a.create("out", 1)
		out := a.read("out")
		for round := range 2 {
			a.produce("in", 2, numbered(500, 5)...)
			i := a.start(counts(a.name), "i1", Processing(AtLeastOnce))
			eventually(t, "counted", func() bool { return total(out.lastCounts()) == int64(500*(round+1)) })
			i.stop(t)
		}
	})
}

func TestHealthAndMetrics(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "http")
	a.create("in", 1)
	a.create("out", 1)
	var states []State
	i := a.start(counts(a.name), "i1", HTTP("127.0.0.1:0"), OnState(func(s State) { states = append(states, s) }))
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + i.HTTPAddr() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		defer http.DefaultClient.CloseIdleConnections()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	i.await(t, "listens", func(Stats) bool { return i.HTTPAddr() != "" })
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("healthz while it starts: %d", code)
	}
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	a.produce("in", 1, numbered(100, 3)...)
	i.await(t, "all processed", func(s Stats) bool { return s.Processed == 200 && s.Lag == 0 })
	if code, body := get("/readyz"); code != 200 || !strings.HasPrefix(body, "running") {
		t.Errorf("readyz: %d %q", code, body)
	}
	_, metrics := get("/metrics")
	for _, want := range []string{`tributary_processed_records_total{application="http"} 200`, `tributary_state{application="http",state="running"} 1`,
		`tributary_input_lag_records{application="http",partition="0",topic="http-in"} 0`, `tributary_input_holds_back_seconds{application="http",partition="0",topic="http-in"} 0`,
		`tributary_input_time_seconds{application="http",partition="0",topic="http-in"}`, "tributary_commit_duration_seconds_count"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	i.stop(t)
	if got := fmt.Sprint(states); got != "[starting rebalancing running draining stopped]" {
		t.Errorf("states: %v", got)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := New(counts("options"), Workers(0), CommitInterval(time.Minute), StateDir(""))
	for _, want := range []string{"brokers", "state directory", "workers", "commit interval"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: lacks %q", err, want)
		}
	}
	if _, err := New(counts("options"), Brokers("http://localhost:9092")); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Errorf("a URL as a broker: %v", err)
	}
	if _, err := New(build(topology.NewBuilder("nothing")), Brokers("localhost:9092")); err == nil || !strings.Contains(err.Error(), "reads no topic") {
		t.Errorf("a topology without a source: %v", err)
	}
}

// An instance may be started before its brokers, and asked to end before they come.
func TestEndsWhileItWaitsForBrokers(t *testing.T) {
	e, err := New(counts("early"), Brokers("127.0.0.1:1"), StateDir(t.TempDir()), Logger(testLog(t, "i1")))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := e.Run(ctx); err != nil {
		t.Fatalf("got %v, want nil: it was asked to end", err)
	}
	if err := e.Run(ctx); err == nil {
		t.Fatal("Run ran twice")
	}
}

// An error that a handler could let go says which one.
func TestTaskErrorsNameTheirHandler(t *testing.T) {
	unreadable := &processors.DeserializationError{What: "value", Topic: "in", Err: errors.New("no JSON")}
	for want, err := range map[string]error{
		"Handlers.Deserialization": fmt.Errorf("node a: %w", unreadable),
		"Handlers.Processing":      &processors.ProcessingError{Node: "a", Err: errors.New("boom")},
		"Handlers.Production":      &processors.SerializationError{What: "key", Topic: "out", Err: errors.New("too long")},
	} {
		if got := (&TaskError{"0_0", err}).Error(); !strings.Contains(got, want) {
			t.Errorf("%s: lacks %s", got, want)
		}
	}
	if got := (&TaskError{"0_0", errors.New("the disk is gone")}).Error(); strings.Contains(got, "Handlers") {
		t.Errorf("no handler is asked: %s", got)
	}
}
