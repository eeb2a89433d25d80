package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// tail is how many commits there are behind the last checkpoint: half of what the usual interval of 100 leaves at the most.
const tail = 50

// buildLong makes the log of a table with so many commits, as a sink leaves it that has run for long: an entry and a checksum for each,
// a checkpoint near the end, four partitions' progress. The data files' names lead nowhere, since opening doesn't look at them. In a
// second folder it leaves the same entries alone, so that opening has to replay them all.
func buildLong(ctx context.Context, dir, bare string, commits int, sample [][]byte) error {
	memory := object.NewMemory("build")
	interval := max(commits-tail, 1)
	w, err := openSink(ctx, "memory", lake.Store(memory), lake.Properties(map[string]string{"delta.checkpointInterval": fmt.Sprint(interval)}))
	if err != nil {
		return err
	}
	l := &lander{w: w, next: sink.NoOffset}
	b, err := l.fill(sample)
	if err != nil {
		return err
	}
	if err := l.commit(ctx, b); err != nil { // version 1, whose statistics the others get
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := extend(ctx, memory, commits, int64(len(sample))); err != nil {
		return err
	}
	return dump(ctx, memory, dir, bare)
}

// extend commits up to a version.
func extend(ctx context.Context, store object.Store, commits int, rows int64) error {
	t, err := delta.Open(ctx, store, delta.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	snap, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	var add delta.Add
	for a, err := range snap.Files(ctx) {
		if err != nil {
			return err
		}
		add = a
	}
	for v := t.Head().Version + 1; v <= int64(commits); v++ {
		name := delta.NewDataFileName("zstd")
		f, err := store.Create(ctx, name)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		add.Path = delta.EncodePath(name)
		c := delta.Commit{Add: []delta.Add{add}}
		for p := range 4 {
			id := fmt.Sprintf("bench/orders/orders@01000000-0000-0000-0000-000000000000/%d", p)
			from, ok := t.Head().Txn(id)
			c.Moves = append(c.Moves, delta.Move{AppID: id, First: !ok, From: from, To: from + rows/4})
		}
		if _, err := t.Commit(ctx, c); err != nil {
			return err
		}
		if err := t.Maintain(ctx); err != nil {
			return err
		}
		if v%20_000 == 0 {
			say("built %d of %d commits", v, commits)
		}
	}
	return nil
}

// dump writes a store's log to a folder, and its entries alone to another.
func dump(ctx context.Context, store object.Store, dir, bare string) error {
	for _, d := range []string{dir, bare} {
		if err := os.MkdirAll(filepath.Join(d, "_delta_log"), 0o755); err != nil {
			return err
		}
	}
	write := func(name string) error {
		data, err := store.Get(ctx, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".json") {
			return os.Link(filepath.Join(dir, name), filepath.Join(bare, name))
		}
		return nil
	}
	for info, err := range store.List(ctx, "_delta_log/", "") {
		if err != nil {
			return err
		}
		if err := write(info.Name); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "_delta_log", "_last_checkpoint")); err == nil {
		return nil
	}
	return write("_delta_log/_last_checkpoint") // a store may keep it from listings
}

// openLong opens the table for a sink and asks for its progress.
func openLong(ctx context.Context, dir string, commits int) (measure.Result, error) {
	began := time.Now()
	from := measure.Take()
	w, err := openSink(ctx, dir)
	if err != nil {
		return nil, err
	}
	progress, err := w.Progress(ctx, []sink.Partition{partition})
	took := time.Since(began)
	if err != nil {
		return nil, err
	}
	if progress[partition] <= 0 {
		return nil, fmt.Errorf("the table of %d commits shows progress %v", commits, progress)
	}
	r := measure.Result{openMS: float64(took.Microseconds()) / 1000}
	r.Add(from, measure.Take(), 0)
	return r, w.Close()
}

// replayLong opens the table from its entries alone.
func replayLong(ctx context.Context, dir string, commits int) (measure.Result, error) {
	store, err := object.NewLocal(dir)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	from := measure.Take()
	t, err := delta.Open(ctx, store, delta.Options{Logger: slog.New(slog.DiscardHandler)})
	took := time.Since(began)
	if err != nil {
		return nil, err
	}
	if v := t.Head().Version; v != int64(commits) {
		return nil, fmt.Errorf("the replay came to version %d, not %d", v, commits)
	}
	r := measure.Result{openMS: float64(took.Microseconds()) / 1000}
	r.Add(from, measure.Take(), 0)
	return r, nil
}
