// Movetask measures how long a task with much state takes to come to another instance: by a checkpoint, by its changelog, and by a standby that
// is there already, each beside the time of copying the same files.
//
// It starts a real Kafka broker, fills one task with rows, and then
//
//   - copies the task's files, synced, as an operator would;
//   - starts a second instance with a standby and checkpoints: the time from the first request to the standby following;
//   - closes the first instance, and measures how long no results come (probes are sent all the time): the move to the standby;
//   - closes the second, starts a third one without any state, and measures the same: the move by the changelog. Starting an instance takes some
//     tenths of a second of that.
//
// All of it runs -rounds times; the report has each round and the ratios.
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
