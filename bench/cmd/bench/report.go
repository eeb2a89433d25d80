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
	"github.com/tributary-io/tributary/internal/realkafka"
)

// figure is something that a workload is compared by.
type figure struct {
	key   string // in the result
	label string
	form  string // of the number
}

var (
	cpu    = figure{measure.CPUPerRecord, "CPU, µs a record", "%.2f"}
	speed  = figure{measure.RecordsPerS, "records/s", "%.0f"}
	peak   = figure{measure.PeakMB, "peak memory, MB", "%.0f"}
	broker = figure{measure.BrokerCPUPerRecord, "the broker's CPU, µs a record", "%.2f"}
	gc     = figure{measure.GCShare, "Go's collector, share of the CPU", "%.2f"}

	restoreTime = figure{"restore_ms", "restore, ms", "%.0f"}
	startTime   = figure{"start_to_running_ms", "start to running, ms", "%.0f"}
	restored    = figure{"restored_records", "records restored", "%.0f"}
	firstRecord = figure{"start_to_first_record_ms", "start to the first record, ms", "%.0f"}
	launchTime  = figure{"launch_to_running_ms", "launch to running, ms", "%.0f"}

	throughput = []figure{cpu, broker, speed, peak, gc}
)

// figures are those of each workload.
var figures = map[string][]figure{
	"a": throughput, "b": throughput, "c": throughput, "d": throughput,
	"e": {cpu, restoreTime, startTime, peak},
	"f": {restored, firstRecord},
	"g": {cpu, speed, {"cold_rec_per_s", "records/s, first round", "%.0f"}, gc},
	"h": {launchTime, peak},
	"i": throughput,
}

var titles = map[string]string{
	"a": "pass-through", "b": "deduplication by event id", "c": "table join, re-key, one-minute windows", "d": "count by key",
	"e": "restore of d from its changelog", "f": "d after kill -9 in the middle, state kept", "g": "test harness, one record at a time",
	"h": "an application without work", "i": "a group written for goka: count by key, and pass on",
}

// run is one run's result.
type run struct {
	Workload, Who string
	Round         int
	Result        measure.Result
}

// report collects results.
type report struct {
	opts  options
	began time.Time
	load  float64 // at the begin
	Runs  []run
}

func newReport(o options) *report { return &report{opts: o, began: time.Now(), load: measure.Load()} }

func (r *report) add(workload, who string, round int, result measure.Result) {
	r.Runs = append(r.Runs, run{workload, variantOf(who, result), round, result})
}

// write writes the report in both forms.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var md strings.Builder
	fmt.Fprintf(&md, "# Benchmarks\n\n%s; %d records, %d keys, commits every %v.\n", machine(r.began, r.load), r.opts.records, r.opts.keys, r.opts.commit)
	if summary := r.summary(); summary != "" {
		md.WriteString("\n" + summary)
	}
	for _, w := range r.opts.workloads {
		md.WriteString("\n" + r.section(w))
	}
	if r.opts.profile {
		fmt.Fprintf(&md, "\nProfiles of one more run of Tributary in each workload are in %s/: `go tool pprof -http : %[1]s/c/cpu.pprof`.\n", profilesDir)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.md"), []byte(md.String()), 0o644); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r.Runs, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "report.json"), b, 0o644)
}

// machine says when and where something was measured.
func machine(began time.Time, load float64) string {
	return fmt.Sprintf("%s, %s, %d CPUs, Kafka %s on the same machine, load %.1f at the begin",
		began.UTC().Format("2006-01-02 15:04 MST"), runtime.Version(), runtime.NumCPU(), realkafka.Version(), load)
}

// section is a workload's tables: what each did, and the ratios round by round.
func (r *report) section(workload string) string {
	var md strings.Builder
	fmt.Fprintf(&md, "## %s: %s\n\n", workload, titles[workload])
	names := r.contestants(workload)
	if len(names) == 0 {
		return md.String() + "Not run.\n"
	}
	row := func(first string, cell func(figure) string) {
		fmt.Fprintf(&md, "| %s |", first)
		for _, f := range figures[workload] {
			fmt.Fprintf(&md, " %s |", cell(f))
		}
		md.WriteString("\n")
	}
	row("", func(f figure) string { return f.label })
	row("---", func(figure) string { return "---" })
	for _, name := range names {
		row(name, func(f figure) string { return measure.Spread(r.values(workload, name, f.key), f.form) })
	}
	for _, name := range names {
		own := ownLike(name)
		if name == own || !slices.Contains(names, own) {
			continue
		}
		row(own+" / "+name, func(f figure) string {
			return measure.Spread(measure.Ratios(r.values(workload, own, f.key), r.values(workload, name, f.key)), "%.2f")
		})
	}
	return md.String()
}

// ownName is this project's.
const ownName = "tributary"

// ownLike is the name of ours in the variant of name.
func ownLike(name string) string {
	if _, variant, ok := strings.Cut(name, " ("); ok {
		return ownName + " (" + variant
	}
	return ownName
}

func (r *report) contestants(workload string) (names []string) {
	for _, x := range r.Runs {
		if x.Workload == workload && !slices.Contains(names, x.Who) {
			names = append(names, x.Who)
		}
	}
	return names
}

func (r *report) values(workload, who, key string) (all []float64) {
	for _, x := range r.Runs {
		if _, has := x.Result[key]; has && x.Workload == workload && x.Who == who {
			all = append(all, x.Result.Number(key))
		}
	}
	return all
}
