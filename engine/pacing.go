package engine

import (
	"math"
	"sync"
	"time"

	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
)

// Pacing keeps the tasks of a sub-topology together in event time while they read a backlog.
//
// Without it they run as fast as they can: one may be hours of event time ahead of another, and where their results meet behind a
// repartition topic, the windows of the slower one have closed already and its records count as late. So a task takes a record only if
// it is not more than MaxSkew ahead of the next record of any other task of the sub-topology on this instance that has something to
// read. The task with the earliest record is never held, so there is always one that goes on. A task whose records are known to be in
// its topic, but don't come, is waited for up to patience: its broker may be away. One that is being opened is waited for up to openPatience.
//
// It concerns applications that have windows. Instances don't wait for one another.
type pacer struct {
	slack int64 // ms of event time; 0: no pacing

	mu   sync.Mutex
	ends map[task.TopicPartition]*txn.End // how far this instance has written into repartition topics
}

// How long a task holds back others that waits for its records, or that is being opened: its state may have to be restored.
const (
	patience     = 5 * time.Second
	openPatience = 10 * time.Second
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
			if _, known := r.ends[tp]; known && end != nil {
				r.ends[tp] = max(r.ends[tp], end.Next())
			}
		}
		r.inMu.Unlock()
	}
}

// setSiblings tells each runner of the others of its sub-topology.
func setSiblings(runners []*runner) {
	bySub := map[int][]*runner{}
	for _, r := range runners {
		if !r.spec.lake && r.spec.id.Subtopology >= 0 {
			bySub[r.spec.id.Subtopology] = append(bySub[r.spec.id.Subtopology], r)
		}
	}
	for _, group := range bySub {
		for _, r := range group {
			r.pace.siblings.Store(&group)
		}
	}
}

// reading tells whether the runner has something to read: in hand, or known to be in its topics and about to come.
func (r *runner) reading(now time.Time) bool {
	if !r.runs.Load() {
		return now.Sub(r.pace.born) < openPatience
	}
	if r.phase.Load() != idle || r.pace.held.Load() {
		return true
	}
	if now.UnixNano()-r.pace.emptySince.Load() > int64(patience) {
		return false
	}
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
		if s != r && s.pace.next.Load() < first && s.reading(now) {
			first = s.pace.next.Load()
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
	group := r.pace.siblings.Load()
	if group == nil {
		return
	}
	if !more {
		r.pace.emptySince.Store(e.cfg.clock().UnixNano())
	}
	r.pace.next.Store(r.task.NextTime())
	for _, s := range *group {
		if s != r && s.pace.held.Load() && s.pace.next.Load() <= e.paceLimit(s) && s.pace.held.CompareAndSwap(true, false) {
			e.queue.wake(s)
		}
	}
}
