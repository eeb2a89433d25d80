package land

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/verify"
	_ "github.com/tributary-io/tributary/lake/object/s3store"
	"github.com/tributary-io/tributary/lake/object/storetest"
	"github.com/tributary-io/tributary/schemas"
)

// instanceRole is what the test binary is as a child: an instance of the program.
const instanceRole = "instance"

type instanceArgs struct {
	Brokers               []string
	Registry, Lake, State string
	Topics                []string
	Group                 string      // empty: the default
	Partitions            int32       // 0: 2
	Batch                 BatchLimits // zero: small ones
}

func runInstance(ctx context.Context, args instanceArgs) error {
	var streams []Stream
	for _, topic := range args.Topics {
		stream, err := Of(schemas.Stream{Topic: topic, Schema: small, Partitions: cmp.Or(args.Partitions, 2)})
		if err != nil {
			return err
		}
		streams = append(streams, stream)
	}
	cfg := Config{Brokers: args.Brokers, Registry: args.Registry, Lake: args.Lake, Group: args.Group, State: args.State, Streams: streams, Log: slog.Default(), Memory: DefaultMemory}
	if len(streams) == 1 { // that one is killed: its tasks have to move soon
		cfg.Engine = []engine.Option{engine.SessionTimeout(3 * time.Second), engine.RebalanceTimeout(5 * time.Second)}
	}
	cfg.Batch = cmp.Or(args.Batch, BatchLimits{Every: 150 * time.Millisecond, Rows: 300})
	if err := cfg.Environment(func(string) string { return "" }); err != nil {
		return err
	}
	s, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Run(ctx)
}

func (w *world) child(t *testing.T, name string, topics ...string) *child.Process {
	t.Helper()
	return w.childWith(t, name, instanceArgs{Brokers: w.cfg.Brokers, Registry: w.cfg.Registry, Lake: w.cfg.Lake, Topics: topics})
}

// childWith starts an instance, with a folder of its own for its state.
func (w *world) childWith(t *testing.T, name string, args instanceArgs) *child.Process {
	t.Helper()
	args.State = filepath.Join(t.TempDir(), name)
	p, err := child.Start(instanceRole, args, args.State+".log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			text := p.Log()
			t.Logf("%s:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
	return p
}

// TestKilledInstancesLandOnce kills an instance again and again while rows come, has another share the work, and ends both in good order.
func TestKilledInstancesLandOnce(t *testing.T) { killedLandOnce(t, newWorld(t, nil, "")) }

// TestKilledInstancesLandOnceOnS3 is the same with the table behind an S3 gateway, whose conditional requests are all that keeps instances apart.
func TestKilledInstancesLandOnceOnS3(t *testing.T) {
	w := newWorld(t, nil, "")
	w.cfg.Lake = storetest.Gateway(t).String()
	killedLandOnce(t, w)
}

func killedLandOnce(t *testing.T, w *world) {
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
	steady := w.child(t, "steady", s.Topic)
	for range 3 {
		victim := w.child(t, "victim", s.Topic)
		time.Sleep(900 * time.Millisecond)
		victim.Kill()
	}
	if err := <-emitted; err != nil {
		t.Fatal(err)
	}
	last := w.child(t, "last", s.Topic)
	eventually(t, "landed", func() bool { return len(w.rows(t, &s)) >= records-records/1000 })
	for _, c := range []*child.Process{steady, last} {
		if err := c.Stop(4 * time.Minute); err != nil {
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
