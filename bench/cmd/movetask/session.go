package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// The application has one task, which keeps the last value of each key, and passes probes on.
const (
	application = "movetask"
	task        = "0_0"
	inTopic     = "movetask-in"
	outTopic    = "movetask-out"
	probeKey    = "probe"
)

// session is a broker, the instances, and the probes.
type session struct {
	opts    options
	cluster *realkafka.Cluster
	client  *kgo.Client
	dir     string
	holder  *instance // has the task
	all     []*instance
	probes  *probes
}

func begin(ctx context.Context, o options) (s *session, err error) {
	s = &session{opts: o}
	if s.dir, err = os.MkdirTemp("", "tributary-movetask-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}()
	say("starting Kafka %s", realkafka.Version())
	if s.cluster, err = realkafka.Launch(1, []string{"-Xmx" + o.heap}, map[string]string{"log.retention.ms": "-1"}); err != nil {
		return s, err
	}
	s.client, err = kgo.NewClient(kgo.SeedBrokers(s.cluster.Addrs()...), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(900<<10))
	if err != nil {
		return s, err
	}
	if _, err := kadm.NewClient(s.client).CreateTopics(ctx, 1, 1, nil, inTopic, outTopic); err != nil {
		return s, err
	}
	if err := s.fill(ctx); err != nil {
		return s, err
	}
	if s.holder, err = s.start(ctx, "first", engine.Standbys(1), engine.ShipCheckpoints()); err != nil {
		return s, err
	}
	if err := s.holder.awaitProcessed(ctx); err != nil {
		return s, err
	}
	say("the state is there")
	s.probes, err = startProbes(ctx, s.cluster.Addrs(), o.probe)
	return s, err
}

// fill writes the rows: random bytes, so that nothing gets smaller on its way.
func (s *session) fill(ctx context.Context) error {
	rows := s.opts.megabytes * 1_000_000 / (s.opts.value + 8)
	say("writing %d rows", rows)
	random := rand.NewChaCha8([32]byte{1})
	var mu sync.Mutex
	var failed error
	for i := range rows {
		value := make([]byte, s.opts.value)
		_, _ = random.Read(value) // never fails
		key := binary.BigEndian.AppendUint64(nil, uint64(i)*0x9E3779B97F4A7C15)
		s.client.Produce(ctx, &kgo.Record{Topic: inTopic, Key: key, Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
		})
	}
	if err := s.client.Flush(ctx); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	return failed
}

// end stops everything and removes what is left.
func (s *session) end() error {
	var errs []error
	if s.probes != nil {
		s.probes.stop()
	}
	for _, i := range s.all {
		errs = append(errs, i.stop())
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func build() (*topology.Plan, error) {
	b := topology.NewBuilder(application)
	b.Stream(inTopic, serde.Bytes, serde.Bytes).
		GroupByKey().
		Reduce(func(_, v []byte) []byte { return v }, topology.Store("rows")).
		ToStream().
		Filter(func(k, _ []byte) bool { return string(k) == probeKey }).
		To(outTopic)
	return b.Build()
}

// instance is an engine in this process, with what it tells of its state.
type instance struct {
	*engine.Engine
	dir    string
	cancel context.CancelFunc
	ended  chan error
	once   sync.Once
	err    error

	mu     sync.Mutex
	events []event
}

type event struct {
	engine.RestoreEvent
	at time.Time
}

func (s *session) start(ctx context.Context, name string, opts ...engine.Option) (*instance, error) {
	plan, err := build()
	if err != nil {
		return nil, err
	}
	i := &instance{dir: filepath.Join(s.dir, name), ended: make(chan error, 1)}
	level := slog.LevelWarn
	if s.opts.verbose {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("instance", name)
	i.Engine, err = engine.New(plan, append([]engine.Option{
		engine.Brokers(s.cluster.Addrs()...), engine.StateDir(i.dir), engine.HTTP("127.0.0.1:0"), engine.Logger(log), engine.OnRestore(i.note),
		engine.Client(kgo.ProducerBatchCompression(kgo.NoCompression())),
	}, opts...)...)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	i.cancel = cancel
	go func() { i.ended <- i.Run(running) }()
	s.all = append(s.all, i)
	return i, i.awaitRunning(ctx, 0)
}

func (i *instance) stop() error {
	i.once.Do(func() {
		i.cancel()
		i.err = <-i.ended
	})
	return i.err
}

func (i *instance) note(e engine.RestoreEvent) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.events = append(i.events, event{e, time.Now()})
}

// find gives the first event of a phase, last the last one.
func (i *instance) find(phase engine.RestorePhase) (event, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range i.events {
		if e.Phase == phase {
			return e, true
		}
	}
	return event{}, false
}

func (i *instance) last(phase engine.RestorePhase) (found event, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range i.events {
		if e.Phase == phase {
			found, ok = e, true
		}
	}
	return found, ok
}

const limit = 10 * time.Minute

func (i *instance) until(ctx context.Context, what string, f func() bool) error {
	for end := time.Now().Add(limit); !f(); {
		select {
		case err := <-i.ended:
			i.ended <- err
			return fmt.Errorf("an instance ended while it was waited for %s: %w", what, errors.Join(errors.New("too early"), err))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %v: %s", limit, what)
		}
	}
	return nil
}

func (i *instance) await(ctx context.Context, phase engine.RestorePhase) (e event, err error) {
	err = i.until(ctx, phase.String(), func() (ok bool) { e, ok = i.find(phase); return ok })
	return e, err
}

// awaitRunning waits until the instance is a member and runs so many tasks at least.
func (i *instance) awaitRunning(ctx context.Context, tasks int) error {
	return i.until(ctx, "running", func() bool {
		s := i.Stats()
		return s.State == engine.Running && len(s.Tasks) >= tasks
	})
}

// awaitProcessed waits until the input is read to its end and committed.
func (i *instance) awaitProcessed(ctx context.Context) error {
	if err := i.awaitRunning(ctx, 1); err != nil {
		return err
	}
	return i.until(ctx, "all processed", func() bool {
		s := i.Stats()
		return s.Processed > 0 && s.Lag == 0
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, strings.TrimRight(time.Now().Format("15:04:05 ")+format, "\n")+"\n", args...)
}
