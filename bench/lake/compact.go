package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// Files of a table before and after it is compacted.
const (
	filesBefore = "files_before"
	filesAfter  = "files_after"
)

// compaction has both sides compact the same table of small files, in turn.
func (s *session) compaction(ctx context.Context) error {
	source := s.table("small")
	say("building a table of %d files", s.opts.compact)
	_, err := run(ctx, s.program, "child", "-part", partSmall, "-dir", source, "-rows", fmt.Sprint(s.opts.small), "-commits", fmt.Sprint(s.opts.compact))
	if err != nil {
		return err
	}
	for range s.opts.rounds {
		own, other := s.table("own"), s.table("other")
		err := errors.Join(linkTable(source, own), linkTable(source, other))
		if err == nil {
			err = errors.Join(s.own(ctx, partCompact, ownName, own, 0, 0), s.peer(ctx, partCompact, other, 0, 0))
		}
		if err = errors.Join(err, os.RemoveAll(own), os.RemoveAll(other)); err != nil {
			return err
		}
	}
	return nil
}

// buildSmall lands commits of so many events each, all of them different, so that each file has texts that the others don't have.
func buildSmall(ctx context.Context, dir string, rows, commits int) (measure.Result, error) {
	w, err := openSink(ctx, dir)
	if err != nil {
		return nil, err
	}
	l := &lander{w: w, next: sink.NoOffset}
	r := rand.New(rand.NewPCG(1, 2))
	events := make([][]byte, rows)
	for i := range commits {
		for n := range events {
			events[n] = appendEvent(nil, r, i*rows+n)
		}
		b, err := l.fill(events)
		if err != nil {
			return nil, err
		}
		if err := l.commit(ctx, b); err != nil {
			return nil, err
		}
	}
	return measure.Result{}, w.Close()
}

// linkTable makes a table of the same files: nobody writes into files that are there.
func linkTable(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return os.Link(path, filepath.Join(to, rel))
	})
}

// compact compacts a table, and makes sure that it has the same rows afterwards.
func compact(ctx context.Context, dir string) (measure.Result, error) {
	before, err := lake.Show(ctx, dir, 0)
	if err != nil {
		return nil, err
	}
	from := measure.Take()
	done, err := lake.Optimize(ctx, dir, lake.OptimizeOptions{})
	to := measure.Take()
	if err != nil {
		return nil, err
	}
	after, err := lake.Show(ctx, dir, 0)
	if err != nil {
		return nil, err
	}
	if after.Rows != before.Rows || done.Rows != before.Rows {
		return nil, fmt.Errorf("%d of %d rows were moved, and the table has %d", done.Rows, before.Rows, after.Rows)
	}
	r := measure.Result{filesBefore: float64(before.Files), filesAfter: float64(after.Files)}
	r.Add(from, to, done.Rows)
	return r, nil
}
