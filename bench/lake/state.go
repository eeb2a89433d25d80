package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// account is a row of the table of current state: about 100 bytes.
type account struct {
	ID      int64  `lake:"id"`
	LSN     int64  `lake:"lsn"`
	Name    string `lake:"name"`
	Country string `lake:"country"`
	Balance int64  `lake:"balance,decimal(15,2)"`
	Note    string `lake:"note"`
}

type stateOptions struct {
	rows, batch int
	dir         string
}

// stateBench fills a table of current state and then changes one and ten per cent of its rows, drawn at random from all of them: by writing
// files anew and with deletion vectors.
func stateBench(ctx context.Context, args []string) (err error) {
	var o stateOptions
	flags := flag.NewFlagSet("lake state", flag.ExitOnError)
	flags.IntVar(&o.rows, "rows", 10_000_000, "rows of the table")
	flags.IntVar(&o.batch, "batch", 500_000, "rows of a batch while the table is filled; also the most rows of a batch of changes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.rows < 1000 || o.batch < 1 || flags.NArg() > 0 {
		return fmt.Errorf("unusable arguments %v: at least 1000 rows", args)
	}
	if o.dir, err = os.MkdirTemp("", "tributary-lake-state-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	fmt.Printf("%d rows, batches of up to %d, %s, %d CPUs\n", o.rows, o.batch, runtime.Version(), runtime.GOMAXPROCS(0))
	for _, kind := range []string{"vectors", "copy"} {
		if err := stateRun(ctx, os.Stdout, o, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func stateRun(ctx context.Context, out io.Writer, o stateOptions, kind string) error {
	dir := filepath.Join(o.dir, kind)
	opts := []lake.Option{lake.CurrentState("id"), lake.OrderBy("lsn"), lake.IndexDir(dir + "-index")}
	if kind == "vectors" {
		opts = append(opts, lake.DeletionVectors())
	}
	w, err := openState(ctx, dir, opts)
	if err != nil {
		return err
	}
	l := &stateLander{w: w, next: sink.NoOffset, r: rand.New(rand.NewPCG(1, 1))}
	fill := func() error { return l.land(ctx, o.rows, o.batch, func(i int) int64 { return int64(i) }) }
	if err := statePart(out, kind, "filled", o.rows, dir, fill); err != nil {
		return err
	}
	for _, percent := range []int{1, 10} {
		n := o.rows * percent / 100
		ids := l.r.Perm(o.rows)[:n]
		change := func() error { return l.land(ctx, n, o.batch, func(i int) int64 { return int64(ids[i]) }) }
		if err := statePart(out, kind, fmt.Sprintf("changed %d %%", percent), n, dir, change); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	for _, part := range []struct {
		what string
		opts []lake.Option
	}{{"opened with its index", opts}, {"opened, index from the table", append(opts[:2:2], lake.IndexDir(dir+"-index-2"))}} {
		open := func() (err error) { w, err = openState(ctx, dir, part.opts); return err }
		if err := statePart(out, kind, part.what, o.rows, dir, open); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// statePart runs one part and writes a line: what, rows, time, rows a second, CPU, load of the machine, and what the table then looks like.
func statePart(out io.Writer, kind, what string, rows int, dir string, run func() error) error {
	before := measure.Take()
	if err := run(); err != nil {
		return err
	}
	after := measure.Take()
	files, bytes := 0, int64(0)
	found, _ := filepath.Glob(filepath.Join(dir, "*.parquet")) // a pattern that is always good
	for _, f := range found {
		if info, err := os.Stat(f); err == nil {
			files++
			bytes += info.Size()
		}
	}
	took := after.At.Sub(before.At).Seconds()
	fmt.Fprintf(out, "%-8s %-30s %10d rows %8.2f s %9.0f rows/s, CPU %8.2f s %7.2f µs a row, load %4.1f; %d data files on disk, old ones too, %d MB\n",
		kind, what, rows, took, float64(rows)/took, after.Self-before.Self, (after.Self-before.Self)/float64(rows)*1e6, measure.Load(), files, bytes>>20)
	return nil
}

func openState(ctx context.Context, dir string, opts []lake.Option) (sink.Writer, error) {
	s := lake.Delta(dir, opts...)
	if err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[account]()); err != nil {
		return nil, err
	}
	return s.Open(ctx, sink.Env{ApplicationID: "bench", Name: "state", Logger: slog.New(slog.DiscardHandler), Now: time.Now})
}

// stateLander lands changes of accounts. Each is newer than all before.
type stateLander struct {
	w    sink.Writer
	next int64
	r    *rand.Rand
}

// land lands n changes.
func (l *stateLander) land(ctx context.Context, n, batch int, id func(int) int64) error {
	for from := 0; from < n; from += batch {
		b := l.w.NewBatch()
		to := min(from+batch, n)
		for i := from; i < to; i++ {
			next := max(l.next, 0) + int64(i-from)
			a := account{ID: id(i), LSN: next + 1, Name: fmt.Sprintf("account number %d", id(i)), Country: countries[l.r.IntN(len(countries))],
				Balance: l.r.Int64N(1e9), Note: fmt.Sprintf("changed at %d by %d", next, l.r.Uint32())}
			if err := b.Append(nil, &a, &sink.Meta{Topic: "accounts", Offset: next}); err != nil {
				return err
			}
		}
		move := sink.Move{Partition: sink.Partition{Topic: "accounts"}, From: l.next, To: max(l.next, 0) + int64(to-from)}
		if _, err := l.w.Commit(ctx, b, []sink.Move{move}); err != nil {
			return err
		}
		b.Release()
		l.next = move.To
	}
	return nil
}

var countries = []string{"AT", "BE", "CH", "DE", "DK", "ES", "FI", "FR", "GB", "IT", "NL", "NO", "PL", "PT", "SE"}
