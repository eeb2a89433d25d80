package engine

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
)

// anonymous is the memory of a process that isn't backed by files, in bytes: heap, stacks and mappings of its own.
func anonymous(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			kb, _ := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// An instance that counts more than its budget could hold stays within it: what its process keeps in memory is measured from outside.
func TestMemoryBudgetHolds(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("SKIPPED: the memory of a process is read from /proc, and means nothing under the race detector")
	}
	a := newApp(t, brokertest.Embedded(t), "budget")
	a.create("in", 6)
	a.create("out", 3)
	const budget, n, each = leastMemory, 30_000, 7_500
	child := a.spawnWith("a", instanceArgs{Memory: budget})
	out := a.read("out")
	pad := strings.Repeat("x", 1200)
	peak := int64(0)
	for from := 0; from < n; from += each {
		values := make([]string, each)
		for i := range values {
			values[i] = fmt.Sprintf("%d-%s", from+i, pad)
		}
		a.produce("in", 6, values...)
	}
	looks := 0
	eventually(t, "everything is counted", func() bool {
		peak = max(peak, anonymous(child.Pid()))
		looks++
		return looks%20 == 0 && total(out.lastCounts()) >= n // which is work by itself
	})
	if peak == 0 {
		t.Fatal("the process's memory was never seen")
	}
	t.Logf("%d MB at most", peak>>20)
	if peak > budget {
		t.Errorf("the process took %d MB, its budget is %d", peak>>20, budget>>20)
	}
}

// The parts don't add up to more than the budget, with what they take twice.
func TestMemoryIsDivided(t *testing.T) {
	for _, budget := range []int64{leastMemory, 256 << 20, 4 << 30} {
		c := defaults()
		MemoryBudget(budget)(&c)
		outside := c.state.RowBytes + c.state.CacheBytes
		live := 2*c.writeBuffer + 2*c.inputBuffer + int64(c.producerBytes())
		if c.goMemory()+outside >= budget {
			t.Errorf("budget %d: %d for the Go runtime and %d outside of it", budget, c.goMemory(), outside)
		}
		if live > c.goMemory() {
			t.Errorf("budget %d: %d may be live of the %d of the Go runtime", budget, live, c.goMemory())
		}
	}
}

// The runtime's limit is that of all instances of the process, and what it was before when they are gone.
func TestGoLimitsAddUp(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	if os.Getenv("GOMEMLIMIT") != "" {
		t.Skip("SKIPPED: GOMEMLIMIT goes before the budget")
	}
	c := defaults()
	MemoryBudget(1 << 30)(&c)
	first, second := c.limitGo(), c.limitGo()
	if got := debug.SetMemoryLimit(-1); got != 2*c.goMemory() {
		t.Errorf("limit %d with two instances, want %d", got, 2*c.goMemory())
	}
	for _, undo := range []func() error{first, second} {
		if err := undo(); err != nil {
			t.Fatal(err)
		}
	}
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("limit %d afterwards, it was %d", got, before)
	}
}

func TestBudgetIsChecked(t *testing.T) {
	_, err := New(counts("checked"), Brokers("localhost:1"), MemoryBudget(1<<20))
	if err == nil || !strings.Contains(err.Error(), "memory budget") {
		t.Errorf("a budget of a megabyte: %v", err)
	}
}
