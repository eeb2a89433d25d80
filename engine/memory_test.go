package engine

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
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

// The parts don't add up to more than the budget, with what they take twice, whatever the stores take.
func TestMemoryIsDivided(t *testing.T) {
	for _, budget := range []int64{leastMemory, 256 << 20, 4 << 30} {
		c := defaults()
		MemoryBudget(budget)(&c)
		outside := c.state.RowBytes + c.state.CacheBytes
		for _, stores := range []int64{0, outside / 2, outside, 2 * outside} {
			if c.goMemory(stores)+min(stores, outside) >= budget {
				t.Errorf("budget %d: %d for the Go runtime and %d outside of it", budget, c.goMemory(stores), stores)
			}
		}
		if c.goMemory(0) < c.goMemory(outside)+outside-budget/16 {
			t.Errorf("budget %d: the Go runtime has %d where stores take nothing, and %d where they take all", budget, c.goMemory(0), c.goMemory(outside))
		}
		live := 2*c.writeBuffer + 2*c.inputBuffer + int64(c.producerBytes())
		if live > c.goMemory(outside) {
			t.Errorf("budget %d: %d may be live of the %d of the Go runtime", budget, live, c.goMemory(outside))
		}
	}
}

// What stores don't take is the Go heap's, and theirs again as they grow.
func TestGoHeapHasWhatStoresLeave(t *testing.T) {
	if os.Getenv("GOMEMLIMIT") != "" {
		t.Skip("SKIPPED: GOMEMLIMIT goes before the budget")
	}
	a := newApp(t, brokertest.Embedded(t), "leave")
	a.create("in", 2)
	a.create("out", 1)
	const budget = leastMemory
	i := a.start(counts(a.name), "i1", MemoryBudget(budget))
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	empty := debug.SetMemoryLimit(-1)
	if empty < budget*2/3 {
		t.Errorf("the Go runtime has %d MB of %d while the stores are empty", empty>>20, budget>>20)
	}
	pad := strings.Repeat("x", 1000)
	values := make([]string, 30_000)
	for n := range values {
		values[n] = fmt.Sprint(n, pad)
	}
	a.produce("in", 2, values...)
	i.await(t, "the stores have grown", func(s Stats) bool { return s.Memory.Rows > budget/8 })
	eventually(t, "the Go runtime's limit follows", func() bool {
		limit, m := debug.SetMemoryLimit(-1), i.Stats().Memory
		return limit < empty-budget/16 && limit+m.Rows+m.Cache < budget
	})
	i.stop(t)
}

// The write buffers of a global table are there for others once its rows are applied, are counted, and go after a while in which nobody takes them.
func TestBuffersOfGlobalTablesAreGivenBack(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "buffers")
	a.create("in", 1)
	a.create("table", 1)
	a.create("out", 1)
	b := topology.NewBuilder(a.name)
	table := b.GlobalTable(a.topic("table"), serde.String, serde.String)
	b.Stream(a.topic("in"), serde.String, serde.String).
		JoinGlobal(table, func(k, _ string) string { return k }, func(v, w string) string { return v + w }).
		To(a.topic("out"))
	var later atomic.Int64
	i := a.start(build(b), "i1", Clock(func() time.Time { return time.Now().Add(time.Duration(later.Load())) }))
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	a.produce("table", 1, "v")
	i.await(t, "the buffer lies ready", func(s Stats) bool { return s.Memory.Spare > 0 })
	if spare := serves(t, i)["tributary_memory_bytes{spare}"]; spare == 0 {
		t.Error("the metrics don't have it")
	}
	eventually(t, "it is given up", func() bool {
		later.Add(int64(trimEvery))
		return i.Stats().Memory.Spare == 0
	})
	i.stop(t)
}

func TestBudgetIsChecked(t *testing.T) {
	_, err := New(counts("checked"), Brokers("localhost:1"), MemoryBudget(1<<20))
	if err == nil || !strings.Contains(err.Error(), "memory budget") {
		t.Errorf("a budget of a megabyte: %v", err)
	}
}
