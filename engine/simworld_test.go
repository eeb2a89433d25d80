package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/simnet"
	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// simWorld is everything that a simulated seed has.
type simWorld struct {
	t      *testing.T
	rng    *rand.Rand // of the main goroutine only
	dir    string
	counts *simCounts
	log    simLog

	net         *simnet.Network
	cluster     *brokertest.Cluster
	coordinator *brokertest.StreamsCoordinator // nil with the classic protocol
	client      *kgo.Client
	table       *table
	vault       *simStore // nil without kept checkpoints
	explicit    bool      // transactions of a former version: partitions and groups are added to them by requests of their own
	options     []Option

	processes []*process
	died      chan *process // those that have died by themselves
	ended     chan struct{} // closed at the end: nothing is held up any more

	values []string
	read   []*kgo.Record // of the output

	sumMu sync.Mutex
	sum   hash.Hash64 // of what was sent, and when
}

// process is an instance, from its start to its death.
type process struct {
	w      *simWorld
	name   string // of the identity: a process that takes a dead one's place has the same
	life   int
	dir    string
	host   *simnet.Host
	engine *Engine
	cancel context.CancelFunc
	done   chan error
	dead   bool
	buried bool // its directory is kept for a successor

	mu       sync.Mutex
	strikeAt step
	strikeIn int // times
	blow     blow
	stall    time.Duration
}

// setPolicy decides about the process's requests from now on. Policies are called one at a time.
func (p *process) setPolicy(f simnet.Policy) {
	if f == nil {
		p.host.SetPolicy(nil)
		return
	}
	turn := make(chan struct{}, 1) // not a mutex: waiting for it must not keep the clock from going on
	p.host.SetPolicy(func(key int16) simnet.Fate {
		select {
		case turn <- struct{}{}:
		case <-p.w.ended:
			return simnet.LoseRequest
		}
		defer func() { <-turn }()
		return f(key)
	})
}

// sleep holds something up, until the end at most.
func (w *simWorld) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.ended:
	}
}

const simName = "sim"

// simPlan counts the first words of its input's values, through a repartition, and lands the values.
func simPlan(t *testing.T, lake sink.Sink) *topology.Plan {
	b := topology.NewBuilder(simName)
	in := b.Stream(simName+"-in", serde.String, serde.String)
	in.ToLake(lake, topology.Name("landed"))
	in.GroupBy(func(_, v string) string { return strings.SplitN(v, " ", 2)[0] }, topology.Name("by-word")).
		Count(topology.Store("counts")).
		ToStream().
		To(simName + "-out")
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newSimWorld(t *testing.T, seed uint64, dir string, counts *simCounts) *simWorld {
	w := &simWorld{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), dir: dir, counts: counts, net: simnet.New(), table: newTable(),
		died: make(chan *process, 100), ended: make(chan struct{}), sum: fnv.New64a(),
	}
	w.net.Witness = w.witness
	broker, err := embedded.StartBroker(embedded.BrokerConfig{Listen: w.net.Listen, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Close() })
	w.cluster = &brokertest.Cluster{Addrs: broker.Addrs(), Embedded: broker, Dial: w.net.Host().Dial}
	late := time.Duration(w.rng.IntN(8000)) * time.Millisecond
	w.net.Delay = func() { w.sleep(late) }
	w.client = w.cluster.Client(t, kgo.DefaultProduceTopic(simName+"-in"), kgo.ConsumeTopics(simName+"-out"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond), kgo.DisableClientMetrics())
	if w.rng.IntN(4) == 0 {
		counts.add("seeds with transactions of a former version")
		w.useExplicitTransactions()
	}
	w.options = []Option{
		// kfake starts the rebalance timeout anew with each join; it must be shorter than the time after which members join again.
		SessionTimeout(4 * time.Second), RebalanceTimeout(3 * time.Second), CommitInterval(time.Duration(20+w.rng.IntN(300)) * time.Millisecond),
		Lake(LakeBatches{Every: time.Second}), Workers(2),
		StateMemory(state.ResourceOptions{CacheBytes: 1 << 20, MaxMemtableBytes: 64 << 10, MinMemtableBytes: 64 << 10, RowBytes: 1 << 20}),
		Client(kgo.DisableClientMetrics()), PurgeInterval(time.Duration(500+w.rng.IntN(3000)) * time.Millisecond),
	}
	if w.rng.IntN(3) == 0 {
		counts.add("seeds with the streams protocol")
		w.coordinator = w.cluster.TeachStreams(t, 4*time.Second, 200*time.Millisecond)
		w.options = append(w.options, GroupProtocol(Streams))
	} else if w.rng.IntN(2) == 0 {
		counts.add("seeds with standbys")
		w.options = append(w.options, Standbys(1), AcceptableLag(2))
	}
	if w.rng.IntN(6) == 0 {
		counts.add("seeds with checkpoints in an object store")
		w.vault = &simStore{Memory: object.NewMemory("sim"), w: w}
		w.options = append(w.options, KeepCheckpoints(w.vault, time.Second), AcceptableLag(2))
	}
	w.cluster.CreateTopic(t, simName+"-in", int32(1+w.rng.IntN(2)))
	w.cluster.CreateTopic(t, simName+"-out", 1)
	counts.add("seeds")
	return w
}

