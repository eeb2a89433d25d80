package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/bench/internal/chart"
	"github.com/tributary-io/tributary/bench/internal/input"
	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/bench/internal/workload"
)

// scalingWorkload is how costs grow. It has no peers, and brokers of its own.
const scalingWorkload = "scaling"

// scaleOptions say how far scaling is measured.
type scaleOptions struct {
	parts   string // which, by comma
	records int    // that are measured of each point
	keys    int    // at most
	windows int    // live of a key, at most
	tasks   int    // at most
}

// scalePart is something that grows.
type scalePart struct {
	name    string
	brokers int
	run     func(*scaling, context.Context) error
}

var scaleParts = []scalePart{
	{"instances", 3, (*scaling).instances},
	{"keys", 1, (*scaling).keys},
	{"windows", 1, (*scaling).windows},
	{"tasks", 1, (*scaling).tasks},
}

// scaling measures and draws.
type scaling struct {
	*session
	o       scaleOptions
	program string
	text    strings.Builder // of the report
	charts  map[string]chart.Chart
}

// scale runs the parts that were asked for, and writes what was measured before an error, too.
func scale(ctx context.Context, o options) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	s := &scaling{o: o.scale, program: program, charts: map[string]chart.Chart{}}
	fmt.Fprintf(&s.text, "# Scaling\n\n%s\n", machine(time.Now(), measure.Load()))
	chosen := strings.Split(o.scale.parts, ",")
	for _, name := range chosen {
		if !slices.ContainsFunc(scaleParts, func(p scalePart) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q of scaling", name)
		}
	}
	for _, p := range scaleParts {
		if err == nil && slices.Contains(chosen, p.name) {
			err = s.part(ctx, o, p)
		}
	}
	fmt.Println(s.text.String())
	if werr := s.write(o.out); werr != nil {
		return werr
	}
	return err
}

// part runs one part on brokers of its own.
func (s *scaling) part(ctx context.Context, o options, p scalePart) (err error) {
	if s.session, err = beginEmpty(o, p.brokers); err != nil {
		return err
	}
	began := time.Now()
	if err = p.run(s, ctx); err != nil {
		err = fmt.Errorf("scaling, %s: %w", p.name, err)
	}
	if eerr := s.end(); err == nil {
		err = eerr
	}
	say("%s took %.0f s", p.name, time.Since(began).Seconds())
	return err
}

func (s *scaling) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "scaling.md"), []byte(s.text.String()), 0o644); err != nil {
		return err
	}
	for name, c := range s.charts {
		if err := os.WriteFile(filepath.Join(dir, "scaling-"+name+".svg"), []byte(c.SVG()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// table begins a table of the report.
func (s *scaling) table(title string, columns ...string) {
	fmt.Fprintf(&s.text, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
}

func (s *scaling) row(format string, cells ...any) {
	line := fmt.Sprintf("| "+format+" |", cells...)
	s.text.WriteString(line + "\n")
	say("%s", line)
}

// arguments are those of one instance.
func (s *scaling) arguments(app, state, load, topic string, more ...string) []string {
	return append([]string{"child", "-role", roleScaling, "-w", load, "-app", app, "-topic", topic, "-brokers", s.brokers(), "-state-dir", state,
		"-commit", s.opts.commit.String(), "-memory", s.opts.budget(), "-launched", fmt.Sprint(time.Now().UnixNano())}, more...)
}

// steps are powers of ten from one number to another, which is the last.
func steps(from, to int) (all []int) {
	for n := from; n < to; n *= 10 {
		all = append(all, n)
	}
	return append(all, to)
}

// keys measures what a record costs that counts one of so many keys.
func (s *scaling) keys(ctx context.Context) error {
	s.table("Keys: a count by key, 6 tasks", "keys", "CPU, µs a record", "records/s", "peak memory, MB", "state on disk, MB")
	var cost []chart.Point
	for _, n := range steps(10_000, s.o.keys) {
		in := input.Flat{Topic: fmt.Sprintf("keys-%d", n), Partitions: input.Partitions, Keys: n, Each: true, Records: s.o.records}
		if err := in.Write(ctx, s.cluster.Addrs()); err != nil {
			return err
		}
		app := s.application("scale", "keys")
		r, err := one(s.execute(ctx, false, s.program, s.arguments(app, s.stateDir(app), workload.ScaleCount, in.Topic, "-skip", fmt.Sprint(n))...))
		if err != nil {
			return err
		}
		s.row("%d | %.2f | %.0f | %.0f | %.0f", n, r.Number(measure.CPUPerRecord), r.Number(measure.RecordsPerS), r.Number(measure.PeakMB), r.Number("state_bytes_closed")/1e6)
		cost = append(cost, chart.Point{X: float64(n), Y: r.Number(measure.CPUPerRecord)})
		if err := s.cleanUp(ctx, app); err != nil {
			return err
		}
	}
	s.charts["keys"] = chart.Chart{Title: "A count by key", X: "keys in the state", Y: "CPU, µs a record", Lines: []chart.Line{{Points: cost}}}
	return nil
}

// windowKeys are the keys that have windows; windowSpan is the event time of their records.
const (
	windowKeys = 100
	windowSpan = 10_000 * time.Second
)

// windows measures what a record costs that counts in one of so many live windows of its key.
func (s *scaling) windows(ctx context.Context) error {
	s.table(fmt.Sprintf("Windows: a count by key and window, %d keys, 6 tasks", windowKeys), "live windows of a key", "CPU, µs a record", "records/s", "peak memory, MB")
	in := input.Flat{Topic: "windows", Partitions: input.Partitions, Keys: windowKeys, Records: s.o.records, Span: windowSpan}
	if err := in.Write(ctx, s.cluster.Addrs()); err != nil {
		return err
	}
	var cost []chart.Point
	for _, n := range steps(1, s.o.windows) {
		app := s.application("scale", "windows")
		size := windowSpan / time.Duration(n)
		r, err := one(s.execute(ctx, false, s.program, s.arguments(app, s.stateDir(app), workload.ScaleWindows, in.Topic, "-window", size.String())...))
		if err != nil {
			return err
		}
		s.row("%d | %.2f | %.0f | %.0f", n, r.Number(measure.CPUPerRecord), r.Number(measure.RecordsPerS), r.Number(measure.PeakMB))
		cost = append(cost, chart.Point{X: float64(n), Y: r.Number(measure.CPUPerRecord)})
		if err := s.cleanUp(ctx, app); err != nil {
			return err
		}
	}
	s.charts["windows"] = chart.Chart{Title: "A count by key and window", X: "live windows of a key", Y: "CPU, µs a record", Lines: []chart.Line{{Points: cost}}}
	return nil
}
