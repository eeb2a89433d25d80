package land

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/serde"
)

// reachLimit bounds the first words with brokers and registry.
const reachLimit = 30 * time.Second

// Sink is an instance that is ready to land: connected, with its topics and subjects made. Make it with Open; Close it after Run.
type Sink struct {
	cfg      Config
	client   *kgo.Client
	registry *serde.Registry
	admin    *admin
	schemas  *lookups
	engine   *engine.Engine
	observer *Observer // nil: none
	faults   *faults

	giveUp context.CancelFunc // ends the asking for schemas: with Run, or with Close
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

// Open connects, makes or checks topics and subjects, and prepares the engine. Nothing is landed before Run. The error is of the configuration, all
// that is wrong with it at once; of brokers or a registry that can't be reached; or of topics and subjects, if no stream can be prepared: where
// some can't, Run tries them again and lands the others.
func Open(ctx context.Context, cfg Config) (_ *Sink, err error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Sink{cfg: cfg}
	s.faults = &faults{now: s.cfg.now, streams: s.cfg.Streams, outage: newOutage(s.cfg.now), stats: func() engine.Stats { return s.engine.Stats() }}
	asking, giveUp := context.WithCancel(context.Background())
	s.giveUp = giveUp
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.client, s.registry, s.admin, err = connect(ctx, &cfg); err != nil {
		return nil, err
	}
	preparation := newPreparation(s.client, s.admin, cfg.Log)
	if err := preparation.all(ctx, s.cfg.Streams); err != nil {
		return nil, err
	}
	s.schemas = newLookups(asking, s.registry, s.faults.outage)
	plan, err := s.cfg.plan(func(stream *Stream) sink.Sink {
		source := &writers{stream.Topic, s.schemas}
		return &prepared{Sink: s.cfg.table(stream, source, 0), cfg: &s.cfg, stream: stream, source: source, with: preparation}
	})
	if err != nil {
		return nil, err
	}
	if s.engine, err = engine.New(plan, s.engineOptions()...); err != nil {
		return nil, err
	}
	if cfg.Observe > 0 {
		s.observer = newObserver(&s.cfg, s.client, s.admin, s.faults.holds)
	}
	return s, nil
}

func (s *Sink) engineOptions() []engine.Option {
	var opts []engine.Option
	if s.cfg.Memory > 0 { // its parts are set behind it
		opts = append(opts, engine.MemoryBudget(s.cfg.Memory))
	}
	opts = append(opts,
		engine.Brokers(s.cfg.Brokers...), engine.Client(s.cfg.Client...), engine.StateDir(s.cfg.State), engine.Logger(s.cfg.Log),
		engine.ErrorHandlers(s.cfg.Handlers()), engine.Lake(s.cfg.limits()), engine.InputBuffer(inputBuffer), engine.ParkLake(),
	)
	if s.cfg.Clock != nil {
		opts = append(opts, engine.Clock(s.cfg.Clock))
	}
	return append(opts, s.cfg.Engine...)
}

// Run lands until ctx ends, then lands what is open, leaves the group and returns nil. It can be called once.
//
// A fault of one stream concerns no other: it waits or is parked, is tried again, and the others go on (see docs/operations/land.md). If none has
// gone on for Config.Patience, Run ends with an error; nothing is lost.
func (s *Sink) Run(ctx context.Context) error {
	// A record whose schema can't be had must not hold up the end.
	defer context.AfterFunc(ctx, s.giveUp)()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	g.Go(func() error {
		defer stop()
		return s.engine.Run(ctx)
	})
	g.Go(func() error {
		defer stop()
		return s.watchPatience(ctx)
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
	return g.Wait()
}

// watchPatience returns an error when no stream has gone on for too long, and nil when ctx ends.
func (s *Sink) watchPatience(ctx context.Context) error {
	tick := time.NewTicker(max(min(s.cfg.Patience/4, time.Second), 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if waited, why := s.faults.all(); waited > 0 && waited >= s.cfg.Patience {
				return fmt.Errorf("no stream has gone on for %v; nothing is lost, start again when that is mended:\n%w", s.cfg.Patience, why)
			}
		}
	}
}

// Stats tells what the instance has done.
func (s *Sink) Stats() engine.Stats { return s.engine.Stats() }

// Close disconnects. It must not be called while Run runs.
func (s *Sink) Close() {
	s.giveUp()
	if s.schemas != nil {
		s.schemas.close()
	}
	if s.registry != nil {
		s.registry.Close()
	}
	if s.client != nil {
		s.client.Close()
	}
}
