package ods

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/tributary-io/tributary/engine/devbroker"
	"github.com/tributary-io/tributary/examples/shop"
)

const usage = `usage: run COMMAND [flags]

  demo                            the life of a stream, from its declaration to what is published of it
  init                            write the declarations into ods-data/streams
  emit --date D [--channel C]     a day of the shop's events; with --channel those of a newer producer
  land [--until-landed]           land them, until SIGTERM or until all has landed
  serve                           land, and rebuild and publish at the sink's notices, until SIGTERM
  rebuild                         rebuild the staging table
  publish                         publish what is new in it
  prove                           send generated rows through everything and compare what comes back
  status                          how far the topic has landed
  count                           rows of the tables and published records

Flags: --dir (ods-data; ods-demo for the demonstration), --brokers and --registry (ODS_SINK_BROKERS, ODS_SINK_REGISTRY; without them both run in this
process and keep their data in --dir), --lake (ODS_SINK_LAKE; DIR/lake), --orders a day, --seed, --rows of the proof, --observe, --notice, -v.
The sink's other settings come from the environment: ODS_SINK_…, see docs/operations/land.md.
`

type flags struct {
	dir, brokers, registry, lake string
	date, channel                string
	orders, rows                 int
	seed                         uint64
	untilLanded, verbose         bool
	pace                         Pace
}

func parse(name string, args []string) (f flags, err error) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	dir := "ods-data"
	if name == "demo" {
		dir = "ods-demo" // it starts from nothing
	}
	set.StringVar(&f.dir, "dir", dir, "")
	set.StringVar(&f.brokers, "brokers", os.Getenv("ODS_SINK_BROKERS"), "")
	set.StringVar(&f.registry, "registry", os.Getenv("ODS_SINK_REGISTRY"), "")
	set.StringVar(&f.lake, "lake", os.Getenv("ODS_SINK_LAKE"), "")
	set.StringVar(&f.date, "date", "2026-06-01", "")
	set.StringVar(&f.channel, "channel", "", "")
	set.IntVar(&f.orders, "orders", 500, "")
	set.IntVar(&f.rows, "rows", 2000, "")
	set.Uint64Var(&f.seed, "seed", 1, "")
	set.BoolVar(&f.untilLanded, "until-landed", false, "")
	set.DurationVar(&f.pace.Observe, "observe", 0, "")
	set.DurationVar(&f.pace.Notice, "notice", 0, "")
	set.BoolVar(&f.verbose, "v", false, "")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("%s takes no arguments, but %q is given", name, set.Args())
	}
	return f, nil
}

// Command is the example's program: it runs one of the commands that the usage lists. Brokers and registry that neither flags nor the environment
// give are started in this process.
func Command(ctx context.Context, out io.Writer, args []string) (err error) {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("a command is missing")
	}
	f, err := parse(args[0], args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	date, err := shop.ParseDate(f.date)
	if err != nil {
		return err
	}
	declarations := filepath.Join(f.dir, "streams")
	if err := Init(declarations); err != nil {
		return err
	}
	if args[0] == "init" {
		fmt.Fprintln(out, "declarations are in", declarations)
		return nil
	}
	p, end, err := f.platform(declarations)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	return f.command(ctx, out, args[0], p, shop.Spec{Date: date, Orders: f.orders, Seed: f.seed})
}

// platform starts what is not given, below the folder; end stops it.
func (f *flags) platform(declarations string) (p *Platform, end func() error, err error) {
	level := slog.LevelError
	if f.verbose {
		level = slog.LevelInfo
	}
	p = &Platform{Registry: f.registry, Lake: cmp.Or(f.lake, filepath.Join(f.dir, "lake")), Declarations: declarations,
		State: filepath.Join(f.dir, "state"), Getenv: os.Getenv, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))}
	var closers []func() error
	end = func() error {
		var errs []error
		for _, c := range closers {
			errs = append(errs, c())
		}
		return errors.Join(errs...)
	}
	if f.brokers != "" {
		p.Brokers = strings.Split(f.brokers, ",")
	} else {
		b, err := devbroker.Start(devbroker.Config{Dir: filepath.Join(f.dir, "broker"), Logger: p.Log})
		if err != nil {
			return nil, nil, err
		}
		closers = append(closers, b.Close)
		p.Brokers = b.Addrs()
	}
	if p.Registry == "" {
		r, err := devbroker.StartRegistry(devbroker.RegistryConfig{Dir: filepath.Join(f.dir, "registry")})
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		closers = append(closers, r.Close)
		p.Registry = r.URL()
	}
	return p, end, nil
}

func (f *flags) command(ctx context.Context, out io.Writer, name string, p *Platform, spec shop.Spec) error {
	switch name {
	case "demo":
		d := Demo{Platform: p, Spec: spec, Rows: f.rows, Out: out}
		return d.Run(ctx)
	case "emit":
		return f.emit(ctx, out, p, spec)
	case "land":
		return p.Land(ctx, OrderTopic, f.untilLanded)
	case "serve":
		return p.Serve(ctx, f.pace)
	case "rebuild":
		r, err := p.Rebuild(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "staging, version %d: %d new events, %d repetitions left out\n", r.Version, r.Added, r.Repeated)
		return nil
	case "publish":
		n, err := p.Publish(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "published %d events to %s\n", n, StagedTopic)
		return nil
	case "prove":
		proof, err := p.Prove(ctx, OrderTopic, f.rows)
		if err != nil {
			return err
		}
		if proof.Differing > 0 {
			return fmt.Errorf("%d of %d rows differ: %v", proof.Differing, proof.Rows, proof.Differences)
		}
		fmt.Fprintf(out, "%d generated rows came back identical, in %d commits\n", proof.Rows, proof.Batches)
		return nil
	case "status":
		s, err := p.Status(ctx, OrderTopic)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d records, %d wait; schema version %d; %s, version %d\n", s.Topic, s.Events, s.Lag, s.SchemaVersion, s.Table, s.TableVersion)
		return nil
	case "count":
		return count(ctx, out, p)
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("there is no command %s", name)
}

func (f *flags) emit(ctx context.Context, out io.Writer, p *Platform, spec shop.Spec) error {
	var n int64
	var err error
	if f.channel != "" {
		n, err = p.EmitChannel(ctx, spec, f.channel)
	} else {
		n, err = p.Emit(ctx, spec)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: sent %d records to %s\n", f.date, n, OrderTopic)
	return nil
}

func count(ctx context.Context, out io.Writer, p *Platform) error {
	c, err := p.Count(ctx)
	if err != nil {
		return err
	}
	published := 0
	for _, err := range p.Published(ctx) {
		if err != nil {
			return err
		}
		published++
	}
	fmt.Fprintf(out, "%v; published: %d\n", c, published)
	return nil
}
