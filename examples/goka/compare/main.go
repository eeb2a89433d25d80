// Command compare runs the loyalty programme twice on the same input and broker, with goka and with Tributary, and compares what comes out: the
// tables, the rewards and the statements.
//
//	go run ./examples/goka/compare                         # an embedded broker
//	go run ./examples/goka/compare -brokers host:9092      # a cluster of yours
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lovoo/goka"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/engine"
	loyalty "github.com/tributary-io/tributary/examples/goka"
	"github.com/tributary-io/tributary/examples/goka/after"
	"github.com/tributary-io/tributary/examples/goka/before"
	"github.com/tributary-io/tributary/internal/embedded"
)

func main() {
	brokers := flag.String("brokers", "", "addresses of brokers, host:port, separated by commas; empty starts one in this process")
	purchases := flag.Int("purchases", 2000, "how many purchases are made")
	seed := flag.Uint64("seed", 1, "the same seed gives the same input")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *brokers, loyalty.NewWorld(*seed, 100, *purchases)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run compares both on brokers, or on one of its own.
func run(ctx context.Context, out io.Writer, brokers string, w loyalty.World) (err error) {
	dir, err := os.MkdirTemp("", "tributary-goka-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	addrs := strings.Split(brokers, ",")
	if brokers == "" {
		b, err := embedded.StartBroker(embedded.BrokerConfig{Logger: quiet})
		if err != nil {
			return err
		}
		defer b.Close()
		addrs = b.Addrs()
	}
	c, err := connect(addrs)
	if err != nil {
		return err
	}
	defer c.client.Close()
	return c.compare(ctx, out, dir, w)
}

// quiet tells what goes wrong.
var quiet = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))

// The groups of both runs.
const (
	groupBefore goka.Group = "loyalty-before"
	groupAfter  goka.Group = "loyalty-after"
)

func (c *cluster) compare(ctx context.Context, out io.Writer, dir string, w loyalty.World) error {
	if err := c.prepare(ctx, w); err != nil {
		return err
	}
	if err := c.buy(ctx, w.Purchases); err != nil {
		return err
	}
	results := map[goka.Group]outcome{}
	for _, way := range []struct {
		group goka.Group
		start starter
	}{{groupBefore, c.startBefore}, {groupAfter, c.startAfter}} {
		if err := c.create(ctx, "delete", string(loyalty.Rewards(way.group))); err != nil {
			return err
		}
		if err := c.yearOf(ctx, way.group, way.start, filepath.Join(dir, string(way.group))); err != nil {
			return fmt.Errorf("%s: %w", way.group, err)
		}
		var err error
		if results[way.group], err = c.outcome(ctx, way.group); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%-16s %9s %9s %10s %8s %11s\n", "", "accounts", "points", "purchases", "rewards", "statements")
	for _, line := range []struct {
		name string
		outcome
	}{{"goka", results[groupBefore]}, {"tributary", results[groupAfter]}, {"as it should be", expected(w, true)}} {
		accounts, points, purchases, rewards, statements := line.totals()
		fmt.Fprintf(out, "%-16s %9d %9d %10d %8d %11d\n", line.name, accounts, points, purchases, rewards, statements)
	}
	for _, group := range []goka.Group{groupBefore, groupAfter} {
		if diff := cmp.Diff(expected(w, true), results[group]); diff != "" {
			return fmt.Errorf("%s has other results than the input calls for (-want +got):\n%s", group, diff)
		}
	}
	fmt.Fprintln(out, "both tables, all rewards and all statements are the same")
	return nil
}

// starter starts an instance: visit sends the statements, stop ends it.
type starter func(ctx context.Context, group goka.Group, dir string) (visit func(context.Context) error, stop func() error, err error)

// yearOf runs an instance until the input is processed and the statements are sent.
func (c *cluster) yearOf(ctx context.Context, group goka.Group, start starter, dir string) error {
	visit, stop, err := start(ctx, group, dir)
	if err != nil {
		return err
	}
	err = c.through(ctx, group)
	if err == nil {
		err = visit(ctx)
	}
	return errors.Join(err, stop())
}

// startBefore runs goka. What it returns visits all keys, and stops it.
func (c *cluster) startBefore(ctx context.Context, group goka.Group, dir string) (visit func(context.Context) error, stop func() error, err error) {
	p, err := before.New(before.Config{Brokers: c.addrs, Group: group, StateDir: dir})
	if err != nil {
		return nil, nil, err
	}
	stop = background(ctx, p.Run)
	visit = func(ctx context.Context) error { return p.VisitAll(ctx, loyalty.YearEnd, "2026") }
	return visit, stop, p.WaitForReadyContext(ctx)
}

// startAfter runs Tributary's engine.
func (c *cluster) startAfter(ctx context.Context, group goka.Group, dir string) (visit func(context.Context) error, stop func() error, err error) {
	app, e, err := after.New(after.Config{
		Brokers: c.addrs, Group: group, StateDir: dir, Options: []engine.Option{engine.Logger(quiet)},
	})
	if err != nil {
		return nil, nil, err
	}
	visit = func(ctx context.Context) error {
		_, err := app.VisitAll(ctx, loyalty.YearEnd, "2026")
		return err
	}
	return visit, background(ctx, e.Run), nil
}

// background runs something until it is stopped.
func background(ctx context.Context, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}
