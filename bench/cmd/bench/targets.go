package main

import (
	"fmt"
	"strings"

	"github.com/tributary-io/tributary/bench/internal/measure"
)

// target is what a workload is to reach: of a figure's ratio to a peer's, or, without a peer, of the figure itself.
type target struct {
	workload string
	peer     string // with its variant; empty: none
	figure   figure
	least    float64 // 0: most counts
	most     float64
}

const kafkaStreamsName, tunedName, gokaName = "kafka-streams", "kafka-streams, tuned client", "goka"

// targets are the project's, in the order of the workloads.
var targets = []target{
	{"a", kafkaStreamsName, cpu, 0, 1.0 / 6},
	{"a", kafkaStreamsName, speed, 4, 0},
	{"a", tunedName, cpu, 0, 1.0 / 4},
	{"a", tunedName, speed, 3, 0},
	{"a", gokaName, cpu, 0, 1.0 / 4},
	{"b", kafkaStreamsName, cpu, 0, 1.0 / 3},
	{"b", kafkaStreamsName, speed, 3, 0},
	{"b", kafkaStreamsName, peak, 0, 1.0 / 2},
	{"c", kafkaStreamsName, cpu, 0, 1.0 / 4},
	{"c", kafkaStreamsName, speed, 4, 0},
	{"c", kafkaStreamsName, peak, 0, 1.0 / 2},
	{"d", kafkaStreamsName, cpu, 0, 1.0 / 2},
	{"d", kafkaStreamsName, speed, 2.5, 0},
	{"d", kafkaStreamsName, peak, 0, 1.0 / 2},
	{"d", gokaName, cpu, 0, 1.0 / 4},
	{"e", kafkaStreamsName, cpu, 0, 1.0 / 3},
	{"e", kafkaStreamsName, restoreTime, 0, 1.0 / 3},
	{"f", "", restored, 0, 50_000}, // what two commit intervals of 100 ms hold at 250,000 a second
	{"f", "", firstRecord, 0, 2_000},
	{"g", "kafka-streams (a)", speed, 5, 0},
	{"g", "kafka-streams (c, in memory)", speed, 10, 0},
	{"g", "kafka-streams (d, in memory)", speed, 10, 0},
	{"g", "kafka-streams (c, on disk)", speed, 3, 0},
	{"g", "kafka-streams (d, on disk)", speed, 3, 0},
	{"h", "", launchTime, 0, 300},
	{"h", "", peak, 0, 50},
	{"i", gokaName, cpu, 0, 1.0 / 4},
}

// reached tells whether a median is within the target.
func (t target) reached(median float64) bool {
	if t.least > 0 {
		return median >= t.least
	}
	return median <= t.most
}

// bound is the target in words.
func (t target) bound() string {
	switch {
	case t.least > 0:
		return fmt.Sprintf("≥ %.3g", t.least)
	case t.peer != "" && t.most < 1:
		return fmt.Sprintf("≤ 1/%.3g", 1/t.most)
	default:
		return fmt.Sprintf("≤ %.0f", t.most)
	}
}

// values are the ratios or figures that count, one a round.
func (t target) values(r *report) []float64 {
	own := r.values(t.workload, ownLike(t.peer), t.figure.key)
	if t.peer == "" {
		return own
	}
	return measure.Ratios(own, r.values(t.workload, t.peer, t.figure.key))
}

// form is how the target's values are written: ratios are not figures.
func (t target) form() string {
	if t.peer == "" {
		return t.figure.form
	}
	return "%.2f"
}

// summary compares what was measured with the targets. Those whose workload or peer didn't run are left out; it is empty if all are.
func (r *report) summary() string {
	var rows strings.Builder
	for _, t := range targets {
		values := t.values(r)
		if len(values) == 0 {
			continue
		}
		to, verdict := t.peer, "reached"
		if to == "" {
			to = "-"
		}
		if !t.reached(measure.Median(values)) {
			verdict = "**missed**"
		}
		fmt.Fprintf(&rows, "| %s: %s | %s | %s | %s | %s | %s |\n", t.workload, titles[t.workload], t.figure.label, to, measure.Spread(values, t.form()), t.bound(), verdict)
	}
	if rows.Len() == 0 {
		return ""
	}
	return "## Summary\n\nThe median of the rounds, in brackets the least and the greatest: a ratio to the peer in the same round, or the figure itself where no peer is named.\n\n" +
		"| workload | of | to | measured | target | |\n| --- | --- | --- | --- | --- | --- |\n" + rows.String()
}
