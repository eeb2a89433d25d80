package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// The workloads of scaling, on a topic of choice.
const (
	ScaleCount   = "scale-count"   // records by key, without output
	ScaleWindows = "scale-windows" // records by key and window, without output
	ScaleIdle    = "scale-idle"    // nothing
)

// scaleGrace keeps all windows of the input open, whatever order its records come in.
const scaleGrace = 24 * time.Hour

// idleAfter is how long an instance runs before its memory is read.
const idleAfter = 2 * time.Second

// buildScaling declares a workload of scaling.
func buildScaling(cfg Config) (*topology.Plan, error) {
	b := topology.NewBuilder(cfg.Application)
	in := b.Stream(cfg.Topic, serde.String, serde.Bytes)
	switch cfg.Workload {
	case ScaleCount:
		in.GroupByKey().Count(topology.Store(CountsStore))
	case ScaleWindows:
		in.GroupByKey().Windowed(topology.Tumbling(cfg.Window).Grace(scaleGrace)).Count(topology.Store("windows"))
	case ScaleIdle:
		in.ForEach(func(string, []byte) {})
	default:
		return nil, fmt.Errorf("there is no workload %q of scaling", cfg.Workload)
	}
	return b.Build()
}

// RunScaling runs a workload of scaling on one instance until the whole application is through with its input. Without records it measures the start, and
// the memory a while later.
func RunScaling(ctx context.Context, cfg Config) (measure.Result, error) {
	r, closeClient, err := newEngineRun(ctx, cfg, cfg.Topic, func() (*topology.Plan, error) { return buildScaling(cfg) },
		engine.MaxSkew(0)) // the windows' records come in any order: there is no backlog to read in step
	if err != nil {
		return nil, err
	}
	defer closeClient()
	return r.result, r.run(ctx)
}

// Ready is the file in the state directory that says that an instance waits for its start.
const Ready = "ready"

// awaitStart tells that the instance is there, and waits for the start if there is to be one.
func (r *engineRun) awaitStart(ctx context.Context, ended chan error) error {
	if r.cfg.Start == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(r.cfg.StateDir, Ready), nil, 0o644); err != nil {
		return fmt.Errorf("tell that the instance waits: %w", err)
	}
	for {
		if _, err := os.Stat(r.cfg.Start); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			ended <- err
			return errors.Join(errors.New("the engine ended before its start"), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	r.from = measure.Take()
	r.engine.Resume()
	return nil
}

// idle measures an instance that has nothing more to do.
func (r *engineRun) idle(before measure.Snapshot) {
	time.Sleep(idleAfter)
	r.result.Add(before, measure.Take(), 0)
	r.result["rss_mb"] = measure.Memory()
}
