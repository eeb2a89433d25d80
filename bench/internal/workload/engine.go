package workload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/bench/internal/input"
	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/topology"
)

// pollEvery is the time between looks at the committed offsets, the same as in the peers' programs.
const pollEvery = 50 * time.Millisecond

// lookPerTask is the time between looks at an instance that starts, for each of its tasks.
const lookPerTask = 50 * time.Microsecond

// stuckAfter is when a run without progress is given up.
const stuckAfter = 2 * time.Minute

// RunEngine runs a workload on Tributary's engine, exactly once, with its default settings but for the commit interval, compression and memory, until its
// input is processed and committed.
func RunEngine(ctx context.Context, cfg Config) (measure.Result, error) {
	r, closeClient, err := newEngineRun(ctx, cfg, Input(cfg.Workload), func() (*topology.Plan, error) { return Build(cfg.Workload, cfg.Application, cfg.Out) })
	if err != nil {
		return nil, err
	}
	defer closeClient()
	return r.result, r.run(ctx)
}

// newEngineRun makes a run of a topology that reads a topic. The client that follows its progress has to be closed.
func newEngineRun(ctx context.Context, cfg Config, topic string, build func() (*topology.Plan, error), opts ...engine.Option) (*engineRun, func(), error) {
	if cfg.Memory > 0 {
		opts = append(opts, engine.MemoryBudget(cfg.Memory))
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...))
	if err != nil {
		return nil, nil, fmt.Errorf("client: %w", err)
	}
	r := &engineRun{cfg: cfg, result: measure.Result{"what": "tributary", "w": cfg.Workload}}
	if err := r.prepare(ctx, kadm.NewClient(client), topic, build, opts); err != nil {
		client.Close()
		return nil, nil, err
	}
	return r, client.Close, nil
}

// prepare makes the engine and who watches it.
func (r *engineRun) prepare(ctx context.Context, admin *kadm.Client, topic string, build func() (*topology.Plan, error), opts []engine.Option) error {
	cfg := r.cfg
	if err := input.CreateTopic(ctx, admin, cfg.Out); err != nil {
		return err
	}
	var err error
	if r.watcher, err = watch(ctx, admin, cfg.Application, topic); err != nil {
		return err
	}
	plan, err := build()
	if err != nil {
		return err
	}
	r.engine, err = engine.New(plan, append([]engine.Option{engine.Brokers(cfg.Brokers...), engine.StateDir(cfg.StateDir), engine.CommitInterval(cfg.Commit),
		engine.Client(kgo.ProducerBatchCompression(kgo.NoCompression())), // as the peers do by default
		engine.Logger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))}, opts...)...)
	return err
}

type engineRun struct {
	cfg     Config
	engine  *engine.Engine
	watcher *watcher
	result  measure.Result
	created time.Time

	begun bool
	from  measure.Snapshot // running, or the first record, whichever came first; or when enough was skipped
	// skipped is how many records were processed by then, where some are to be skipped.
	skipped int64
}

func (r *engineRun) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	before := measure.Take()
	r.created = before.At
	stop, err := profile(r.cfg.profileOfStart())
	if err != nil {
		return err
	}
	if r.cfg.Start != "" {
		r.engine.Pause()
	}
	go func() { ended <- r.engine.Run(ctx) }()
	err = r.follow(ctx, before, stop, ended)
	began := time.Now()
	cancel()
	err = errors.Join(err, <-ended)
	r.result["close_ms"] = time.Since(began).Milliseconds()
	r.result["state_bytes_closed"] = measure.DirSize(r.cfg.StateDir)
	return err
}

