package main

import (
	"strings"
	"testing"

	"github.com/tributary-io/tributary/bench/internal/measure"
)

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	r := newReport(options{})
	for round, cpu := range [][2]float64{{1, 6}, {2, 8}, {1.5, 9}} {
		r.add("a", "tributary", round, measure.Result{measure.CPUPerRecord: cpu[0], measure.RecordsPerS: 400_000.0})
		r.add("a", "kafka-streams", round, measure.Result{measure.CPUPerRecord: cpu[1], measure.RecordsPerS: 100_000.0})
	}
	text := r.section("a")
	for _, want := range []string{
		"| tributary | 1.50 (1.00–2.00) |", "| kafka-streams | 8.00 (6.00–9.00) |",
		"| tributary / kafka-streams | 0.17 (0.17–0.25) | - | 4.00 (4.00–4.00) |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

func TestVariantsAreComparedWithTheirLike(t *testing.T) {
	r := newReport(options{})
	for _, v := range []string{"c", "d"} {
		r.add("g", "tributary", 0, measure.Result{"variant": v, measure.RecordsPerS: 10.0})
		r.add("g", "kafka-streams", 0, measure.Result{"variant": v, measure.RecordsPerS: 2.0})
	}
	text := r.section("g")
	for _, want := range []string{"| tributary (c) / kafka-streams (c) | - | 5.00 |", "| tributary (d) / kafka-streams (d) |"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

func TestEveryWorkloadHasATitleAndFigures(t *testing.T) {
	for w := range figures {
		if titles[w] == "" {
			t.Errorf("workload %s has no title", w)
		}
	}
	if len(figures) != len(titles) {
		t.Error("a title without figures")
	}
}

func TestSummaryComparesWithTheTargets(t *testing.T) {
	r := newReport(options{})
	for round, speed := range []float64{390_000, 410_000, 420_000} {
		r.add("a", ownName, round, measure.Result{measure.CPUPerRecord: 2.0, measure.RecordsPerS: speed})
		r.add("a", kafkaStreamsName, round, measure.Result{measure.CPUPerRecord: 10.0, measure.RecordsPerS: 100_000.0})
	}
	r.add("f", ownName, 0, measure.Result{restored.key: 50_001.0, firstRecord.key: 2_000.0})
	text := r.summary()
	for _, want := range []string{
		"| CPU, µs a record | kafka-streams | 0.20 (0.20–0.20) | ≤ 1/6 | **missed** |",
		"| records/s | kafka-streams | 4.10 (3.90–4.20) | ≥ 4 | reached |",
		"| records restored | - | 50001 | ≤ 50000 | **missed** |",
		"| start to the first record, ms | - | 2000 | ≤ 2000 | reached |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "goka") {
		t.Errorf("compares with a peer that didn't run:\n%s", text)
	}
	if text := newReport(options{}).summary(); text != "" {
		t.Errorf("nothing was run, and the summary says %q", text)
	}
}

func TestTargetsNameWhatIsThere(t *testing.T) {
	for _, target := range targets {
		if figures[target.workload] == nil {
			t.Errorf("there is no workload %q", target.workload)
		}
		found := false
		for _, f := range figures[target.workload] {
			found = found || f == target.figure
		}
		if !found {
			t.Errorf("workload %s doesn't show %s", target.workload, target.figure.label)
		}
	}
}
