package engine

import (
	"math"
	"sync"
	"time"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Pacing keeps the tasks of a sub-topology together in event time while they read a backlog.
//
// Without it they run as fast as they can: one may be hours of event time ahead of another, and where their results meet behind a
// repartition topic, the windows of the slower one have closed already and its records count as late. So a task takes a record only if
// it is not more than MaxSkew ahead of the next record of any other task of the sub-topology on this instance that has something to
// read. The task with the earliest record is never held, so there is always one that goes on.
//
// A task that has something to read, but isn't at it, is waited for as well: while its records, known to be in its topic, don't come (its broker
// may be away), and while it is being opened (its state may have to be restored). After patience it is taken to go on with the wall clock. So
// live input is never held up for longer than that, and a backlog runs ahead by no more than the delay itself.
//
// It concerns applications that have windows. Instances don't wait for one another.
type pacer struct {
	slack int64 // ms of event time; 0: no pacing

	mu   sync.Mutex
	ends map[task.TopicPartition]*txn.End // how far this instance has written into repartition topics
}

const (
	patience     = 5 * time.Second  // how long a task that isn't at its records stands still in event time
	awayPatience = time.Minute      // how long records are waited for that are known to be there, and don't come
	openPatience = 10 * time.Second // how long a task is waited for that is being opened, and of which nothing is known
)

// lookAround is after how many records a task looks again how far the others are.
const lookAround = 64

func newPacer(p *plan.Plan, skew time.Duration) *pacer {
	pc := &pacer{ends: map[task.TopicPartition]*txn.End{}}
	for _, s := range p.Stores {
		switch s.Spec.Kind {
		case state.Window, state.TimestampedWindow, state.Session, state.SuppressBuffer, state.JoinList, state.JoinBuffer:
			pc.slack = skew.Milliseconds()
		}
	}
	return pc
}

func (p *pacer) on() bool { return p.slack > 0 }

// end follows what this instance writes into a partition; nil without pacing.
func (p *pacer) end(topic string, partition int32) *txn.End {
	if !p.on() {
		return nil
	}
	tp := task.TopicPartition{Topic: topic, Partition: partition}
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.ends[tp]
	if end == nil {
		end = new(txn.End)
		p.ends[tp] = end
	}
	return end
}

// paceCommitted tells the tasks that read repartition topics what a commit has put there: they have something to read before it is
// fetched. The gate must be closed.
func (e *Engine) paceCommitted() {
	if !e.pacer.on() {
		return
	}
	for _, r := range e.runners {
		r.inMu.Lock()
		for _, tp := range r.spec.inputs {
			e.pacer.mu.Lock()
			end := e.pacer.ends[tp]
			e.pacer.mu.Unlock()
			if had, known := r.ends[tp]; known && end != nil && end.Next() > had {
				r.ends[tp] = end.Next()
				r.tellIntake()
				r.pace.dueSince.Store(e.cfg.clock().UnixNano())
			}
		}
		r.inMu.Unlock()
	}
}

// pair tells each runner of the others of its sub-topology. Whoever adds runners does so before workers go on.
func (e *Engine) pair() {
	if !e.pacer.on() {
		return
	}
	bySub := map[int][]*runner{}
	for _, r := range sortedRunners(e.runners) {
		if !r.spec.lake {
			bySub[r.spec.id.Subtopology] = append(bySub[r.spec.id.Subtopology], r)
		}
	}
	for _, group := range bySub {
		for _, r := range group {
			r.pace.siblings.Store(&group)
		}
	}
}

// paceOpening notes how far a task was when it was last committed, and whether there is anything for it to read: by that the others wait while it
// is being opened.
func (r *runner) paceOpening(s *starts) {
	last, unread := int64(processors.NoTimestamp), false
	for _, tp := range r.spec.inputs {
		c, p := s.committed[tp], fetch.Partition(tp)
		last = max(last, c.meta.PartitionTime)
		unread = unread || s.stable[p] > max(c.offset, s.logStart[p])
	}
	if !unread {
		last = math.MaxInt64
	}
	r.pace.next.Store(last)
}

// at is the event time at which the runner holds others back; math.MaxInt64 if it doesn't.
func (r *runner) at(now time.Time) int64 {
	next, waited := r.pace.next.Load(), time.Duration(now.UnixNano()-r.pace.dueSince.Load())
	switch {
	case !r.runs.Load():
		if next == processors.NoTimestamp && waited > openPatience {
			return math.MaxInt64
		}
	case r.phase.Load() != idle || r.pace.held.Load():
		return next
	case waited > awayPatience || !r.behind():
		return math.MaxInt64
	}
	if late := waited - patience; late > 0 && next < math.MaxInt64-late.Milliseconds() {
		next += late.Milliseconds()
	}
	return next
}

// behind tells whether an input is known to have records that haven't come yet.
func (r *runner) behind() bool {
	r.inMu.Lock()
	defer r.inMu.Unlock()
	for _, tp := range r.spec.inputs {
		if r.ends[tp] > r.taken[tp] {
			return true
		}
	}
	return false
}

// paceLimit is the event time up to which the runner may process.
func (e *Engine) paceLimit(r *runner) int64 {
	group := r.pace.siblings.Load()
	if group == nil {
		return math.MaxInt64
	}
	first, now := int64(math.MaxInt64), e.cfg.clock()
	for _, s := range *group {
		if s != r && s.pace.next.Load() < first {
			first = min(first, s.at(now))
		}
	}
	if first > math.MaxInt64-e.pacer.slack {
		return math.MaxInt64
	}
	return first + e.pacer.slack
}

// hold sets the runner aside until the others have come closer. It reports false if they have meanwhile.
func (e *Engine) hold(r *runner) bool {
	r.pace.next.Store(r.task.NextTime())
	r.pace.held.Store(true) // first, so that whoever comes closer from now on sees it
	if r.pace.next.Load() <= e.paceLimit(r) {
		r.pace.held.Store(false)
		return false
	}
	release := func() {
		if r.pace.held.CompareAndSwap(true, false) {
			e.queue.wake(r) // to look again
		}
	}
	if r.pace.timer == nil {
		r.pace.timer = time.AfterFunc(patience, release)
	} else {
		r.pace.timer.Reset(patience)
	}
	return true
}

// paced publishes how far the runner has come after a slice, and wakes those that waited for it.
func (e *Engine) paced(r *runner, more bool) {
	if r.pace.siblings.Load() == nil {
		return
	}
	if !more {
		r.pace.dueSince.Store(e.cfg.clock().UnixNano())
	}
	r.pace.next.Store(r.task.NextTime())
	e.releaseSiblings(r)
}

// releaseSiblings wakes those that the runner doesn't hold back any more.
func (e *Engine) releaseSiblings(r *runner) {
	group := r.pace.siblings.Load()
	if group == nil {
		return
	}
	for _, s := range *group {
		if s != r && s.pace.held.Load() && s.pace.next.Load() <= e.paceLimit(s) && s.pace.held.CompareAndSwap(true, false) {
			e.queue.wake(s)
		}
	}
}
