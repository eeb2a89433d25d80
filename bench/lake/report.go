package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
)

// Who is compared.
const (
	ownName    = "tributary"
	peerName   = "delta-rs"
	soakName   = "tributary (soak)"
	replayName = "tributary, replaying the log"
)

type figure struct{ key, label, form string }

var (
	cpuFigure  = figure{measure.CPUPerRecord, "CPU, µs a row", "%.2f"}
	rateFigure = figure{measure.RecordsPerS, "rows/s", "%.0f"}
	p50Figure  = figure{commitP50, "commit, median ms", "%.1f"}
)

// section is a part of the report.
type section struct {
	part, title, target string
	figures             []figure
}

func (r *report) sections() []section {
	return []section{
		{partColumns, fmt.Sprintf("Columns in memory to a committed table, %d rows a commit", r.opts.rows), "CPU at most 1.3 of delta-rs's, 1.0 the aim",
			[]figure{cpuFigure, rateFigure, p50Figure}},
		{partAvro, fmt.Sprintf("Avro bytes in memory to a committed table, %d rows a commit", r.opts.rows), "CPU at most a fifth of fastavro and delta-rs",
			[]figure{cpuFigure, rateFigure, {measure.PeakMB, "peak memory, MB", "%.0f"}}},
		{partCommits, fmt.Sprintf("Commits of %d rows", r.opts.small), "median at most half of delta-rs's, and no more at the end of the soak; memory flat",
			[]figure{p50Figure, {lateP50, "last 500, median ms", "%.1f"}, {"unsynced_commit_ms_p50", "without syncs, median ms", "%.1f"}, cpuFigure,
				{earlyMB, "memory after a tenth, MB", "%.0f"}, {memoryMB, "memory at the end, MB", "%.0f"},
				{earlyHeap, "live heap after a tenth, MB", "%.1f"}, {heapMB, "live heap at the end, MB", "%.1f"}}},
		{partCompact, fmt.Sprintf("Compacting a table of %d files of %d rows", r.opts.compact, r.opts.small), "delta-rs's rows/s and CPU at no more memory",
			[]figure{rateFigure, cpuFigure, {filesBefore, "files before", "%.0f"}, {filesAfter, "files after", "%.0f"}, {measure.PeakMB, "peak memory, MB", "%.0f"}}},
		{partOpen, fmt.Sprintf("Opening a table of %d commits", r.opts.long), "under a tenth of a replay",
			[]figure{{openMS, "open, ms", "%.1f"}, {measure.PeakMB, "peak memory, MB", "%.0f"}}},
	}
}

// report collects results.
type report struct {
	opts  options
	began time.Time
	Runs  []oneRun
}

type oneRun struct {
	Part, Who string
	Result    measure.Result
}

func (r *report) add(part, who string, result measure.Result) {
	r.Runs = append(r.Runs, oneRun{part, who, result})
	say("%s, %s: %.2f µs of CPU a row, commit %.1f ms, open %.1f ms, load %.1f", part, who, result.Number(measure.CPUPerRecord), result.Number(commitP50),
		result.Number(openMS), measure.Load())
}

func (r *report) text() string {
	var md strings.Builder
	fmt.Fprintf(&md, "%s, %s, %d CPUs; %d rows and %d rounds.\n", r.began.UTC().Format("2006-01-02 15:04 MST"), runtime.Version(), runtime.NumCPU(), r.opts.records, r.opts.rounds)
	for _, s := range r.sections() {
		r.section(&md, s)
	}
	return md.String()
}

func (r *report) section(md *strings.Builder, s section) {
	var names []string
	for _, x := range r.Runs {
		if x.Part == s.part && !slices.Contains(names, x.Who) {
			names = append(names, x.Who)
		}
	}
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(md, "\n### %s\n\n", s.title)
	row := func(first string, cell func(figure) string) {
		fmt.Fprintf(md, "| %s |", first)
		for _, f := range s.figures {
			fmt.Fprintf(md, " %s |", cell(f))
		}
		md.WriteString("\n")
	}
	row("", func(f figure) string { return f.label })
	row("---", func(figure) string { return "---" })
	for _, name := range names {
		row(name, func(f figure) string { return measure.Spread(r.values(s.part, name, f.key), f.form) })
	}
	for _, name := range names {
		if name == ownName || name == soakName {
			continue
		}
		row(ownName+" / "+name, func(f figure) string {
			return measure.Spread(measure.Ratios(r.values(s.part, ownName, f.key), r.values(s.part, name, f.key)), "%.3f")
		})
	}
	fmt.Fprintf(md, "\nTarget: %s.\n", s.target)
}

// values are a figure of all rounds in which there is one.
func (r *report) values(part, who, key string) (all []float64) {
	for _, x := range r.Runs {
		if _, ok := x.Result[key]; ok && x.Part == part && x.Who == who {
			all = append(all, x.Result.Number(key))
		}
	}
	return all
}

// write writes the report in both forms.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "lake.md"), []byte("# Benchmarks of the lake\n\n"+r.text()), 0o644); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r.Runs, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "lake.json"), b, 0o644)
}
