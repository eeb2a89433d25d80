package land

import (
	"math"
	"runtime/metrics"
	"testing"
)

// TestBudgetIsToldToTheRuntime looks at what an instance tells the Go runtime, which keeps the process in its memory: a limit, and not to work before that
// is near.
func TestBudgetIsToldToTheRuntime(t *testing.T) {
	told := func() (percent, limit uint64) {
		samples := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
		metrics.Read(samples)
		return samples[0].Value.Uint64(), samples[1].Value.Uint64()
	}
	if percent, limit := told(); percent != 100 || limit != math.MaxInt64 {
		t.Skip("SKIPPED, NOT TESTED: GOGC or GOMEMLIMIT are set")
	}
	w := newWorld(t, nil, "")
	w.cfg.Streams = []Stream{testStream(t, "ods.memory.rows", small)}
	w.cfg.Memory = DefaultMemory
	_, stop := w.start(t)
	eventually(t, "the runtime is told", func() bool {
		percent, limit := told()
		return percent == 400 && limit > DefaultMemory/2 && limit < DefaultMemory
	})
	stop()
	if percent, limit := told(); percent != 100 || limit != math.MaxInt64 {
		t.Errorf("after the end GOGC is %d and the limit %d", percent, limit)
	}
}
