package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
)

// TestPartsRun runs every part of ours, small; each checks the table that it has made.
func TestPartsRun(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "events")
	if err := writeEvents(input, 2000); err != nil {
		t.Fatal(err)
	}
	events, err := readEvents(input, 0)
	if err != nil || len(events) != 2000 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if err := buildLong(t.Context(), filepath.Join(dir, partOpen), filepath.Join(dir, partReplay), 120, events[:100]); err != nil {
		t.Fatal(err)
	}
	rep := &report{opts: options{rounds: 1}, began: time.Now()}
	for _, part := range []string{partColumns, partAvro, partCommits, partSmall, partOpen, partReplay} {
		commits := 7
		if part == partOpen || part == partReplay {
			commits = 120
		}
		r, err := runChild(t.Context(), part, filepath.Join(dir, part), input, 300, commits)
		if err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		if part != partSmall { // whose table is what is measured
			rep.add(part, ownName, r)
		}
		if part == partColumns {
			rep.add(part, peerName, measure.Result{measure.CPUPerRecord: r.Number(measure.CPUPerRecord), commitP50: 2 * r.Number(commitP50)})
		}
	}
	small, linked := filepath.Join(dir, partSmall), filepath.Join(dir, partCompact)
	if err := linkTable(small, linked); err != nil {
		t.Fatal(err)
	}
	r, err := runChild(t.Context(), partCompact, linked, input, 0, 0)
	if err != nil || r.Number(filesBefore) != 7 || r.Number(filesAfter) != 1 {
		t.Errorf("compaction: %v, %v", r, err)
	}
	rep.add(partCompact, ownName, r)
	text := rep.text()
	for _, want := range []string{"| tributary / delta-rs | 1.000 | - | 0.500 |", "Opening a table", "Compacting a table"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}
