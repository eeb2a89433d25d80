package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

func TestMain(m *testing.M) {
	child.Main(map[string]child.Role{instanceRole: child.As(runInstance)})
	code := m.Run()
	if err := realkafka.StopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stop Kafka:", err)
		code = 1
	}
	if code == 0 {
		if err := leaks.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// app is an application under test: its topics, groups and ids start with its name.
type app struct {
	t    *testing.T
	c    *brokertest.Cluster
	name string
	dir  string
}

func newApp(t *testing.T, c *brokertest.Cluster, name string) *app {
	return &app{t: t, c: c, name: name, dir: t.TempDir()}
}

func (a *app) topic(suffix string) string { return a.name + "-" + suffix }

func (a *app) create(suffix string, partitions int32) {
	a.t.Helper()
	a.c.CreateTopic(a.t, a.topic(suffix), partitions)
}

// counts is a topology of two sub-topologies with state: it counts the values of one topic into another, through a repartition.
func counts(name string) *topology.Plan {
	b := topology.NewBuilder(name)
	b.Stream(name+"-in", serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).
		Count(topology.Store("counts")).
		ToStream().
		To(name + "-out")
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}

// testLog keeps an instance's log for the case that the test fails.
func testLog(t testing.TB, instance string) *slog.Logger {
	w := &logWriter{t: t, prefix: instance + ": "}
	t.Cleanup(func() { w.mu.Lock(); w.done = true; w.mu.Unlock() })
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type logWriter struct {
	t      testing.TB
	prefix string
	mu     sync.Mutex
	done   bool
}

func (w *logWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.t.Log(w.prefix + strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

// instance is an engine that runs in the test's process.
type instance struct {
	*Engine
	cancel context.CancelFunc
	ended  chan error
}

func (a *app) start(plan *topology.Plan, instanceName string, opts ...Option) *instance {
	a.t.Helper()
	all := append([]Option{
		Brokers(a.c.Addrs...), StateDir(a.dir + "/" + instanceName), Logger(testLog(a.t, instanceName)), ReplicationFactor(1),
		SessionTimeout(6 * time.Second), CommitInterval(50 * time.Millisecond),
	}, opts...)
	e, err := New(plan, all...)
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i := &instance{Engine: e, cancel: cancel, ended: make(chan error, 1)}
	go func() {
		err := e.Run(ctx)
		if err != nil {
			e.log.Error("Run has ended", "error", err) // into the test's log
		}
		i.ended <- err
	}()
	a.t.Cleanup(func() { cancel(); <-i.ended })
	return i
}

// stop ends an instance in order.
func (i *instance) stop(t *testing.T) {
	t.Helper()
	i.cancel()
	if err := i.failure(t); err != nil {
		t.Fatalf("Run: %v", err)
	}
}

// stopInTrouble is stop while faults may still be about: the last commit may meet one of them, and nothing else.
func (i *instance) stopInTrouble(t *testing.T, about []kfake.Fault) {
	t.Helper()
	i.cancel()
	err := i.failure(t)
	if err == nil {
		return
	}
	met := func(f kfake.Fault) bool { return errors.Is(err, f.Err) }
	if !errors.As(err, new(*UncommittedError)) || !slices.ContainsFunc(about, met) {
		t.Fatalf("Run: %v", err)
	}
}

// failure waits for an instance to end, and gives its error.
func (i *instance) failure(t *testing.T) error {
	t.Helper()
	select {
	case err := <-i.ended:
		i.ended <- nil // for the clean-up
		return err
	case <-time.After(waitLimit):
		t.Fatal("Run doesn't return")
		return nil
	}
}

func (i *instance) await(t *testing.T, what string, f func(Stats) bool) {
	t.Helper()
	eventually(t, what, func() bool { return f(i.Stats()) })
}

// waitLimit is how long tests wait for what comes within moments, unless the machine is busy with other things: a test that waits so long has failed.
const waitLimit = 2 * time.Minute

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(waitLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if f() {
			return
		}
	}
	if path := os.Getenv("TRIBUTARY_TEST_STACKS"); path != "" { // what everything waits for
		if f, err := os.Create(path); err == nil {
			pprof.Lookup("goroutine").WriteTo(f, 2)
			f.Close()
		}
	}
	t.Fatalf("not within %v: %s", waitLimit, what)
}

// produce writes values to a topic, each to the partition that its number chooses.
func (a *app) produce(suffix string, partitions int, values ...string) {
	a.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(a.c.Addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		a.t.Fatal(err)
	}
	defer client.Close()
	for i, v := range values {
		client.Produce(a.t.Context(), &kgo.Record{Topic: a.topic(suffix), Partition: int32(i % partitions), Key: []byte(fmt.Sprint("k", i)), Value: []byte(v)}, func(_ *kgo.Record, err error) {
			if err != nil {
				a.t.Error(err)
			}
		})
	}
	if err := client.Flush(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

// output reads an output topic, read_committed, in the background.
type output struct {
	mu      sync.Mutex
	records []*kgo.Record
}

// readersWait is how long the test's own reader waits in a fetch. No fetch of the engine waits just as long: see theEngines.
const readersWait = 99 * time.Millisecond

func (a *app) read(suffix string) *output {
	a.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(a.c.Addrs...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(readersWait),
		kgo.ConsumeTopics(a.topic(suffix)), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	o := &output{}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			fs := client.PollFetches(ctx)
			o.mu.Lock()
			o.records = append(o.records, fs.Records()...)
			o.mu.Unlock()
		}
	}()
	a.t.Cleanup(func() { cancel(); <-done; client.Close() })
	return o
}

func (o *output) all() []*kgo.Record {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.records[:len(o.records):len(o.records)]
}

// lastCounts is the last count of each key.
func (o *output) lastCounts() map[string]int64 {
	m := map[string]int64{}
	for _, r := range o.all() {
		m[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value))
	}
	return m
}

// onlyRises tells whether each key's counts are 1, 2, 3 and so on without a gap or a repetition: each input counted once.
func (o *output) onlyRises() error {
	m := map[string]int64{}
	for _, r := range o.all() {
		n := int64(binary.BigEndian.Uint64(r.Value))
		if n != m[string(r.Key)]+1 {
			return fmt.Errorf("key %s: count %d follows %d (at %s-%d offset %d)", r.Key, n, m[string(r.Key)], r.Topic, r.Partition, r.Offset)
		}
		m[string(r.Key)] = n
	}
	return nil
}

func total(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

// numbered gives n values of k kinds.
func numbered(n, k int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprint("v", i%k)
	}
	return values
}
