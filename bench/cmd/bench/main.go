package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the command's flags.
type options struct {
	workloads []string
	peers     string // directory of the peers' programs, built; empty: none
	against   string // another build of this program
	records   int
	keys      int
	rounds    int
	commit    time.Duration
	out       string // directory of the report
	profile   bool
	memory    int // MB
	heap      string
	scale     scaleOptions
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "child" {
		err = childMain(ctx, os.Args[2:])
	} else {
		err = bench(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, args []string) error {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	list := flags.String("workload", "a,b,c,d,e,f,g,h,i", "which workloads, by comma, scaling among them; see bench/README.md")
	flags.StringVar(&o.peers, "peers", "", "directory of the peers' programs, built; without it they are left out")
	flags.StringVar(&o.against, "against", "", "another build of this program to compare with: before and after a change")
	flags.IntVar(&o.records, "records", 2_000_000, "records of the input")
	flags.IntVar(&o.keys, "keys", 1_000_000, "orders, which are the keys of workload d")
	flags.IntVar(&o.rounds, "rounds", 3, "runs of each program, in turn")
	flags.DurationVar(&o.commit, "commit", 100*time.Millisecond, "commit interval")
	flags.StringVar(&o.out, "out", "bench-report", "directory for report.md, report.json and profiles")
	flags.BoolVar(&o.profile, "profile", true, "run Tributary once more in each workload, uncounted, and keep CPU and allocation profiles beside the report")
	flags.IntVar(&o.memory, "memory", 144, "Tributary's memory budget in MB (engine.MemoryBudget), 0: none")
	flags.StringVar(&o.heap, "broker-heap", "1g", "memory of the broker's JVM")
	flags.StringVar(&o.scale.parts, "scale-parts", "instances,keys,windows,tasks", "which parts of the workload scaling, by comma")
	flags.IntVar(&o.scale.records, "scale-records", 1_000_000, "records that are measured for each point of scaling")
	flags.IntVar(&o.scale.keys, "scale-keys", 10_000_000, "keys of scaling, at most")
	flags.IntVar(&o.scale.windows, "scale-windows", 10_000, "live windows of a key of scaling, at most")
	flags.IntVar(&o.scale.tasks, "scale-tasks", 2_000, "tasks of one instance of scaling, at most")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag: workloads are chosen by -workload", flags.Arg(0))
	}
	o.workloads = strings.Split(*list, ",")
	scales := slices.Contains(o.workloads, scalingWorkload)
	o.workloads = slices.DeleteFunc(o.workloads, func(w string) bool { return w == scalingWorkload })
	if len(o.workloads) > 0 {
		if err := compare(ctx, o); err != nil {
			return err
		}
	}
	if scales {
		return scale(ctx, o)
	}
	return nil
}

// budget is the memory budget as a child's argument, in bytes.
func (o options) budget() string { return fmt.Sprint(o.memory << 20) }

// compare runs the workloads that others run, too.
func compare(ctx context.Context, o options) error {
	s, err := begin(ctx, o)
	if err != nil {
		return err
	}
	rep, err := s.all(ctx)
	return errors.Join(err, rep.write(o.out), s.end())
}