// follow looks at the instance until it is through. It calls started once all tasks run.
func (r *engineRun) follow(ctx context.Context, before measure.Snapshot, started func() error, ended chan error) error {
	running, err := r.awaitRunning(ended)
	if err := errors.Join(err, started()); err != nil {
		return err
	}
	if err := r.awaitStart(ctx, ended); err != nil {
		return err
	}
	if r.watcher.total == 0 && r.restored(r.engine.Stats()) == 0 {
		r.idle(before)
		return nil
	}
	stop, err := profile(r.cfg.profileOfWork())
	if err != nil {
		return err
	}
	if err := r.awaitDone(ctx, ended); err != nil {
		return err
	}
	to := measure.Take()
	if err := stop(); err != nil {
		return err
	}
	stats := r.engine.Stats()
	n := stats.Processed - r.skipped
	if r.cfg.Workload == "c" {
		n = r.watcher.total // a record is processed in both sub-topologies
	}
	r.result["commits"], r.result["aborted"], r.result["produced"] = stats.Commits, stats.Aborted, stats.Produced
	r.result["restored_records"] = r.restored(stats)
	if n == 0 { // all was done before: the restore is what is measured
		r.result.Add(before, running, r.restored(stats))
		return nil
	}
	r.result.Add(r.from, to, n)
	r.result["commit_share"] = r.inCommits() / to.At.Sub(r.created).Seconds()
	return nil
}

// inCommits is how many seconds the workers stood still for commits.
func (r *engineRun) inCommits() float64 {
	families, err := r.engine.Registry().Gather()
	if err != nil {
		return 0
	}
	for _, f := range families {
		if f.GetName() == "tributary_commit_duration_seconds" {
			return f.GetMetric()[0].GetHistogram().GetSampleSum()
		}
	}
	return 0
}

// awaitRunning waits until all tasks run, and notes how long that took.
func (r *engineRun) awaitRunning(ended chan error) (measure.Snapshot, error) {
	restoring := false
	for {
		s := r.engine.Stats()
		if !restoring && s.Processed == 0 {
			for _, t := range s.Tasks {
				if t.Restore.Active && t.Restore.Records > 0 {
					restoring = true
					r.result["start_to_restore_begin_ms"] = time.Since(r.created).Milliseconds()
				}
			}
		}
		r.sawRecord(s)
		if s.State == engine.Running || s.State == engine.Paused {
			now := measure.Take()
			r.result["start_to_running_ms"] = now.At.Sub(r.created).Milliseconds()
			if !r.cfg.Launched.IsZero() {
				r.result["launch_to_running_ms"] = now.At.Sub(r.cfg.Launched).Milliseconds()
			}
			if !r.begun {
				r.from = now
			}
			return now, nil
		}
		select {
		case err := <-ended:
			ended <- err
			return measure.Snapshot{}, errors.Join(errors.New("the engine ended while it was starting"), err)
		case <-time.After(max(time.Millisecond, time.Duration(len(s.Tasks))*lookPerTask)): // looking at many tasks must not be what is measured
		}
	}
}

// sawRecord notes the first record, once.
func (r *engineRun) sawRecord(s engine.Stats) {
	if r.begun || s.Processed == 0 {
		return
	}
	r.begun = true
	now := measure.Take()
	r.result["start_to_first_record_ms"] = now.At.Sub(r.created).Milliseconds()
	if r.from.At.IsZero() {
		r.from = now
	}
}

// awaitDone waits until the input's end is committed.
func (r *engineRun) awaitDone(ctx context.Context, ended chan error) error {
	last, moved, looked := int64(-1), time.Now(), time.Now()
	for {
		s := r.engine.Stats()
		r.sawRecord(s)
		if r.cfg.Skip > 0 && r.skipped == 0 && s.Processed >= r.cfg.Skip {
			r.skipped, r.from = s.Processed, measure.Take()
		}
		if r.cfg.KillAt > 0 && s.Processed >= r.cfg.KillAt {
			fmt.Fprintf(os.Stderr, "KILL at processed=%d\n", s.Processed)
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if s.Processed != last {
			last, moved = s.Processed, time.Now()
		}
		if time.Since(moved) > stuckAfter {
			return fmt.Errorf("no progress for %v at %d records, %d are left", stuckAfter, s.Processed, s.Lag)
		}
		if time.Since(looked) >= pollEvery {
			done, err := r.watcher.done(ctx)
			if done || err != nil {
				return err
			}
			looked = time.Now()
		}
		select {
		case err := <-ended:
			ended <- err
			return errors.Join(errors.New("the engine ended early"), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *engineRun) restored(s engine.Stats) (n int64) {
	for _, t := range s.Tasks {
		n += t.Restore.Records
	}
	return n
}
