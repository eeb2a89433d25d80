package engine

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
)

// The phases of a runner in the run queue. Only wake and the worker that runs it change them.
const (
	idle    int32 = iota
	queued        // in the queue
	running       // a worker has it
	again         // a worker has it, and it is to run once more
)

// runQueue holds the runners that have something to do, each at most once.
type runQueue struct {
	mu     sync.Mutex
	cond   *sync.Cond
	ready  []*runner
	closed bool
}

func newRunQueue() *runQueue {
	q := &runQueue{}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// wake makes sure that the runner runs after this call.
func (q *runQueue) wake(r *runner) {
	for {
		switch phase := r.phase.Load(); phase {
		case idle:
			if r.phase.CompareAndSwap(idle, queued) {
				q.push(r)
				return
			}
		case running:
			if r.phase.CompareAndSwap(running, again) {
				return
			}
		default:
			return
		}
	}
}

func (q *runQueue) push(r *runner) {
	q.mu.Lock()
	q.ready = append(q.ready, r)
	q.mu.Unlock()
	q.cond.Signal()
}

// take waits for a runner; nil once the queue is closed.
func (q *runQueue) take() *runner {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ready) == 0 && !q.closed {
		q.cond.Wait()
	}
	if q.closed {
		return nil
	}
	r := q.ready[0]
	q.ready[0] = nil
	q.ready = q.ready[1:]
	r.phase.Store(running)
	return r
}

// done puts a runner that was taken back: into the queue if there is more to do.
func (q *runQueue) done(r *runner, more bool) {
	if !more && r.phase.CompareAndSwap(running, idle) {
		return
	}
	r.phase.Store(queued)
	q.push(r)
}

func (q *runQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.cond.Broadcast()
}

// gate stops the workers between two records. Workers are inside while they run a slice; close waits until all are out. Only the
// conductor closes it, and may do so again while it is closed: it opens with the last open.
//
// Those who wait do so on a condition, not on a lock: under a simulated clock a wait for a lock would hold up time itself, which the conductor
// needs to go on.
type gate struct {
	mu      sync.Mutex
	changed sync.Cond
	inside  int // workers
	shut    bool
	closing atomic.Bool
	depth   int // the conductor's own
}

func newGate() *gate {
	g := &gate{}
	g.changed.L = &g.mu
	return g
}

func (g *gate) enter() {
	g.mu.Lock()
	for g.shut {
		g.changed.Wait()
	}
	g.inside++
	g.mu.Unlock()
}

func (g *gate) leave() {
	g.mu.Lock()
	g.inside--
	if g.shut && g.inside == 0 {
		g.changed.Broadcast()
	}
	g.mu.Unlock()
}

// close returns once no worker is inside; none gets in before open.
func (g *gate) close() {
	g.depth++
	if g.depth > 1 {
		return
	}
	g.closing.Store(true)
	g.mu.Lock()
	g.shut = true
	for g.inside > 0 {
		g.changed.Wait()
	}
	g.mu.Unlock()
	g.closing.Store(false)
}

func (g *gate) open() {
	g.depth--
	if g.depth == 0 {
		g.mu.Lock()
		g.shut = false
		g.mu.Unlock()
		g.changed.Broadcast()
	}
}

// sliceRecords bounds a slice, so that runners take turns.
const sliceRecords = 2000

// work runs runners until the queue is closed.
func (e *Engine) work(ctx context.Context) {
	for {
		r := e.queue.take()
		if r == nil {
			return
		}
		more := e.slice(r)
		e.queue.done(r, more && ctx.Err() == nil)
	}
}

// slice runs one runner for a while, and reports whether it has more to do. An error is noted before the gate is left: no commit may
// come between.
func (e *Engine) slice(r *runner) (more bool) {
	e.gate.enter()
	defer e.gate.leave()
	if e.pauses(r) {
		r.halted = true
		return false
	}
	if e.stopped.Load() || !r.open || r.leaving || r.closed || e.fatal.Load() != nil || e.broken.Load() != nil {
		return false
	}
	more, err := e.runSlice(r)
	if err != nil {
		e.broke(r, err)
		return false
	}
	return more
}

