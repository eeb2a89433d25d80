package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/tributary-io/tributary/bench/internal/measure"
)

// The parts of the benchmark, which are also what a child process is told to do.
const (
	partColumns = "columns" // filled columns -> committed table
	partAvro    = "avro"    // Avro bytes -> committed table
	partCommits = "commits" // small commits
	partOpen    = "open"    // a long log
	partReplay  = "replay"  // the same log, entry by entry
	partSmall   = "small"   // making a table of many small files
	partCompact = "compact" // compacting it
)

// child is one run in a process of its own. It prints its result.
func child(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("lake child", flag.ExitOnError)
	part := flags.String("part", "", "")
	dir := flags.String("dir", "", "the table")
	input := flags.String("input", "", "")
	rows := flags.Int("rows", 0, "of a batch")
	commits := flags.Int("commits", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := runChild(ctx, *part, *dir, *input, *rows, *commits)
	if err != nil {
		return fmt.Errorf("%s: %w", *part, err)
	}
	return r.Write(os.Stdout)
}

func runChild(ctx context.Context, part, dir, input string, rows, commits int) (measure.Result, error) {
	switch part {
	case partOpen:
		return openLong(ctx, dir, commits)
	case partReplay:
		return replayLong(ctx, dir, commits)
	case partSmall:
		return buildSmall(ctx, dir, rows, commits)
	case partCompact:
		return compact(ctx, dir)
	}
	most := 0
	if part == partCommits {
		most = rows
	}
	events, err := readEvents(input, most)
	if err != nil {
		return nil, err
	}
	switch part {
	case partColumns, partAvro:
		return landAll(ctx, dir, events, rows, part == partColumns)
	case partCommits:
		return soak(ctx, dir, events, commits)
	}
	return nil, fmt.Errorf("there is no part %q", part)
}
