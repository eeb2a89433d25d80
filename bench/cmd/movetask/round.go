package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/engine"
)

// round is what one round measured.
type round struct {
	bytes      int64         // of the task's files
	copied     time.Duration // as an operator does who wants the copy to survive: each file synced
	unsynced   time.Duration // as cp does: into the system's memory
	checkpoint time.Duration // until the standby follows
	adopted    time.Duration // of that, until the files are there and checked
	standby    time.Duration // the longest time without results when the standby took over
	changelog  time.Duration // the same where the state had to be restored
	restore    time.Duration // of that, reading the changelog
	records    int64         // read then
	restored   int64         // records read when the standby took over
}

func (r round) String() string {
	return fmt.Sprintf("files %d MB: copying %.2f s, unsynced %.2f s; checkpoint %.2f s (%.2f times the copy; files there after %.2f s); pause with a standby %.2f s (%d records restored); pause with the changelog %.2f s (restore %.2f s, %d records, %.2f times the copy)",
		r.bytes>>20, r.copied.Seconds(), r.unsynced.Seconds(), r.checkpoint.Seconds(), ratio(r.checkpoint, r.copied), r.adopted.Seconds(), r.standby.Seconds(), r.restored,
		r.changelog.Seconds(), r.restore.Seconds(), r.records, ratio(r.restore, r.copied))
}

func ratio(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }

// summary shows the middle of all rounds with the least and the greatest.
func summary(all []round) string {
	var out strings.Builder
	fmt.Fprintln(&out, "\n| | median (least–greatest) |\n| --- | --- |")
	row := func(name, unit string, of func(round) float64) {
		v := make([]float64, len(all))
		for i, r := range all {
			v[i] = of(r)
		}
		slices.Sort(v)
		fmt.Fprintf(&out, "| %s | %.2f (%.2f–%.2f)%s |\n", name, v[len(v)/2], v[0], v[len(v)-1], unit)
	}
	row("copying the files", " s", func(r round) float64 { return r.copied.Seconds() })
	row("copying the files, unsynced", " s", func(r round) float64 { return r.unsynced.Seconds() })
	row("by checkpoint / copying", "", func(r round) float64 { return ratio(r.checkpoint, r.copied) })
	row("by changelog / copying", "", func(r round) float64 { return ratio(r.restore, r.copied) })
	row("pause, standby", " s", func(r round) float64 { return r.standby.Seconds() })
	row("pause, changelog", " s", func(r round) float64 { return r.changelog.Seconds() })
	return out.String()
}

// round measures everything once. At its beginning one instance has the task; at its end another one does.
func (s *session) round(ctx context.Context, n int) (r round, err error) {
	files := filepath.Join(s.holder.dir, application, task)
	settle(files)
	if err := s.copy(&r, files); err != nil {
		return r, err
	}
	warm, err := s.start(ctx, fmt.Sprintf("warm-%d", n), engine.Standbys(1), engine.ShipCheckpoints())
	if err != nil {
		return r, err
	}
	follows, err := warm.await(ctx, engine.StandbyFollows)
	if err != nil {
		return r, err
	}
	adopted, ok := warm.find(engine.CheckpointAdopted)
	if !ok {
		return r, errors.New("no checkpoint was taken over")
	}
	if err := s.copy(&r, files); err != nil { // the mean of before and after: the machine may be busier at one time than at another
		return r, err
	}
	r.copied, r.unsynced = r.copied/2, r.unsynced/2
	r.adopted = adopted.Took
	r.checkpoint = follows.at.Sub(adopted.at.Add(-adopted.Took))

	if r.standby, err = s.handOver(ctx, warm); err != nil {
		return r, err
	}
	took, _ := warm.last(engine.RestoreEnded)
	r.restored = took.Records

	if r.changelog, err = s.startCold(ctx, n); err != nil {
		return r, err
	}
	took, _ = s.holder.last(engine.RestoreEnded)
	r.restore, r.records = took.Took, took.Records
	return r, nil
}

// copy adds the times of copying the files.
func (s *session) copy(r *round, files string) (err error) {
	to := filepath.Join(s.dir, "copy")
	_, unsynced, err := copyFiles(files, to, false)
	if err != nil {
		return err
	}
	bytes, synced, err := copyFiles(files, to, true)
	r.bytes, r.unsynced, r.copied = bytes, r.unsynced+unsynced, r.copied+synced
	return err
}

// startCold closes the instance that has the task, starts another one without any state, and measures for how long no results come.
func (s *session) startCold(ctx context.Context, n int) (time.Duration, error) {
	s.probes.reset()
	if err := s.holder.stop(); err != nil {
		return 0, err
	}
	cold, err := s.start(ctx, fmt.Sprintf("cold-%d", n), engine.Standbys(1), engine.ShipCheckpoints()) // it is alone: there is nobody to ask
	if err != nil {
		return 0, err
	}
	s.holder = cold
	if err := cold.awaitRunning(ctx, 1); err != nil {
		return 0, err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return 0, err
	}
	return s.probes.longest(), nil
}

// handOver closes the instance that has the task, and measures for how long no results come until the other one has it.
func (s *session) handOver(ctx context.Context, to *instance) (time.Duration, error) {
	s.probes.reset()
	if err := sleep(ctx, time.Second); err != nil { // so that the pace is known
		return 0, err
	}
	if err := s.holder.stop(); err != nil {
		return 0, err
	}
	s.holder = to
	if err := to.awaitRunning(ctx, 1); err != nil {
		return 0, err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return 0, err
	}
	return s.probes.longest(), nil
}

// settle waits until the task's files stop changing: compactions are over.
func settle(dir string) {
	last, since := int64(-1), time.Now()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && time.Since(since) < 3*time.Second; time.Sleep(200 * time.Millisecond) {
		if size := measure.DirSize(dir); size != last {
			last, since = size, time.Now()
		}
	}
}

// copyFiles copies a directory, one file after the other.
func copyFiles(from, to string, synced bool) (bytes int64, took time.Duration, err error) {
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	entries, err := os.ReadDir(from)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	for _, e := range entries {
		n, err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), synced)
		if errors.Is(err, os.ErrNotExist) { // compacted away meanwhile
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		bytes += n
	}
	return bytes, time.Since(began), nil
}

func copyFile(from, to string, synced bool) (n int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, in)
	if synced {
		err = errors.Join(err, out.Sync())
	}
	return n, errors.Join(err, out.Close())
}
