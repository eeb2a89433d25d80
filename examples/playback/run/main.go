// Command run is the playback example's program: producer, landers and views. Its README tells how to use it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/engine/devbroker"
	"github.com/tributary-io/tributary/examples/playback"
)

const usage = `usage: run COMMAND [flags]

  demo [--sessions N]                      everything once, on a broker in this process, or with --brokers on a cluster
  create-topic                             the events' topic: 6 partitions, 7 days
  create-table                             the landing table
  produce --generate --sessions N          generated events; --seed S for others; --print writes JSON Lines instead
  produce FILE                             events from a file of JSON Lines
  land [--at-least-once]                   events into the landing table, until SIGTERM
  views                                    sessions, watch time and viewers, until SIGTERM
  rebuild --into NAME                      the landing table made again from the topic
  count [--appended] [--table NAME]        rows and different events of a table

Settings come from the environment: KAFKA_BOOTSTRAP, STREAMING_… and AWS_REGION; see the README. --brokers goes before KAFKA_BOOTSTRAP.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "playback:", err)
		os.Exit(1)
	}
}

type flags struct {
	brokers                             string
	sessions                            int
	seed                                uint64
	generate, print, atLeastOnce, quiet bool
	appended                            bool
	into, table                         string
	args                                []string
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("a command is missing")
	}
	var f flags
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	set.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	set.StringVar(&f.brokers, "brokers", "", "")
	set.IntVar(&f.sessions, "sessions", 200, "")
	set.Uint64Var(&f.seed, "seed", 1, "")
	set.BoolVar(&f.generate, "generate", false, "")
	set.BoolVar(&f.print, "print", false, "")
	set.BoolVar(&f.atLeastOnce, "at-least-once", false, "")
	set.BoolVar(&f.quiet, "quiet", false, "")
	set.BoolVar(&f.appended, "appended", false, "")
	set.StringVar(&f.into, "into", "", "")
	set.StringVar(&f.table, "table", "", "")
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	f.args = set.Args()
	level := slog.LevelInfo
	if f.quiet {
		level = slog.LevelWarn
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if args[0] == "demo" && f.brokers == "" && os.Getenv("KAFKA_BOOTSTRAP") == "" {
		broker, err := devbroker.Start(devbroker.Config{Logger: log})
		if err != nil {
			return err
		}
		defer broker.Close()
		f.brokers = strings.Join(broker.Addrs(), ",")
	}
	if args[0] == "produce" && f.print {
		return playback.WriteEvents(os.Stdout, f.events())
	}
	s, err := playback.FromEnvironment(func(name string) (string, bool) {
		if name == "KAFKA_BOOTSTRAP" && f.brokers != "" {
			return f.brokers, true
		}
		return os.LookupEnv(name)
	})
	if err != nil {
		return err
	}
	return f.command(ctx, args[0], s, log)
}

func (f *flags) events() []playback.Event {
	return playback.Generator{Seed: f.seed, Sessions: f.sessions, Start: time.Now().UTC().Truncate(time.Hour).Add(-12 * time.Hour)}.Events()
}

func (f *flags) command(ctx context.Context, name string, s playback.Settings, log *slog.Logger) error {
	switch name {
	case "demo":
		return f.demo(ctx, s, log)
	case "create-topic":
		return playback.CreateTopics(ctx, s)
	case "create-table":
		return playback.CreateTable(ctx, s, log)
	case "produce":
		return f.produce(ctx, s)
	case "land":
		if f.atLeastOnce {
			return playback.Append(ctx, s, log)
		}
		return playback.Land(ctx, s, log)
	case "views":
		return views(ctx, s, log)
	case "rebuild":
		return playback.Rebuild(ctx, s, f.into, log)
	case "count":
		table := cmp.Or(f.table, s.Table)
		if f.appended {
			table = s.AppendTable()
		}
		return count(ctx, s, table)
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("there is no command %q", name)
}

func (f *flags) produce(ctx context.Context, s playback.Settings) error {
	events := f.events()
	if !f.generate {
		if len(f.args) != 1 {
			return errors.New("produce wants --generate, or one file of JSON Lines")
		}
		file, err := os.Open(f.args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		if events, err = playback.ReadEvents(file); err != nil {
			return fmt.Errorf("%s: %w", f.args[0], err)
		}
	}
	if err := playback.Produce(ctx, s, events); err != nil {
		return err
	}
	x := playback.Expect(events)
	fmt.Printf("produced %d records of %d events to %s\n", x.Records, x.Events, s.Topic)
	return nil
}

func views(ctx context.Context, s playback.Settings, log *slog.Logger) error {
	plan, err := playback.Views(s)
	if err != nil {
		return err
	}
	if err := playback.CreateViewTopics(ctx, s); err != nil {
		return err
	}
	opts := []engine.Option{engine.Brokers(s.Brokers...), engine.StateDir(s.StateDir + "-views"), engine.Logger(log), engine.ReplicationFactor(int16(s.Replication))}
	if s.HTTP != "" {
		opts = append(opts, engine.HTTP(s.HTTP))
	}
	e, err := engine.New(plan, opts...)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

func count(ctx context.Context, s playback.Settings, table string) error {
	rows, events, err := playback.Count(ctx, s, table)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d rows, %d different events\n", table, rows, events)
	return nil
}

// demo creates topic and table, produces, lands everything both ways, and counts.
func (f *flags) demo(ctx context.Context, s playback.Settings, log *slog.Logger) error {
	s.MaxAge = time.Second
	if err := playback.CreateTopics(ctx, s); err != nil {
		return err
	}
	if err := playback.CreateTable(ctx, s, log); err != nil {
		return err
	}
	f.generate = true
	if err := f.produce(ctx, s); err != nil {
		return err
	}
	landing, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- playback.Land(landing, s, log) }()
	waited := make(chan error, 1)
	go func() { waited <- playback.WaitLanded(landing, s, log) }()
	select {
	case err := <-done:
		return err
	case err := <-waited:
		if err != nil {
			return err
		}
	}
	stop()
	if err := <-done; err != nil {
		return err
	}
	return count(ctx, s, s.Table)
}
