package land

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/serde"
)

// reachLimit bounds the first words with brokers and registry.
const reachLimit = 15 * time.Second

// Sink is an instance that is ready to land: connected, with its topics and subjects made. Make it with Open; Close it after Run.
type Sink struct {
	cfg      Config
	client   *kgo.Client
	registry *serde.Registry
	admin    *admin
	writers  *writers
	versions []int // of the streams' schemas in the registry
	current  atomic.Pointer[engine.Engine]
	observer *Observer // nil: none
	outage   *outage

	// Schemas are asked for until patience ends: with Run, or with Close.
	patience context.Context
	giveUp   context.CancelFunc
}

// connect reaches brokers and registry, and says early what to do where nobody answers.
func connect(ctx context.Context, cfg *Config) (client *kgo.Client, registry *serde.Registry, a *admin, err error) {
	defer func() {
		if err != nil && client != nil {
			client.Close()
		}
		if err != nil && registry != nil {
			registry.Close()
		}
	}()
	if client, err = kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(cfg.Brokers...)}, cfg.Client...)...); err != nil {
		return
	}
	if registry, err = serde.NewRegistry(cfg.Registry); err != nil {
		return
	}
	if a, err = newAdmin(cfg.Registry); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	if err = client.Ping(ctx); err != nil {
		err = fmt.Errorf("no broker answers at %v (is it up, and is this its client listener?): %w", cfg.Brokers, err)
		return
	}
	if err = registry.Ping(ctx); err != nil {
		err = fmt.Errorf("the schema registry does not answer: %w", err)
	}
	return
}

// Open connects, makes or checks topics and subjects, and prepares the engine. Nothing is landed before Run.
func Open(ctx context.Context, cfg Config) (_ *Sink, err error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Sink{cfg: cfg}
	s.outage = &outage{now: s.cfg.now}
	s.patience, s.giveUp = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.client, s.registry, s.admin, err = connect(ctx, &cfg); err != nil {
		return nil, err
	}
	if err := prepareTopics(ctx, kadm.NewClient(s.client), cfg.Streams, cfg.Log); err != nil {
		return nil, err
	}
	s.versions = make([]int, len(cfg.Streams))
	for i, stream := range cfg.Streams {
		subject := serde.Subject(stream.Topic, false)
		if stream.Format == Avro {
			s.versions[i], err = s.admin.register(ctx, subject, stream.Schema, stream.Compatibility)
		} else {
			err = s.admin.keepLevel(ctx, subject, stream.Compatibility)
		}
		if err != nil {
			return nil, err
		}
	}
	s.writers = &writers{s.patience, s.registry}
	if err := s.newEngine(); err != nil {
		return nil, err
	}
	if cfg.Observe > 0 {
		s.observer = newObserver(&s.cfg, s.client, s.admin)
	}
	return s, nil
}

// newEngine makes the engine that runs next.
func (s *Sink) newEngine() error {
	plan, err := s.cfg.plan(s.writers, s.versions)
	if err != nil {
		return err
	}
	e, err := engine.New(plan, s.engineOptions()...)
	if err != nil {
		return err
	}
	s.current.Store(e)
	return nil
}

func (s *Sink) engineOptions() []engine.Option {
	opts := []engine.Option{
		engine.Brokers(s.cfg.Brokers...), engine.Client(s.cfg.Client...), engine.StateDir(s.cfg.State), engine.Logger(s.cfg.Log),
		engine.ErrorHandlers(s.cfg.Handlers()), engine.Lake(s.cfg.limits()), engine.InputBuffer(inputBuffer),
	}
	if s.cfg.Clock != nil {
		opts = append(opts, engine.Clock(s.cfg.Clock))
	}
	return append(opts, s.cfg.Engine...)
}

// Run lands until ctx ends, then lands what is open, leaves the group and returns nil. It can be called once.
func (s *Sink) Run(ctx context.Context) error {
	// A record whose schema can't be had must not hold up the end.
	defer context.AfterFunc(ctx, s.giveUp)()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	g.Go(func() error {
		defer stop()
		return s.runEngines(ctx)
	})
	if s.observer != nil {
		g.Go(func() error { s.observer.run(ctx); return nil })
	}
	if s.cfg.HTTP != "" {
		g.Go(func() error {
			defer stop()
			return serve(ctx, s.cfg.HTTP, s.Handler(), s.cfg.Log)
		})
	}
	err := g.Wait()
	if errors.Is(err, context.Canceled) && s.patience.Err() != nil {
		return nil // it ended while it waited for the registry: what was open is read again
	}
	return err
}

// runEngines runs an engine, and a new one after each time that the registry was away. What was not landed when one ended is read again: the
// tables say how far they have come.
func (s *Sink) runEngines(ctx context.Context) error {
	for {
		err := s.current.Load().Run(ctx)
		var away *awayError
		if !errors.As(err, &away) || ctx.Err() != nil {
			return err
		}
		if err := s.awaitRegistry(ctx, away); err != nil || ctx.Err() != nil {
			return err
		}
		if err := s.newEngine(); err != nil {
			return err
		}
	}
}

// awaitRegistry waits until the registry has an answer about the schema that a record needs, whatever it is.
func (s *Sink) awaitRegistry(ctx context.Context, away *awayError) error {
	s.outage.begin(away.err)
	defer s.outage.end()
	s.cfg.Log.Warn("the schema registry gives no answer; nothing is landed until it does", "schema", away.key.String(), "error", away.err, "patience", s.cfg.Patience)
	_, err := s.writers.ask(ctx, away.key, s.cfg.Patience)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &away):
		return fmt.Errorf("the schema registry has given no answer for %v; nothing is lost, start again when it does: %w", s.cfg.Patience, err)
	}
	s.cfg.Log.Info("the schema registry answers again; going on")
	return nil // an unknown schema is the record's fault, and found again
}

// Stats tells what the instance has done since it last had to wait for the registry.
func (s *Sink) Stats() engine.Stats { return s.current.Load().Stats() }

// Close disconnects. It must not be called while Run runs.
func (s *Sink) Close() {
	s.giveUp()
	if s.registry != nil {
		s.registry.Close()
	}
	if s.client != nil {
		s.client.Close()
	}
}
