package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/bench/internal/workload"
)

// The roles of a child process.
const (
	roleEngine  = "engine"
	roleRaw     = "raw"
	roleHarness = "harness"
	roleGoka    = "goka"
	roleScaling = "scaling"
)

// childMain is one run in a process of its own. It prints its results.
func childMain(ctx context.Context, args []string) error {
	var cfg workload.Config
	flags := flag.NewFlagSet("bench child", flag.ExitOnError)
	role := flags.String("role", roleEngine, "")
	brokers := flags.String("brokers", "", "")
	launched := flags.Int64("launched", 0, "Unix time in ns")
	flags.StringVar(&cfg.Workload, "w", "a", "")
	flags.StringVar(&cfg.Application, "app", "bench", "")
	flags.StringVar(&cfg.StateDir, "state-dir", "", "")
	flags.DurationVar(&cfg.Commit, "commit", 100*time.Millisecond, "")
	flags.Int64Var(&cfg.KillAt, "kill-at", 0, "")
	flags.StringVar(&cfg.Profile, "profile", "", "")
	flags.BoolVar(&cfg.ProfileStart, "profile-start", false, "")
	flags.IntVar(&cfg.Records, "records", 200_000, "")
	flags.IntVar(&cfg.Keys, "keys", 100_000, "")
	flags.IntVar(&cfg.Rounds, "rounds", 4, "")
	flags.StringVar(&cfg.Topic, "topic", "", "")
	flags.Int64Var(&cfg.Skip, "skip", 0, "")
	flags.StringVar(&cfg.Start, "start", "", "")
	flags.Int64Var(&cfg.Memory, "memory", 0, "")
	flags.DurationVar(&cfg.Window, "window", time.Second, "")
	flags.BoolVar(&cfg.OnDisk, "disk", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg.Brokers, cfg.Out = strings.Split(*brokers, ","), cfg.Application+"-out"
	if *launched > 0 {
		cfg.Launched = time.Unix(0, *launched)
	}
	results, err := runChild(ctx, *role, cfg)
	for _, r := range results {
		if werr := r.Write(os.Stdout); werr != nil {
			return werr
		}
	}
	return err
}

func runChild(ctx context.Context, role string, cfg workload.Config) ([]measure.Result, error) {
	switch role {
	case roleHarness:
		return workload.RunHarness(cfg)
	case roleRaw:
		r, err := workload.RunRaw(ctx, cfg)
		return []measure.Result{r}, err
	case roleGoka:
		r, err := workload.RunGoka(ctx, cfg)
		return []measure.Result{r}, err
	case roleScaling:
		r, err := workload.RunScaling(ctx, cfg)
		return []measure.Result{r}, err
	case roleEngine:
		r, err := workload.RunEngine(ctx, cfg)
		return []measure.Result{r}, err
	}
	return nil, fmt.Errorf("there is no role %q", role)
}
