package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/group"
	"github.com/tributary-io/tributary/engine/internal/identity"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/state"
)

// start makes everything that a running instance needs, in the order that makes it right: the producer first, since its start ends what
// a killed predecessor left open, so that joining and reading offsets don't wait for that. What is made is added to started.
func (e *Engine) start(ctx context.Context, started *closers) error {
	if e.cfg.memory != 0 {
		e.goShare.Claim(e.cfg.goMemory(0))
		started.add(func() error { e.goShare.Release(); return nil })
	}
	id, err := identity.Open(e.appDir())
	if err != nil {
		return err
	}
	e.identity = id
	name := id.UUID().String()
	e.instance.Store(&name)
	started.add(id.Close)
	if err := e.compareWithLast(); err != nil {
		return err
	}
	if err := e.serveHTTP(started); err != nil {
		return err
	}
	if err := e.makeClients(ctx, started); err != nil {
		return err
	}
	started.add(func() error { e.producer.Close(); return nil }) // also of one that could not be set up
	if err := e.producer.Reset(ctx); err != nil {
		return err
	}
	e.purgedAt = e.cfg.clock()
	known, err := e.awaitCatalog(ctx)
	if err != nil {
		return err
	}
	e.known.Store(known)
	if err := e.settleAtStart(ctx); err != nil {
		return err
	}
	e.warnGenerated()
	e.learnLimits(ctx)
	e.resources = state.NewResources(e.cfg.state)
	e.resourcesShown.Store(e.resources)
	started.add(e.resources.Close)
	started.add(e.closeLanders)
	if err := e.openLanders(ctx); err != nil {
		return err
	}
	started.add(e.closeGlobal)
	if err := e.openGlobal(ctx); err != nil {
		return err
	}
	if err := e.makeMembership(ctx); err != nil {
		return err
	}
	e.openQueries(started)
	if err := e.openDesk(started); err != nil {
		return err
	}
	if err := e.keepPlan(); err != nil { // not before all of it is there: of what couldn't start the next start should be told as well
		return err
	}
	e.startGoroutines(started)
	return e.followGlobal()
}

// clientOptions are common to all of the engine's clients.
func (e *Engine) clientOptions(role string) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ClientID(e.cfg.clientPrefix + e.plan.ApplicationID + "-" + role),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.WithLogger(clientLogger{e.log.With("client", role)}),
		kgo.WithHooks(&e.outages),
	}
	if len(e.cfg.brokers) > 0 {
		opts = append(opts, kgo.SeedBrokers(e.cfg.brokers...))
	}
	return append(opts, e.cfg.client...)
}

func (e *Engine) makeClients(ctx context.Context, started *closers) (err error) {
	if e.control, err = kgo.NewClient(append(e.clientOptions("control"), kgo.WithHooks(unsentIsLost{}))...); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	started.add(func() error { e.control.Close(); return nil })
	if err := e.awaitBrokers(ctx); err != nil {
		return err
	}
	if e.restoreClient, err = kgo.NewClient(e.clientOptions("restore")...); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	started.add(func() error { e.restoreClient.Close(); return nil })
	e.inputs, err = fetch.NewInputs(fetch.InputsConfig{
		Client: e.clientOptions("input"), MaxWait: 250 * time.Millisecond, Ready: e.intake.await,
		MaxBytes: fetchBytes(e.cfg.inputBuffer/8, 50<<20), MaxPartitionBytes: fetchBytes(e.cfg.inputBuffer/48, 1<<20),
	})
	if err != nil {
		return err
	}
	started.add(func() error { e.inputs.Close(); return nil })
	cfg := txn.Config{Client: append(e.clientOptions("producer"), kgo.ProducerBatchMaxBytesFn(e.limits.batchBytes)),
		Timeout: e.cfg.transaction, Records: 20_000, Bytes: e.cfg.producerBytes(), Logger: e.log}
	if e.cfg.guarantee == ExactlyOnce {
		cfg.TransactionalID = e.identity.TransactionalID(e.cfg.txnPrefix + e.plan.ApplicationID)
	}
	e.producer = txn.New(cfg)
	return nil
}

