package workload

import (
	"testing"
	"time"

	"github.com/tributary-io/tributary/bench/internal/input"
	"github.com/tributary-io/tributary/bench/internal/measure"
)

// A benchmark of something that does the wrong thing is worth nothing: in the harness each topology gives as many results as it must.
func TestTopologiesGiveWhatTheyMust(t *testing.T) {
	const n = 3000
	distinct := map[string]bool{}
	for g, i := input.NewGenerator(1, n, n), 0; i < n; i++ {
		distinct[string(g.Next().Value)] = true
	}
	if len(distinct) == n {
		t.Fatal("the input has no repeats")
	}
	for w, want := range map[string]int{"a": n, "b": len(distinct), "c": n, "d": 0, "d-out": n} { // d keeps its counts
		for _, disk := range []bool{false, true} {
			all, err := RunHarness(Config{Workload: w, Records: n, Keys: n, Rounds: 1, OnDisk: disk, StateDir: t.TempDir()})
			if err != nil {
				t.Fatalf("%s: %v", w, err)
			}
			if got := int(all[0].Number("out")); got != want {
				t.Errorf("%s, on disk %v: %d results, want %d", w, disk, got, want)
			}
			if all[0].Number(measure.Records) != n {
				t.Errorf("%s: %v records", w, all[0][measure.Records])
			}
		}
	}
}

func TestScalingBuilds(t *testing.T) {
	for _, w := range []string{ScaleCount, ScaleWindows, ScaleIdle} {
		if _, err := buildScaling(Config{Workload: w, Application: "app", Topic: "in", Window: time.Second}); err != nil {
			t.Errorf("%s: %v", w, err)
		}
	}
}

func TestEveryWorkloadBuilds(t *testing.T) {
	for _, w := range []string{"a", "b", "c", "d", "d-out", "h", "i"} {
		if _, err := Build(w, "app", "out"); err != nil {
			t.Errorf("%s: %v", w, err)
		}
	}
	if _, err := Build("z", "app", "out"); err == nil {
		t.Error("there is a workload z")
	}
}
