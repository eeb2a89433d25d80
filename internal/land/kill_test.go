package land

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/verify"
	"github.com/tributary-io/tributary/schemas"
)

// childVariable makes the test binary an instance: it holds brokers, registry, lake, state and topics.
const childVariable = "TRIBUTARY_TEST_LAND"

func runChild() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p := strings.Split(os.Getenv(childVariable), "\n")
	var streams []Stream
	for topic := range strings.SplitSeq(p[4], ",") {
		stream, err := Of(schemas.Stream{Topic: topic, Schema: small, Partitions: 2})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		streams = append(streams, stream)
	}
	cfg := Config{Brokers: strings.Split(p[0], ","), Registry: p[1], Lake: p[2], State: p[3], Streams: streams, Log: slog.Default()}
	if len(streams) == 1 { // that one is killed: its tasks have to move soon
		cfg.Engine = []engine.Option{engine.SessionTimeout(1200 * time.Millisecond), engine.RebalanceTimeout(2 * time.Second)}
	}
	cfg.Batch = BatchLimits{Every: 150 * time.Millisecond, Rows: 300}
	if err := cfg.Environment(func(string) string { return "" }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := Open(ctx, cfg)
	if err == nil {
		err = s.Run(ctx)
		s.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (w *world) child(t *testing.T, topic, name string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+strings.Join([]string{strings.Join(w.cfg.Brokers, ","), w.cfg.Registry, w.cfg.Lake, filepath.Join(t.TempDir(), name), topic}, "\n"))
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill() // it may have ended
		c.Wait()
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
	return c
}

// TestKilledInstancesLandOnce kills an instance again and again while rows come, has another share the work, and ends both in good order.
func TestKilledInstancesLandOnce(t *testing.T) {
	w := newWorld(t, nil, "")
	s := testStream(t, "ods.shop.killed", small)
	w.cfg.Streams = []Stream{s}
	first, err := Open(t.Context(), w.cfg) // makes topic and subject
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	id := w.id(t, &s)
	const records = 6000
	emitted := make(chan error, 1)
	go func() {
		for n := range int64(records) {
			v := smallValue(id, n)
			if n%1000 == 999 {
				v = []byte("bad")
			}
			w.client.Produce(t.Context(), &kgo.Record{Topic: s.Topic, Partition: int32(n % 2), Value: v}, nil)
			if n%10 == 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		emitted <- w.client.Flush(t.Context())
	}()
	steady := w.child(t, s.Topic, "steady")
	for range 3 {
		victim := w.child(t, s.Topic, "victim")
		time.Sleep(900 * time.Millisecond)
		if err := victim.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		victim.Wait()
	}
	if err := <-emitted; err != nil {
		t.Fatal(err)
	}
	last := w.child(t, s.Topic, "last")
	eventually(t, "landed", func() bool { return len(w.rows(t, &s)) >= records-records/1000 })
	for _, c := range []*exec.Cmd{steady, last} {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("ended by SIGTERM: %v", err)
		}
	}
	r, err := verify.Table(t.Context(), verify.Config{Table: w.cfg.TablePlace(&s), Topic: s.Topic, DeadLetters: s.DeadLetters, Client: []kgo.Opt{kgo.SeedBrokers(w.cfg.Brokers...)}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Records != records || r.DeadLettered != records/1000 {
		t.Errorf("verify: %+v", r)
	}
}