// fetchBytes keeps a part of the intake within what is sensible as the limit of a fetch.
func fetchBytes(part, most int64) int32 { return int32(min(max(part, 64<<10), most)) }

// awaitBrokers waits until a broker answers: an instance may be started before its brokers.
func (e *Engine) awaitBrokers(ctx context.Context) error {
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := e.control.Ping(try)
		cancel()
		if err == nil {
			return nil
		}
		if fetch.NeedsAPerson(err) {
			return fmt.Errorf("brokers %v: %w", e.cfg.brokers, err)
		}
		e.log.Warn("no broker answers yet", "brokers", e.cfg.brokers, "error", err, "in", pause)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// topicPatience is how long topics may be missing: brokers learn of one that was just created a moment later than the one that created it.
const topicPatience = 2 * time.Second

// awaitCatalog reads the catalog, and again for a while as long as topics are missing.
func (e *Engine) awaitCatalog(ctx context.Context) (*catalog, error) {
	for waited := time.Duration(0); ; waited += topicPatience / 8 {
		c, err := e.readCatalog(ctx)
		missing := errors.As(err, new(*MissingSinksError)) || errors.As(err, new(*plan.MissingTopicsError))
		if !missing || waited >= topicPatience {
			return c, err
		}
		if err := sleep(ctx, topicPatience/8); err != nil {
			return nil, err
		}
	}
}

// makeMembership makes the membership of the protocol that was chosen.
func (e *Engine) makeMembership(ctx context.Context) error {
	e.members = newMembers(e, e.advertised())
	protocol, err := e.chooseProtocol(ctx)
	if err != nil {
		return err
	}
	e.protocol = protocol
	defer func() { e.membershipShown.Store(&e.membership) }()
	if protocol == Streams {
		e.membership = group.NewStreams(e.streamsConfig(), streamsMember{e.members})
		return nil
	}
	e.membership = group.NewClassic(group.Config{
		Client: e.control, Group: e.group(), InstanceID: e.identity.InstanceID(e.plan.ApplicationID),
		SessionTimeout: e.cfg.session, RebalanceTimeout: e.cfg.rebalance, Heartbeat: e.cfg.heartbeat, Logger: e.log,
	}, e.members)
	return nil
}

// startGoroutines starts the workers and the fetching. They end before anything that they use is closed.
func (e *Engine) startGoroutines(started *closers) {
	var running sync.WaitGroup
	for range e.cfg.workers {
		running.Go(func() { e.work(e.life) })
	}
	running.Go(func() { e.inputs.Run(e.life, e.deliver) })
	if e.shipping.vault != nil {
		running.Go(func() { e.keepCheckpoints(e.life) })
	}
	running.Go(func() { e.watchPatterns(e.life) })
	running.Go(func() { e.watchInputs(e.life) })
	if e.cfg.memory != 0 {
		running.Go(func() { e.shareGo(e.life) })
	}
	running.Go(func() { e.warnUnused(e.life) }) // a large cluster takes its time to list all topics
	started.add(func() error {
		e.endLife()
		e.queue.close()
		running.Wait()
		return e.closeFollower()
	})
}

// warnGenerated lists durable names that were not chosen: they shift when an operator is inserted before them.
func (e *Engine) warnGenerated() {
	if names := e.generated; len(names) > 0 {
		e.log.Info("some durable names were generated; name these stores and repartitions, or inserting an operator before them loses their state", "names", names)
	}
}

// idleClients is how long a client may keep a connection without using it. Tests shorten it.
var idleClients = 2 * time.Minute

func (e *Engine) serveHTTP(started *closers) error {
	if e.cfg.httpAddr == "" {
		return nil
	}
	l, err := net.Listen("tcp", e.cfg.httpAddr)
	if err != nil {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	e.httpAddr.Store(l.Addr().String())
	e.log.Info("HTTP listens", "addr", l.Addr().String())
	server := &http.Server{
		Handler: e.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleClients, ErrorLog: slog.NewLogLogger(e.log.Handler(), slog.LevelWarn),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l) // ends by Close
	}()
	started.add(func() error {
		err := server.Close()
		<-served
		return err
	})
	return nil
}
