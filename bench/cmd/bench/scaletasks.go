package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tributary-io/tributary/bench/internal/chart"
	"github.com/tributary-io/tributary/bench/internal/input"
	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/bench/internal/workload"
)

// scalePartitions are the tasks that instances share.
const scalePartitions = 12

// instances measures what a record costs when several instances, each a process, share the tasks.
func (s *scaling) instances(ctx context.Context) error {
	s.table(fmt.Sprintf("Instances: a count by key, %d tasks, 3 brokers", scalePartitions),
		"instances", "CPU of all, µs a record", "records/s of all", "peak memory of one, MB", "records of the one with the fewest")
	in := input.Flat{Topic: "shared", Partitions: scalePartitions, Keys: 100_000, Records: 2 * s.o.records}
	if err := in.Write(ctx, s.cluster.Addrs()); err != nil {
		return err
	}
	var cost []chart.Point
	for _, n := range []int{1, 2, 4} {
		all, err := s.together(ctx, n, in.Topic)
		if err != nil {
			return err
		}
		var cpu, records, elapsed, peak float64
		fewest := all[0].Number(measure.Records)
		for _, r := range all {
			cpu, records = cpu+r.Number("cpu_s"), records+r.Number(measure.Records)
			elapsed, peak = max(elapsed, r.Number("elapsed_s")), max(peak, r.Number(measure.PeakMB))
			fewest = min(fewest, r.Number(measure.Records))
		}
		if records == 0 {
			return fmt.Errorf("%d instances processed nothing", n)
		}
		s.row("%d | %.2f | %.0f | %.0f | %.0f", n, cpu*1e6/records, records/elapsed, peak, fewest)
		cost = append(cost, chart.Point{X: float64(n), Y: cpu * 1e6 / records})
	}
	s.charts["instances"] = chart.Chart{Title: "Instances that share 12 tasks", X: "instances", Y: "CPU of all, µs a record", Lines: []chart.Line{{Points: cost}}}
	return nil
}

// settleTime is how long instances are left alone, once all of them run, before they start: the last to join may still be given tasks.
const settleTime = 3 * time.Second

// together runs an application in several processes, which start to process at the same time.
func (s *scaling) together(ctx context.Context, n int, topic string) ([]measure.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	app := s.application("scale", "instances")
	start := filepath.Join(s.stateDir(app), "start")
	results, errs := make([]measure.Result, n), make(chan error, n)
	var running sync.WaitGroup
	states := make([]string, n)
	for i := range n {
		states[i] = filepath.Join(s.stateDir(app), fmt.Sprint(i))
		running.Go(func() {
			r, err := one(s.execute(ctx, false, s.program, s.arguments(app, states[i], workload.ScaleCount, topic, "-start", start)...))
			results[i] = r
			errs <- err
		})
	}
	err := s.awaitReady(ctx, states, errs)
	if err == nil {
		time.Sleep(settleTime)
		err = os.WriteFile(start, nil, 0o644)
	}
	for i := 0; i < n && err == nil; i++ {
		err = <-errs
	}
	cancel()
	running.Wait()
	if err != nil {
		return nil, err
	}
	return results, s.cleanUp(context.WithoutCancel(ctx), app)
}

// awaitReady waits until all instances wait for their start.
func (s *scaling) awaitReady(ctx context.Context, states []string, errs chan error) error {
	for _, state := range states {
		for !exists(filepath.Join(state, workload.Ready)) {
			select {
			case err := <-errs:
				return fmt.Errorf("an instance ended before its start: %w", err)
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// taskSteps are how many tasks an instance has.
func taskSteps(most int) (all []int) {
	for _, n := range []int{1, 10, 100, 500, 2000} {
		if n < most {
			all = append(all, n)
		}
	}
	return append(all, most)
}

// tasks measures how long an instance takes to start with so many tasks, and its memory: without state, with a store in each task that is made, and with
// one that is there.
func (s *scaling) tasks(ctx context.Context) error {
	s.table("Tasks of one instance, without records", "tasks", "state", "launch to running, ms", "memory, MB", "CPU to then, s")
	if err := s.warmTasks(ctx); err != nil {
		return err
	}
	kinds := []string{"none", "made", "opened"}
	times, memory := make([]chart.Line, len(kinds)), make([]chart.Line, len(kinds))
	for _, n := range taskSteps(s.o.tasks) {
		topic := fmt.Sprintf("tasks-%d", n)
		if err := s.createTopic(ctx, topic, n); err != nil {
			return err
		}
		counting, idle := s.application("scale", "tasks"), s.application("scale", "tasks")
		for i, kind := range kinds {
			app, load := counting, workload.ScaleCount
			if kind == "none" {
				app, load = idle, workload.ScaleIdle
			}
			// Many tasks need more than the comparison with peers allows.
			r, err := one(s.execute(ctx, false, s.program, s.arguments(app, s.stateDir(app), load, topic, "-memory", "0")...))
			if err != nil {
				return err
			}
			s.row("%d | %s | %.0f | %.0f | %.1f", n, kind, r.Number("launch_to_running_ms"), r.Number("rss_mb"), r.Number("cpu_total_s"))
			times[i].Name, memory[i].Name = "state "+kind, "state "+kind
			times[i].Points = append(times[i].Points, chart.Point{X: float64(n), Y: r.Number("launch_to_running_ms") / 1000})
			memory[i].Points = append(memory[i].Points, chart.Point{X: float64(n), Y: r.Number("rss_mb")})
		}
		if err := s.forget(ctx, topic, counting, idle); err != nil {
			return err
		}
	}
	s.charts["start"] = chart.Chart{Title: "Start of an instance", X: "tasks", Y: "launch to running, s", Lines: times}
	s.charts["memory"] = chart.Chart{Title: "Memory of an instance without records", X: "tasks", Y: "resident memory, MB", Lines: memory}
	return nil
}

// warmTasks starts and ends an instance that isn't counted: the first client of brokers that were just started waits for them.
func (s *scaling) warmTasks(ctx context.Context) error {
	const topic = "tasks-warm"
	if err := s.createTopic(ctx, topic, 1); err != nil {
		return err
	}
	app := s.application("scale", "warm")
	if _, err := s.execute(ctx, false, s.program, s.arguments(app, s.stateDir(app), workload.ScaleCount, topic)...); err != nil {
		return err
	}
	return s.forget(ctx, topic, app)
}

// topicPatience is how long brokers may take until all partitions of a new topic have a leader.
const topicPatience = time.Minute

// createTopic makes a topic, and waits until it can be read.
func (s *scaling) createTopic(ctx context.Context, topic string, partitions int) error {
	ctx, cancel := context.WithTimeout(ctx, topicPatience)
	defer cancel()
	admin := kadm.NewClient(s.client)
	if _, err := admin.CreateTopic(ctx, int32(partitions), 1, nil, topic); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	for {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err == nil && ends.Error() == nil && len(ends[topic]) == partitions {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for topic %s: %w", topic, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// forget removes a topic and what its applications have left.
func (s *scaling) forget(ctx context.Context, topic string, apps ...string) error {
	for _, app := range apps {
		if err := s.cleanUp(ctx, app); err != nil {
			return err
		}
	}
	if _, err := kadm.NewClient(s.client).DeleteTopics(ctx, topic); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	return nil
}
