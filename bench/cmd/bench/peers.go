package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tributary-io/tributary/bench/internal/measure"
)

// peers are the programs that are there, built.
func (s *session) peers() ([]contestant, error) {
	if s.opts.peers == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(s.opts.peers)
	if err != nil {
		return nil, err
	}
	var found []contestant
	if jars := filepath.Join(dir, "kafka-streams", "target"); exists(filepath.Join(jars, "lib")) {
		found = append(found, kafkaStreams{s, jars, false}, kafkaStreams{s, jars, true})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no peer in %s is built: run its build.sh", dir)
	}
	return found, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// kafkaStreams is the peers' Kafka Streams program: one stream thread, a heap of 1 GB, no record cache, which is its best setting here.
type kafkaStreams struct {
	s    *session
	jars string
	// tuned is with larger batches of its producer and larger polls and fetches of its consumer, which only the pass-through gains by.
	tuned bool
}

func (k kafkaStreams) name() string {
	if k.tuned {
		return tunedName
	}
	return kafkaStreamsName
}

func (k kafkaStreams) takes(w string) bool { return w != "i" && (w == "a" || !k.tuned) }

func (k kafkaStreams) java(ctx context.Context, killed bool, args ...string) ([]measure.Result, error) {
	classPath := filepath.Join(k.jars, "classes") + ":" + filepath.Join(k.jars, "lib", "*")
	return k.s.execute(ctx, killed, "java", append([]string{"-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classPath, "peers.Bench"}, args...)...)
}

// start runs a workload to its end. The program removes its topics by itself, unless told to keep them.
func (k kafkaStreams) start(ctx context.Context, app, workload string, more ...string) (measure.Result, error) {
	killed := strings.Contains(strings.Join(more, " "), "--kill-at")
	args := append([]string{"run", "--w", workload, "--mode", "eos", "--commit", fmt.Sprint(k.s.opts.commit.Milliseconds()), "--cache", "0",
		"--tuned", fmt.Sprint(k.tuned), "--brokers", k.s.brokers(), "--app", app, "--state-dir", k.s.dir, "--broker-data", k.s.brokerData()}, more...)
	all, err := k.java(ctx, killed, args...)
	if killed {
		return nil, err
	}
	return one(all, err)
}

func (k kafkaStreams) run(ctx context.Context, workload string) ([]measure.Result, error) {
	if workload == "g" {
		return k.driver(ctx)
	}
	app := k.s.application("ks", workload)
	var r measure.Result
	var err error
	switch workload {
	case "e":
		r, err = k.restore(ctx, app)
	case "f":
		r, err = k.killed(ctx, app)
	default:
		r, err = k.start(ctx, app, workload)
	}
	if err != nil {
		return nil, err
	}
	if workload == "h" {
		r["launch_to_running_ms"] = r["jvmstart_to_running_ms"]
	}
	return []measure.Result{r}, k.s.cleanUp(ctx, app)
}

func (k kafkaStreams) restore(ctx context.Context, app string) (measure.Result, error) {
	if _, err := k.start(ctx, app, "d", "--keep", "true"); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(k.s.stateDir(app)); err != nil {
		return nil, err
	}
	r, err := k.start(ctx, app, "d", "--restore-only", "true")
	if err == nil {
		r["restore_ms"] = r["restore_begin_to_running_ms"]
	}
	return r, err
}

// killed uses a short session, since the default one only adds 40 s of waiting.
func (k kafkaStreams) killed(ctx context.Context, app string) (measure.Result, error) {
	session := []string{"--session-timeout", "6000"}
	if _, err := k.start(ctx, app, "d", append(session, "--kill-at", fmt.Sprint(k.s.opts.records/2))...); err != nil {
		return nil, err
	}
	return k.start(ctx, app, "d", session...)
}

// driver runs the TopologyTestDriver.
func (k kafkaStreams) driver(ctx context.Context) ([]measure.Result, error) {
	var all []measure.Result
	for _, v := range harnessVariants {
		store := "mem"
		if v.disk {
			store = "rocks"
		}
		w, sink := strings.CutSuffix(v.workload, "-out")
		rounds, err := k.java(ctx, false, "ttd", "--w", w, "--sink", fmt.Sprint(sink), "--store", store, "--n", fmt.Sprint(harnessRecords), "--keys", fmt.Sprint(harnessRecords/2),
			"--rounds", fmt.Sprint(harnessRounds), "--cache", "0")
		if err != nil {
			return nil, err
		}
		all = append(all, warm(rounds, v.name))
	}
	return all, nil
}

// goka is goka itself, which is at-least-once. Unlike the other peers it needs no building: it is a library of this program.
type goka struct {
	s       *session
	program string // this one
}

func (goka) name() string { return gokaName }

// takes tells whether goka runs a workload: the one that is its own always, those that others run as well if peers are asked for.
func (g goka) takes(w string) bool { return w == "i" || g.s.opts.peers != "" && (w == "a" || w == "d") }

func (g goka) run(ctx context.Context, workload string) ([]measure.Result, error) {
	app := g.s.application("goka", workload)
	r, err := one(g.s.execute(ctx, false, g.program, "child", "-role", roleGoka, "-w", workload, "-app", app, "-brokers", g.s.brokers(), "-state-dir", g.s.stateDir(app)))
	if err != nil {
		return nil, err
	}
	return []measure.Result{r}, g.s.cleanUp(ctx, app)
}
