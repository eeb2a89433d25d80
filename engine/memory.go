package engine

import (
	"os"
	"runtime/debug"
	"sync"
)

// MemoryBudget is what an instance may keep in memory, in bytes: one number for all that grows under load, divided over its parts. It is that of the
// process if the application does nothing else there; what the program itself takes, some 30 MB of code that is mapped, comes on top. 96 MB at least.
//
//   - 5/32: rows and filters in front of the stores (state.ResourceOptions.RowBytes)
//   - 5/32: block cache and memtables (CacheBytes)
//   - 1/12: uncommitted state (WriteBuffer), which needs up to twice as much while it grows
//   - 1/24: fetched records (InputBuffer), and as much again in the client's hands
//   - 1/16, 8 MB at least: records on their way to the brokers
//   - 1/5: open lake batches (LakeBatches.Budget), if there are any
//
// The rest is for the Go collector, which is told to keep what the runtime holds below the budget, less what lies outside of the Go heap
// (debug.SetMemoryLimit, for the process as long as Run runs; GOMEMLIMIT goes before it). Options given later set parts of their own. Each task with
// state takes some 300 kB for its database whatever the budget, and its write buffer is not made smaller than 256 kB.
//
// Without a budget each part has its own default, and the collector lets the Go heap grow to twice what is live.
func MemoryBudget(bytes int64) Option {
	return func(c *config) {
		c.memory = bytes
		c.state.RowBytes, c.state.CacheBytes = bytes*5/32, bytes*5/32
		c.state.MinMemtableBytes = min(1<<20, bytes/256)
		c.writeBuffer, c.inputBuffer = bytes/12, bytes/24
		c.lake.Budget, c.lake.Bytes = bytes/5, min(c.lake.Bytes, bytes/10)
	}
}

// leastMemory is the least budget.
const leastMemory = 96 << 20

func (c *config) checkMemory(bad func(format string, args ...any)) {
	if c.memory != 0 && c.memory < leastMemory {
		bad("the memory budget is %d bytes, it must be %d at least", c.memory, leastMemory)
	}
}

// producerBytes bounds the records on their way to the brokers; 0: by their number alone.
func (c *config) producerBytes() int {
	if c.memory == 0 {
		return 0
	}
	return int(max(c.memory/16, 8<<20))
}

// goMemory is what the Go runtime may hold of the budget: all but what lies outside of it, and what threads and fragments take.
func (c *config) goMemory() int64 {
	outside := c.state.RowBytes + c.state.CacheBytes
	return max(c.memory-outside-12<<20-c.memory/16, leastMemory/4)
}

// goLimits adds up what the instances of this process leave to the Go runtime.
var goLimits struct {
	mu     sync.Mutex
	total  int64
	before int64 // the limit that was there without them
}

// limitGo sets the runtime's limit by the budget; the result takes it back.
func (c *config) limitGo() (undo func() error) {
	if c.memory == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return func() error { return nil }
	}
	own := c.goMemory()
	addGoLimit(own)
	return func() error { addGoLimit(-own); return nil }
}

func addGoLimit(bytes int64) {
	l := &goLimits
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total == 0 {
		l.before = debug.SetMemoryLimit(-1)
	}
	if l.total += bytes; l.total == 0 {
		debug.SetMemoryLimit(l.before)
		return
	}
	debug.SetMemoryLimit(min(l.total, l.before))
}

// MemoryStats is what an instance keeps in memory of what its budget divides, in bytes.
type MemoryStats struct {
	Rows  int64 // rows and filters in front of the stores
	Cache int64 // block cache and memtables
	Write int64 // uncommitted state, as of the tasks' last slices of work
	Input int64 // fetched records
}

// memoryStats may be called from any goroutine.
func (e *Engine) memoryStats() MemoryStats {
	m := MemoryStats{Write: e.uncommitted.Load(), Input: e.intake.bytes.Load()}
	if res := e.resourcesShown.Load(); res != nil {
		m.Rows, m.Cache = res.RowBytes(), res.CacheBytes()
	}
	return m
}

// tellWritten brings the runner's part in the uncommitted state up to date. inMu must be held, by the task's worker or with the gate closed.
func (r *runner) tellWritten() {
	if r.uncommitted == nil {
		return
	}
	bytes := int64(0)
	if r.db != nil && !r.closed {
		bytes = r.db.BufferedBytes()
	}
	r.uncommitted.Add(bytes - r.told.written)
	r.told.written = bytes
}