// useExplicitTransactions has the broker offer the protocol of transactions before KIP-890 alone.
func (w *simWorld) useExplicitTransactions() {
	w.explicit = true
	req := kmsg.NewPtrUpdateFeaturesRequest()
	update := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	update.Feature, update.MaxVersionLevel, update.UpgradeType = "transaction.version", 0, 2 // 2: a safe downgrade
	req.FeatureUpdates = append(req.FeatureUpdates, update)
	resp, err := req.RequestWith(context.Background(), w.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// witness notes a request.
func (w *simWorld) witness(frame []byte) {
	w.sumMu.Lock()
	defer w.sumMu.Unlock()
	var now [8]byte
	binary.BigEndian.PutUint64(now[:], uint64(time.Now().UnixNano()))
	w.sum.Write(now[:])
	w.sum.Write(frame)
	if *simSteps {
		w.say("%s, %d bytes, %016x", kmsg.NameForKey(int16(binary.BigEndian.Uint16(frame[4:]))), len(frame), w.sum.Sum64())
	}
}

// fingerprint tells what happened from anything else that could have.
func (w *simWorld) fingerprint() uint64 {
	w.sumMu.Lock()
	defer w.sumMu.Unlock()
	return w.sum.Sum64()
}

// close ends everything, dead or not.
func (w *simWorld) close() {
	close(w.ended)
	for _, p := range w.processes {
		p.cancel()
	}
	for _, p := range w.processes {
		<-p.done
	}
}

// startProcess starts a process with an identity of its own.
func (w *simWorld) startProcess() *process {
	p := &process{w: w, name: fmt.Sprint("p", len(w.processes)+1)}
	p.dir = filepath.Join(w.dir, p.name+"-0")
	return w.launch(p)
}

// launch starts a process on its directory.
func (w *simWorld) launch(p *process) *process {
	p.host, p.done = w.net.Host(), make(chan error, 1)
	e, err := New(simPlan(w.t, &simSink{w.table, p}), append([]Option{
		Brokers(w.cluster.Addrs...), StateDir(p.dir), Client(kgo.Dialer(p.host.Dial)), ReplicationFactor(1), Logger(w.log.of(fmt.Sprintf("%s.%d", p.name, p.life), w.counts)),
		func(c *config) { c.stepped = func(s step) { p.reached(s) } },
	}, w.options...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.engine, p.cancel = e, cancel
	w.processes = append(w.processes, p)
	w.say("%s starts its life %d", p.name, p.life)
	go func() {
		err := e.Run(ctx)
		p.done <- err
		if err != nil && ctx.Err() == nil {
			w.say("%s.%d has ended by itself: %v", p.name, p.life, err)
		}
	}()
	return p
}

// leave keeps the process's directory as it is at this moment, for a successor.
func (p *process) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buried {
		return
	}
	p.buried = true
	if err := os.CopyFS(p.heir(), os.DirFS(p.dir)); err != nil {
		p.w.say("copy the state of %s.%d: %v", p.name, p.life, err)
		p.buried = false
	}
}

// heir is the directory of the process that takes p's place.
func (p *process) heir() string {
	return filepath.Join(p.w.dir, fmt.Sprintf("%s-%d", p.name, p.life+1))
}

func (p *process) isBuried() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buried
}

// bury makes a process dead to everybody.
func (w *simWorld) bury(p *process) {
	if p.dead {
		return
	}
	p.dead = true
	p.host.Cut()
	synctest.Wait() // nothing is being written now
	p.leave()
	p.cancel()
}

// revive starts a process in the place of a dead one.
func (w *simWorld) revive(p *process) *process {
	return w.launch(&process{w: w, name: p.name, life: p.life + 1, dir: p.heir()})
}

// stop ends a process in order.
func (w *simWorld) stop(p *process) {
	w.say("%s.%d is stopped", p.name, p.life)
	p.dead = true
	p.cancel()
	select {
	case err := <-p.done:
		p.done <- err
	case <-time.After(time.Minute):
		w.fail("%s.%d doesn't end", p.name, p.life)
	}
}

func (w *simWorld) living() (all []*process) {
	for _, p := range w.processes {
		if !p.dead {
			all = append(all, p)
		}
	}
	return all
}

// pass lets time pass, and buries who dies meanwhile.
func (w *simWorld) pass(d time.Duration) {
	for end := time.After(d); ; {
		select {
		case p := <-w.died:
			w.bury(p)
		case <-end:
			return
		}
	}
}

// produce writes records, and waits for the broker to have them.
func (w *simWorld) produce(n int) {
	var records []*kgo.Record
	for range n {
		v := fmt.Sprintf("w%d %d", w.rng.IntN(5), len(w.values))
		w.values = append(w.values, v)
		records = append(records, &kgo.Record{Key: []byte(v), Value: []byte(v)})
	}
	if err := w.client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		w.fail("produce: %v", err)
	}
}

// poll takes what the output has by now.
func (w *simWorld) poll() {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	for {
		fetches := w.client.PollFetches(ctx)
		fetches.EachRecord(func(r *kgo.Record) { w.read = append(w.read, r) })
		if ctx.Err() != nil {
			return
		}
	}
}

// settled reports whether all that was written has come out everywhere, if not as it should.
func (w *simWorld) settled() bool {
	w.poll()
	return len(w.read) >= len(w.values) && w.table.count() >= len(w.values)
}

// await gives the processes all the time that they can need.
func (w *simWorld) await(what string, f func() bool) {
	for began := time.Now(); !f(); w.pass(100 * time.Millisecond) {
		if len(w.living()) == 0 { // the last one died of something that was still on its way
			w.startProcess()
		}
		if time.Since(began) > 3*time.Minute {
			w.fail("not within 3 minutes: %s; %d counted and %d landed of %d", what, len(w.read), w.table.count(), len(w.values))
		}
		for _, p := range w.living() { // one that has given up would never finish
			select {
			case err := <-p.done:
				p.done <- err // close waits for it, too
				w.fail("%s.%d has ended by itself: %v", p.name, p.life, err)
			default:
			}
		}
	}
}

// check closes the books: each word's counts are 1, 2, 3 and so on, and each value has one row.
func (w *simWorld) check() {
	w.pass(time.Second) // for what shouldn't come
	w.poll()
	counts := map[string]int64{}
	for _, r := range w.read {
		key, n := string(r.Key), int64(binary.BigEndian.Uint64(r.Value))
		if counts[key]+1 != n {
			w.fail("%s has count %d after %d", key, n, counts[key])
		}
		counts[key] = n
	}
	if len(w.read) != len(w.values) {
		w.fail("%d records were counted, want %d", len(w.read), len(w.values))
	}
	if err := w.table.once(w.values); err != nil {
		w.fail("the table: %v", err)
	}
}

func (w *simWorld) say(format string, args ...any) { w.log.say(fmt.Sprintf(format, args...)) }

func (w *simWorld) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf(format, args...)
	w.t.Log(w.log.text())
	for _, p := range w.living() {
		s := p.engine.Stats()
		w.t.Logf("%s.%d is %v, lag %d, tasks %+v", p.name, p.life, s.State, s.Lag, s.Tasks)
	}
	if w.coordinator != nil {
		w.t.Log(w.coordinator)
	}
	w.close()
	w.t.FailNow()
}

// simLog keeps what happened, for a seed that fails.
type simLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *simLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *simSteps {
		os.Stderr.Write(b)
	}
	return l.buf.Write(b)
}

func (l *simLog) say(s string) {
	fmt.Fprintf(l, "%s   ---- %s\n", time.Now().Format("15:04:05.000"), s)
}

func (l *simLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *simLog) of(process string, counts *simCounts) *slog.Logger {
	return slog.New(simHandler{counts, slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey:
			return slog.String("", a.Value.Time().Format("15:04:05.000"))
		case "application":
			return slog.Attr{}
		}
		return a
	}})}).With("p", process)
}

// simHandler counts what the engine says.
type simHandler struct {
	counts *simCounts
	slog.Handler
}

func (h simHandler) Handle(ctx context.Context, r slog.Record) error {
	h.counts.hear(r)
	return h.Handler.Handle(ctx, r)
}

func (h simHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return simHandler{h.counts, h.Handler.WithAttrs(attrs)}
}

func (h simHandler) WithGroup(name string) slog.Handler {
	return simHandler{h.counts, h.Handler.WithGroup(name)}
}

// errTable is what the table answers when it is told to fail.
var errTable = errors.New("the table's store doesn't answer")
