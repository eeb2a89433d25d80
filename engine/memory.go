package engine

import (
	"context"
	"time"
)

// MemoryBudget is what an instance may keep in memory, in bytes: one number for all that grows under load, divided over its parts. It is that of the
// process if the application does nothing else there; what the program itself takes, some 30 MB of code that is mapped, comes on top. 96 MB at least.
//
//   - 1/4: rows and filters in front of the stores (state.ResourceOptions.RowBytes)
//   - 5/32: block cache and memtables (CacheBytes)
//   - 1/12: uncommitted state (WriteBuffer), which needs up to twice as much while it grows
//   - 1/16: fetched records (InputBuffer), and as much again in the client's hands
//   - 1/16, 8 MB at least: records on their way to the brokers
//   - 1/5: open lake batches (LakeBatches.Budget), if there are any
//
// The rest, and what stores don't take of their parts, is for the Go heap: the collector is told to keep what the runtime holds below the budget, less
// what lies outside of it just now (debug.SetMemoryLimit), and not to work before that is near (debug.SetGCPercent(400), if it is 100). Both are the
// process's as long as Run runs; GOMEMLIMIT and GOGC of the environment go before them. The C library, too, is told to keep less (one arena, for good,
// unless MALLOC_ARENA_MAX is set). Options given later set parts of their own. Each task with state takes
// some 300 kB for its database whatever the budget, and its write buffer is not made smaller than 256 kB.
//
// Without a budget each part has its own default, and the collector lets the Go heap grow to twice what is live.
func MemoryBudget(bytes int64) Option {
	return func(c *config) {
		c.memory = bytes
		c.state.RowBytes, c.state.CacheBytes = bytes/4, bytes*5/32
		c.state.MinMemtableBytes = min(1<<20, bytes/256)
		c.writeBuffer, c.inputBuffer = bytes/12, bytes/16
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

// goMemory is what the Go runtime may hold of the budget where stores take so many bytes outside of it: all but that, something for them to grow until
// the next look, and what threads and fragments take.
func (c *config) goMemory(stores int64) int64 {
	outside := min(stores+c.memory/16, c.state.RowBytes+c.state.CacheBytes)
	return max(c.memory-outside-12<<20-c.memory/16, leastMemory/4)
}

// memoryLook is the time between looks at what stores take.
const memoryLook = 250 * time.Millisecond

// shareGo gives the Go runtime what stores don't take of the budget, until ctx ends.
func (e *Engine) shareGo(ctx context.Context) {
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		stores := e.resources.OutsideBytes()
		// The runtime stops all for a moment to take a limit: small changes aren't worth it.
		if now := e.cfg.goMemory(stores); now < e.goShare.Bytes()-e.cfg.memory/64 || now > e.goShare.Bytes()+e.cfg.memory/64 {
			e.goShare.Claim(now)
		}
	}
}

// trimEvery is how long write buffers are kept that no store uses.
const trimEvery = 10 * time.Second

// trimBuffers gives up write buffers that no store has used for a while: they are those of the largest commits.
func (e *Engine) trimBuffers() {
	if now := e.cfg.clock(); now.Sub(e.trimmedAt) >= trimEvery {
		e.trimmedAt = now
		e.resources.Trim()
	}
}

// MemoryStats is what an instance keeps in memory of what its budget divides, in bytes.
type MemoryStats struct {
	Rows  int64 // rows and filters in front of the stores
	Cache int64 // blocks of the databases' tables
	Spare int64 // write buffers that no store uses at the moment
	Write int64 // uncommitted state, as of the tasks' last slices of work
	Input int64 // fetched records
}

// memoryStats may be called from any goroutine.
func (e *Engine) memoryStats() MemoryStats {
	m := MemoryStats{Write: e.uncommitted.Load(), Input: e.intake.bytes.Load()}
	if res := e.resourcesShown.Load(); res != nil {
		m.Rows, m.Cache, m.Spare = res.RowBytes(), res.CacheBytes(), res.SpareBytes()
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
