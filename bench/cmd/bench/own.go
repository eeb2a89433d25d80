package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
)

// harnessRounds is how often the harness runs in a process: the last round is warm.
const harnessRounds = 4

// harnessRecords is the harness's input.
const harnessRecords = 200_000

// tributary is this project: this build, or another one that it is compared with.
type tributary struct {
	s       *session
	label   string
	program string
	// profiles is the directory for profiles of a run; empty: none, as they cost a few per cent.
	profiles string
}

func (s *session) thisBuild() (tributary, error) {
	program, err := os.Executable()
	return tributary{s: s, label: ownName, program: program}, err
}

// otherBuilds is the build that -against names, if it does.
func (s *session) otherBuilds() (all []contestant, err error) {
	if s.opts.against == "" {
		return nil, nil
	}
	program, err := filepath.Abs(s.opts.against)
	return []contestant{tributary{s: s, label: "other build", program: program}}, err
}

func (t tributary) name() string    { return t.label }
func (tributary) takes(string) bool { return true }

func (t tributary) run(ctx context.Context, workload string) ([]measure.Result, error) {
	if workload == "g" {
		return t.harness(ctx)
	}
	app := t.s.application("tributary", workload)
	var r measure.Result
	var err error
	switch workload {
	case "e":
		r, err = t.restore(ctx, app)
	case "f":
		r, err = t.killed(ctx, app)
	default:
		r, err = one(t.start(ctx, app, workload, 0))
	}
	if err != nil {
		return nil, err
	}
	return []measure.Result{r}, t.s.cleanUp(ctx, app)
}

// start runs the engine in a process.
func (t tributary) start(ctx context.Context, app, workload string, killAt int, more ...string) ([]measure.Result, error) {
	args := []string{"child", "-role", roleEngine, "-w", workload, "-app", app, "-brokers", t.s.brokers(), "-state-dir", t.s.stateDir(app),
		"-commit", t.s.opts.commit.String(), "-memory", t.s.opts.budget(), "-kill-at", fmt.Sprint(killAt), "-launched", fmt.Sprint(time.Now().UnixNano())}
	if t.profiles != "" {
		args = append(args, "-profile", filepath.Join(t.profiles, workload))
	}
	args = append(args, more...)
	return t.s.execute(ctx, killAt > 0, t.program, args...)
}

// profile runs a workload for its profiles. It leaves the workloads alone that are about starting.
func (t tributary) profile(ctx context.Context, workload string) (err error) {
	if !strings.Contains("abcdegi", workload) {
		return nil
	}
	if t.profiles, err = filepath.Abs(filepath.Join(t.s.opts.out, profilesDir)); err != nil {
		return err
	}
	_, err = t.run(ctx, workload)
	return err
}

// profilesDir is where profiles are, in the report's directory: cpu.pprof and allocs.pprof of each workload, and of each variant of the harness.
const profilesDir = "profiles"

// restore runs workload d to its end, removes its state, and starts it again.
func (t tributary) restore(ctx context.Context, app string) (measure.Result, error) {
	before := t
	before.profiles = ""
	if _, err := before.start(ctx, app, "d", 0); err != nil {
		return nil, err
	}
	if err := removeState(t.s.stateDir(app)); err != nil {
		return nil, err
	}
	if t.profiles != "" {
		t.profiles = filepath.Join(t.profiles, "e") // beside the profiles of d itself
	}
	r, err := one(t.start(ctx, app, "d", 0, "-profile-start"))
	if err == nil {
		r["restore_ms"] = r.Number("start_to_running_ms") - r.Number("start_to_restore_begin_ms")
	}
	return r, err
}

// removeState removes the tasks' stores, not the instance's identity.
func removeState(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.Contains(d.Name(), "_") {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return filepath.SkipDir
		}
		return nil
	})
}

// killed runs workload d, which kills itself at half of the input, and starts it again.
func (t tributary) killed(ctx context.Context, app string) (measure.Result, error) {
	if _, err := t.start(ctx, app, "d", t.s.opts.records/2); err != nil {
		return nil, err
	}
	return one(t.start(ctx, app, "d", 0))
}

func (t tributary) harness(ctx context.Context) ([]measure.Result, error) {
	var all []measure.Result
	for _, v := range harnessVariants {
		args := []string{"child", "-role", roleHarness, "-w", v.workload, "-records", fmt.Sprint(harnessRecords), "-keys", fmt.Sprint(harnessRecords / 2),
			"-rounds", fmt.Sprint(harnessRounds), "-state-dir", t.s.dir}
		if v.disk {
			args = append(args, "-disk")
		}
		if t.profiles != "" {
			args = append(args, "-profile", filepath.Join(t.profiles, "g-"+strings.ReplaceAll(strings.ReplaceAll(v.name, ",", ""), " ", "-")))
		}
		rounds, err := t.s.execute(ctx, false, t.program, args...)
		if err != nil {
			return nil, err
		}
		all = append(all, warm(rounds, v.name))
	}
	return all, nil
}

// harnessVariants are the topologies that harnesses are compared by, with stores in memory and on disk. The count sends its results nowhere, or to a topic
// that is read after each record.
var harnessVariants = []struct {
	name, workload string
	disk           bool
}{
	{"a", "a", false}, {"c, in memory", "c", false}, {"d, in memory", "d", false}, {"d with output, in memory", "d-out", false},
	{"c, on disk", "c", true}, {"d, on disk", "d", true}, {"d with output, on disk", "d-out", true},
}

// warm is the last round's result.
func warm(rounds []measure.Result, variant string) measure.Result {
	last := rounds[len(rounds)-1]
	last["variant"], last["cold_rec_per_s"] = variant, rounds[0].Number(measure.RecordsPerS)
	return last
}

// raw is the client's loop.
type raw struct {
	s       *session
	program string // this one
}

func (raw) name() string        { return "franz-go" }
func (raw) takes(w string) bool { return w == "a" }

func (c raw) run(ctx context.Context, workload string) ([]measure.Result, error) {
	app := c.s.application("raw", workload)
	r, err := one(c.s.execute(ctx, false, c.program, "child", "-role", roleRaw, "-w", workload, "-app", app, "-brokers", c.s.brokers(), "-commit", c.s.opts.commit.String()))
	if err != nil {
		return nil, err
	}
	return []measure.Result{r}, c.s.cleanUp(ctx, app)
}
