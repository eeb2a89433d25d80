// Command run plays the primer's lessons and prints their results.
//
//	go run ./examples/streams-primer/run                                # all, on a broker in this process
//	go run ./examples/streams-primer/run windows join-table             # some
//	go run ./examples/streams-primer/run -brokers host:9092 revenue     # on a cluster
//	go run ./examples/streams-primer/run -describe                      # their topologies
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
	"strings"
	"syscall"

	primer "github.com/tributary-io/tributary/examples/streams-primer"
	"github.com/tributary-io/tributary/internal/embedded"
)

func main() {
	primer.MaybeVictim()
	brokers := flag.String("brokers", "", "addresses of brokers, host:port, separated by commas; empty starts one in this process")
	describe := flag.Bool("describe", false, "print the lessons' topologies, and play nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *brokers, *describe, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, brokers string, describe bool, names []string) (err error) {
	lessons := primer.Lessons
	if len(names) > 0 {
		lessons = nil
	}
	for _, name := range names {
		l, err := primer.Find(name)
		if err != nil {
			return err
		}
		lessons = append(lessons, l)
	}
	if describe {
		return describeAll(out, lessons)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	addrs := strings.Split(brokers, ",")
	if brokers == "" {
		b, err := embedded.StartBroker(embedded.BrokerConfig{Logger: log})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		addrs = b.Addrs()
	}
	for _, l := range lessons {
		fmt.Fprintf(out, "%s: %s\n", l.Name, l.Idea)
		result, err := primer.Play(ctx, l, addrs, out, log)
		if err != nil {
			return fmt.Errorf("lesson %s: %w", l.Name, err)
		}
		for _, line := range result {
			fmt.Fprintln(out, "  "+line)
		}
		fmt.Fprintln(out)
	}
	return nil
}

func describeAll(out io.Writer, lessons []*primer.Lesson) error {
	for _, l := range lessons {
		plan, err := l.Build(primer.App("primer"))
		if err != nil {
			return fmt.Errorf("lesson %s: %w", l.Name, err)
		}
		fmt.Fprintf(out, "%s\n%s\n", l.Name, plan.Describe())
	}
	return nil
}
