package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	megabytes int
	value     int
	rounds    int
	probe     time.Duration
	heap      string
	verbose   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.IntVar(&o.megabytes, "mb", 1000, "size of the task's state, in MB of keys and values")
	flag.IntVar(&o.value, "value", 1000, "size of a value, in bytes")
	flag.IntVar(&o.rounds, "rounds", 3, "how often to measure")
	flag.DurationVar(&o.probe, "probe", 10*time.Millisecond, "time between two probes")
	flag.StringVar(&o.heap, "broker-heap", "1g", "memory of the broker's JVM")
	flag.BoolVar(&o.verbose, "v", false, "show the instances' log")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "movetask:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	s, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	var all []round
	for i := range o.rounds {
		r, err := s.round(ctx, i)
		if err != nil {
			return err
		}
		all = append(all, r)
		fmt.Println(r)
	}
	fmt.Print(summary(all))
	return nil
}
