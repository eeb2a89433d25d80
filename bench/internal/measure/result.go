package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Result is the figures of one run by name. Which there are depends on the workload: see Add and the README.
type Result map[string]any

// prefix begins the line with a result.
const prefix = "RESULT "

// The figures that every run has.
const (
	Records      = "records"
	RecordsPerS  = "rec_per_s"
	CPUPerRecord = "cpu_us_per_rec"
	PeakMB       = "rss_peak_mb"
)

// BrokerCPUPerRecord is the broker's, which shares the machine: two cores are used up by both together.
const BrokerCPUPerRecord = "broker_cpu_us_per_rec"

// GCShare is the Go collector's share of the process's CPU, without what it does on processors that are idle. Peers on a JVM don't have it.
const GCShare = "gc_share"

// Add puts in what was used between two snapshots, per record where there were any.
func (r Result) Add(from, to Snapshot, records int64) {
	elapsed, cpu := to.At.Sub(from.At).Seconds(), to.Self-from.Self
	r["elapsed_s"], r[Records], r["cpu_s"], r["cpu_total_s"] = elapsed, records, cpu, to.Self
	r["broker_cpu_s"] = to.Broker - from.Broker
	r["other_cpu_s"] = to.Machine - from.Machine - cpu - (to.Broker - from.Broker)
	r[PeakMB], r["load1"] = PeakMemory(), Load()
	if cpu > 0 {
		r[GCShare] = (to.GC - from.GC) / cpu
	}
	if records > 0 {
		n := float64(records)
		r[RecordsPerS], r[CPUPerRecord] = n/elapsed, cpu*1e6/n
		r[BrokerCPUPerRecord] = (to.Broker - from.Broker) * 1e6 / n
		r["allocs_per_rec"] = float64(to.Mallocs-from.Mallocs) / n
	}
}

// Number is a figure, 0 if there is none of that name.
func (r Result) Number(name string) float64 {
	switch n := r[name].(type) {
	case float64:
		return n
	case int:
		return float64(n)
	case int64:
		return float64(n)
	}
	return 0
}

// Write prints the result's line.
func (r Result) Write(w io.Writer) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	_, err = fmt.Fprintln(w, prefix+string(b))
	return err
}

// Parse finds the results in what a run has printed.
func Parse(out string) ([]Result, error) {
	var all []Result
	for line := range strings.Lines(out) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), prefix)
		if !ok {
			continue
		}
		var r Result
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return nil, fmt.Errorf("result %q: %w", text, err)
		}
		all = append(all, r)
	}
	return all, nil
}
