package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/console"
	"github.com/tributary-io/tributary/engine"
	app "github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/topology"
)

// Config says what the demonstration does.
type Config struct {
	Dir      string    // everything that is kept lies below it
	Brokers  []string  // empty: an embedded one
	Client   []kgo.Opt // TLS and SASL of the brokers; not for an embedded one
	Registry string    // empty: an embedded one
	Spec     shop.Spec
	HTTP     string // address for the console, metrics and health; empty: none
	// Lake and State are where the tables and the local state go; empty: below Dir.
	Lake, State string
	// Out takes progress and the summary; Terminal says that it is one.
	Out      io.Writer
	Terminal bool
	Log      *slog.Logger
}

func (cfg *Config) lake() string {
	if cfg.Lake != "" {
		return cfg.Lake
	}
	return filepath.Join(cfg.Dir, "lake")
}

func (cfg *Config) state() string {
	if cfg.State != "" {
		return cfg.State
	}
	return filepath.Join(cfg.Dir, "state")
}

// batchEvery is how long rows wait to land; shorter than the default, since somebody is looking on.
const batchEvery = 2 * time.Second

// Plan declares the application for the cluster.
func (cfg *Config) Plan(c *Cluster) (*topology.Plan, error) {
	return app.Topology(app.Config{Registry: c.Registry, Lake: cfg.lake()})
}

// Engine makes an instance of the application.
func (cfg *Config) Engine(c *Cluster, plan *topology.Plan) (*engine.Engine, error) {
	opts := []engine.Option{
		engine.Brokers(c.Brokers...), engine.Client(c.security...), engine.StateDir(cfg.state()), engine.ErrorHandlers(app.Handlers()), engine.Logger(cfg.Log),
		engine.Lake(engine.LakeBatches{Every: batchEvery}),
	}
	if cfg.HTTP != "" {
		opts = append(opts, engine.HTTP(cfg.HTTP), console.Serve())
	}
	return engine.New(plan, opts...)
}

// Run is the whole demonstration: it ends when everything that was emitted has landed. When ctx ends before that, it closes in good
// order and returns ctx's error; the next run goes on from there.
func Run(ctx context.Context, cfg Config) (*Summary, error) {
	c, days, err := cfg.open(ctx)
	if err != nil {
		return nil, err
	}
	s, err := run(ctx, &cfg, c, days)
	return s, errors.Join(err, c.Close())
}

// open connects to the cluster and opens the diary of the days that were emitted to it.
func (cfg *Config) open(ctx context.Context) (*Cluster, *diary, error) {
	if err := cfg.Spec.Check(); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, nil, err
	}
	days, err := openDiary(cfg.Dir, cfg.Spec)
	if err != nil {
		return nil, nil, err
	}
	c, err := Connect(ctx, cfg.Dir, cfg.Brokers, cfg.Registry, cfg.Log, cfg.Client...)
	return c, days, err
}

func run(ctx context.Context, cfg *Config, c *Cluster, days *diary) (*Summary, error) {
	began := time.Now()
	if err := c.Prepare(ctx); err != nil {
		return nil, err
	}
	plan, err := cfg.Plan(c)
	if err != nil {
		return nil, err
	}
	e, err := cfg.Engine(c, plan)
	if err != nil {
		return nil, err
	}
	if err := days.note(cfg.Spec.Date); err != nil {
		return nil, err
	}
	emission := &Emission{}
	show := newProgress(cfg.Out, cfg.Terminal, int64(cfg.Spec.Count()), emission, e)
	err = land(ctx, c, plan, e, show, func(ctx context.Context) error { return Emit(ctx, c.client, cfg.Spec, c.schemaIDs, emission) })
	if err != nil {
		return nil, err
	}
	return summarize(ctx, cfg, c, days, e, emission, time.Since(began))
}

// land emits and runs the engine until all has landed, or until ctx ends, which is then the error.
//
// A day is emitted in seconds, and the engine keeps partitions together only in what it knows to be there: so first it is emitted. The
// engine ends by a context of its own, so that it closes in good order.
func land(ctx context.Context, c *Cluster, plan *topology.Plan, e *engine.Engine, show *progress, emit func(context.Context) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	g.Go(func() error { show.run(running); return nil })
	g.Go(func() error {
		defer stop()
		if err := emit(running); err != nil {
			return err
		}
		show.emitted()
		g.Go(func() error { defer stop(); return untilLanded(running, c, plan, e) })
		return e.Run(running)
	})
	err := g.Wait()
	show.end()
	return endOf(ctx, err)
}

// endOf tells what the end of the group means: ctx's error if that has ended, which is then all there is to say.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return ctx.Err()
	}
	return err
}

// untilLanded waits until the group has committed everything in every topic that the application reads, and nothing has moved for a
// moment.
func untilLanded(ctx context.Context, c *Cluster, plan *topology.Plan, e *engine.Engine) error {
	const still = 3 // looks without a change
	topics := inputTopics(plan)
	processed, quiet := int64(-1), 0
	for quiet < still {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
		lag, err := c.Lag(ctx, plan.ApplicationID(), topics...)
		if unsettled(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for the end: %w", err)
		}
		if now := e.Stats().Processed; lag > 0 || now != processed {
			processed, quiet = now, 0
			continue
		}
		quiet++
	}
	return nil
}

// inputTopics lists what the application reads: its sources, and of its internal topics those that it reads again.
func inputTopics(p *topology.Plan) []string {
	var topics []string
	for _, sub := range p.Internal().Subtopologies {
		topics = append(topics, sub.SourceTopics...)
	}
	return topics
}

// EmitDay emits the day and does nothing else.
func EmitDay(ctx context.Context, cfg Config) (_ *Emission, err error) {
	c, days, err := cfg.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Prepare(ctx); err != nil {
		return nil, err
	}
	if err := days.note(cfg.Spec.Date); err != nil {
		return nil, err
	}
	e := &Emission{}
	return e, Emit(ctx, c.client, cfg.Spec, c.schemaIDs, e)
}

// Serve runs one instance until ctx ends.
func Serve(ctx context.Context, cfg Config) (err error) {
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return err
	}
	c, err := Connect(ctx, cfg.Dir, cfg.Brokers, cfg.Registry, cfg.Log, cfg.Client...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Prepare(ctx); err != nil {
		return err
	}
	plan, err := cfg.Plan(c)
	if err != nil {
		return err
	}
	e, err := cfg.Engine(c, plan)
	if err != nil {
		return err
	}
	if cfg.Out == nil {
		return e.Run(ctx)
	}
	show := &progress{out: cfg.Out, engine: e}
	running, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { show.announce(running); return nil })
	err = e.Run(ctx)
	stop()
	return errors.Join(err, g.Wait())
}
