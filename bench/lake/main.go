package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
)

type options struct {
	records, rows  int // of the throughput parts: of the input, and of a batch
	small, commits int // of the commits part: rows of a commit, and commits beside delta-rs's
	soak           int // commits of the soak; 0: none
	long           int // commits of the long log; 0: none
	compact        int // small files of the table that is compacted; 0: none
	rounds         int
	out            string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "child" {
		err = child(ctx, os.Args[2:])
	} else if len(os.Args) > 1 && os.Args[1] == "state" {
		err = stateBench(ctx, os.Args[2:])
	} else {
		err = bench(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lake:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("lake", flag.ExitOnError)
	flags.IntVar(&o.records, "records", 1_000_000, "events to land, per run")
	flags.IntVar(&o.rows, "rows", 50_000, "rows of a batch")
	flags.IntVar(&o.small, "small", 1000, "rows of a small commit")
	flags.IntVar(&o.commits, "commits", 500, "small commits of each side")
	flags.IntVar(&o.soak, "soak", 10_000, "small commits of ours in one run, to see that cost and memory stay; 0: none")
	flags.IntVar(&o.long, "long", 100_000, "commits of the table with a long log; 0: none")
	flags.IntVar(&o.compact, "compact", 1000, "small files of the table that is compacted; 0: none")
	flags.IntVar(&o.rounds, "rounds", 3, "runs of each side, in turn")
	flags.StringVar(&o.out, "out", "bench-report", "directory for lake.md and lake.json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.records < o.rows || o.records < o.small || min(o.rows, o.small, o.commits, o.rounds) < 1 {
		return fmt.Errorf("unusable arguments %v: at least one batch, one commit and one round", args)
	}
	s, err := begin(ctx, o)
	if err != nil {
		return err
	}
	err = s.all(ctx)
	return errors.Join(err, s.report.write(o.out), os.RemoveAll(s.dir))
}

// session is a folder with the input, in which runs make their tables.
type session struct {
	opts    options
	program string // this one
	python  string // with delta-rs; empty: none
	dir     string
	input   string
	report  *report
}

func begin(ctx context.Context, o options) (*session, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &session{opts: o, program: program, python: findPeer(ctx), report: &report{opts: o, began: time.Now()}}
	if s.dir, err = os.MkdirTemp("", "tributary-lake-bench-"); err != nil {
		return nil, err
	}
	s.input = filepath.Join(s.dir, "events")
	say("writing %d events", o.records)
	return s, writeEvents(s.input, o.records)
}

// all runs every part. What was measured before an error is in the report.
func (s *session) all(ctx context.Context) error {
	for _, part := range []string{partColumns, partAvro} {
		if err := s.inTurn(ctx, part, s.opts.rows, 0); err != nil {
			return err
		}
	}
	if err := s.inTurn(ctx, partCommits, s.opts.small, s.opts.commits); err != nil {
		return err
	}
	if s.opts.soak > 0 {
		if err := s.own(ctx, partCommits, soakName, s.table("soak"), s.opts.small, s.opts.soak); err != nil {
			return err
		}
	}
	if s.opts.compact > 0 {
		if err := s.compaction(ctx); err != nil {
			return err
		}
	}
	if s.opts.long > 0 {
		if err := s.longLog(ctx); err != nil {
			return err
		}
	}
	fmt.Print("\n" + s.report.text())
	return nil
}

// inTurn runs both sides round by round, each on a table of its own, which is removed afterwards.
func (s *session) inTurn(ctx context.Context, part string, rows, commits int) error {
	for range s.opts.rounds {
		own, other := s.table("own"), s.table("other")
		err := errors.Join(s.own(ctx, part, ownName, own, rows, commits), s.peer(ctx, part, other, rows, commits), os.RemoveAll(own), os.RemoveAll(other))
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) table(name string) string { return filepath.Join(s.dir, name) }

func (s *session) longLog(ctx context.Context) error {
	say("building a table of %d commits", s.opts.long)
	dir, bare := s.table("long"), s.table("bare")
	events, err := readEvents(s.input, s.opts.small)
	if err != nil {
		return err
	}
	if err := buildLong(ctx, dir, bare, s.opts.long, events); err != nil {
		return fmt.Errorf("build the long log: %w", err)
	}
	for range s.opts.rounds {
		if err := s.own(ctx, partOpen, ownName, dir, 0, s.opts.long); err != nil {
			return err
		}
		if err := s.own(ctx, partReplay, replayName, bare, 0, s.opts.long); err != nil {
			return err
		}
		if err := s.peer(ctx, partOpen, dir, 0, s.opts.long); err != nil {
			return err
		}
	}
	return nil
}

// own runs this program once.
func (s *session) own(ctx context.Context, part, who, dir string, rows, commits int) error {
	r, err := run(ctx, s.program, "child", "-part", part, "-dir", dir, "-input", s.input, "-rows", fmt.Sprint(rows), "-commits", fmt.Sprint(commits))
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	if part == partReplay {
		part = partOpen // that it is compared with
	}
	s.report.add(part, who, r)
	return nil
}

// runLimit bounds one run.
const runLimit = 30 * time.Minute

func run(ctx context.Context, program string, args ...string) (measure.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(complaints.Bytes()))
	}
	all, err := measure.Parse(out.String())
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("it printed %d results, not one", len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
