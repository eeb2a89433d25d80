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