func (e *Engine) runSlice(r *runner) (more bool, err error) {
	if r.halted {
		r.halted = false
		r.task.IdleAnew()
	}
	if err := r.takeInbox(); err != nil {
		return false, err
	}
	before := r.task.Processed()
	more, err = e.process(r)
	waits := err != nil && e.mayWait(r, err)
	if err != nil && !waits {
		return false, err
	}
	if r.parked.Load() != nil && !waits && r.task.Processed() > before {
		r.parked.Store(nil)
		r.retries = 0
		e.log.Info("a lake task goes on", "task", r.spec.id.String())
	}
	if _, err := r.task.PunctuateWallClock(); err != nil {
		return false, err
	}
	r.afterSlice(e.inputs)
	r.streamTime.Store(r.task.StreamTime())
	e.paced(r, more)
	if r.task.CommitRequested() {
		e.requestCommit()
	}
	if !more {
		e.arm(r)
	}
	if waits {
		e.wakeIn(r, e.retryRecordIn(r, err))
	}
	return more, nil
}

// broke notes that a runner failed in the middle of a record: nothing may be committed any more. Where it was the producer that failed,
// everything is taken back and done again; else the engine ends.
func (e *Engine) broke(r *runner, err error) {
	var producer *producerError
	if errors.As(err, &producer) && (txn.IsRefusal(err) || !txn.Permanent(err)) {
		r.redo = true // it has half a record in its stores and its output, even if nothing whole since the last commit
		e.broken.CompareAndSwap(nil, &producer.err)
		e.requestCommit() // which finds out
		return
	}
	err = &TaskError{Task: taskOf(r.spec.id), Err: err}
	if e.fatal.CompareAndSwap(nil, &err) {
		e.failed(err)
	}
}

// process processes records until there are none, the slice is over, or the workers are to stop.
func (e *Engine) process(r *runner) (more bool, err error) {
	unlimited := r.pace.siblings.Load() == nil
	r.task.SetLimit(math.MaxInt64)
	for n := range sliceRecords {
		if !unlimited && n%lookAround == 0 {
			r.pace.next.Store(r.task.NextTime())
			r.task.SetLimit(e.paceLimit(r))
		}
		if e.gate.closing.Load() || e.pauses(r) {
			return true, nil
		}
		if e.mustWait(r) {
			return false, nil // a commit wakes it
		}
		did, err := r.task.Process()
		if err != nil {
			return false, err
		}
		if !did {
			return r.task.Ahead() && !e.hold(r), nil
		}
		if _, err := r.task.PunctuateStreamTime(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// mustWait tells that nothing may be processed before a commit: the write buffer or a lake batch is full, or letters are to be written.
func (e *Engine) mustWait(r *runner) bool {
	if r == e.global && e.letters.hold() {
		return true
	}
	if r.db != nil && r.db.BufferedBytes() > e.writeShare.Load() {
		e.requestCommit()
		return true
	}
	if r.spec.lake && e.lakeFull(r) {
		e.requestCommit()
		return true
	}
	return false
}

// arm sets the runner's timer for what time alone brings.
func (e *Engine) arm(r *runner) {
	wait := time.Duration(-1)
	until := func(at time.Time, ok bool) {
		if left := max(at.Sub(e.cfg.clock()), time.Millisecond); ok && (wait < 0 || left < wait) {
			wait = left
		}
	}
	until(r.task.NextWallClock())
	until(r.task.WaitEnds())
	if wait < 0 {
		return
	}
	e.wakeIn(r, wait)
}

// wakeIn lets the runner run after a while.
func (e *Engine) wakeIn(r *runner, wait time.Duration) {
	if r.timer == nil {
		r.timer = time.AfterFunc(wait, func() { e.queue.wake(r) })
		return
	}
	r.timer.Reset(wait)
}

// TaskError says which task failed.
type TaskError struct {
	Task string
	Err  error
}

func (e *TaskError) Error() string {
	return "task " + e.Task + " can't go on: " + strings.TrimPrefix(e.Err.Error(), "task "+e.Task+": ") + e.wayOut()
}

// wayOut says what lets the application go on without the record, where an error handler is asked about it.
func (e *TaskError) wayOut() string {
	handler := ""
	switch {
	case errors.As(e.Err, new(*processors.DeserializationError)):
		handler = "Deserialization"
	case errors.As(e.Err, new(*processors.ProcessingError)):
		handler = "Processing"
	case errors.As(e.Err, new(*processors.SerializationError)):
		handler = "Production"
	}
	if handler == "" {
		return ""
	}
	return "; to skip or dead-letter such records, set processors.Handlers." + handler + " by engine.ErrorHandlers (docs/semantics/errors.md)"
}

func (e *TaskError) Unwrap() error { return e.Err }

// taskOf names a task for display.
func taskOf(id task.ID) string {
	if id.Subtopology < 0 {
		return "global"
	}
	return id.String()
}
