package gokacompat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lovoo/goka"

	"github.com/tributary-io/tributary/processors"
)

// How visits run: a task looks for new ones every visitLook, and visits up to visitPortion keys every visitPace, so that records go on between.
const (
	visitLook    = 250 * time.Millisecond
	visitPace    = 10 * time.Millisecond
	visitPortion = 2000
)

// ErrVisitInterrupted says that a task was closed, or its work taken back, while its keys were visited: some were visited, and what their
// visits did may count or not. Visit again.
var ErrVisitInterrupted = errors.New("the visit was interrupted: a task was closed before it was through")

// VisitAll calls the callback of a Visitor edge for each key of the table, as goka's Processor.VisitAll does: for the tasks of this instance, with
// meta as the message and the visitor's name as the topic. It returns the number of keys when all are visited, and what the visits did is
// committed. Keys that are set meanwhile may be visited or not; one that was deleted has no value then.
//
// Errors: ErrVisitInterrupted; that of ctx; an error if there is no such visitor, or no task runs here.
func (a *Application) VisitAll(ctx context.Context, name string, meta any) (visited int64, err error) {
	call := a.calls.visitors[name]
	if call == nil {
		return 0, fmt.Errorf("group %s has no visitor %q: it has %v", a.graph.Group(), name, slices.Sorted(maps.Keys(a.calls.visitors)))
	}
	tasks := a.running()
	if len(tasks) == 0 {
		return 0, fmt.Errorf("visit %s: no task of group %s runs here", name, a.graph.Group())
	}
	var all []*visit
	for _, p := range tasks {
		v := &visit{name: name, call: call, meta: meta, done: make(chan error, 1)}
		all = append(all, v)
		p.visits.add(v)
	}
	var errs []error
	for i, v := range all {
		select {
		case err := <-v.done:
			errs = append(errs, err)
		case <-ctx.Done():
			for _, v := range all[i:] {
				v.abandoned.Store(true)
			}
			return visitedBy(all), ctx.Err()
		}
	}
	return visitedBy(all), errors.Join(errs...)
}

func visitedBy(all []*visit) (n int64) {
	for _, v := range all {
		n += v.visited.Load()
	}
	return n
}

// started and stopped keep the list of the instance's tasks.
func (a *Application) started(p *processor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tasks[p] = true
}

func (a *Application) stopped(p *processor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tasks, p)
}

func (a *Application) running() []*processor {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Keys(a.tasks), func(x, y *processor) int { return int(x.partition - y.partition) })
}

// visit is a visit of one task's keys.
type visit struct {
	name string
	call goka.ProcessCallback
	meta any
	done chan error // has room for one

	abandoned atomic.Bool // nobody waits any more
	visited   atomic.Int64
	after     string // the last key that was visited, if any
	through   bool   // all keys are visited
	sealed    bool   // and a commit has begun since
}

// visits are those of a task. Other goroutines add to it; the rest is done by the task's.
type visits struct {
	mu     sync.Mutex
	queue  []*visit
	closed bool

	ticking processors.Cancellable
}

func (vs *visits) add(v *visit) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.closed {
		v.done <- ErrVisitInterrupted
		return
	}
	vs.queue = append(vs.queue, v)
}

func (vs *visits) head() *visit {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if len(vs.queue) == 0 {
		return nil
	}
	return vs.queue[0]
}

// end takes the head out.
func (vs *visits) end(err error) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.queue[0].done <- err
	vs.queue = vs.queue[1:]
}

// seal notes that what the head's visits did is in the commit that begins.
func (vs *visits) seal() {
	if v := vs.head(); v != nil && v.through {
		v.sealed = true
	}
}

func (vs *visits) close() {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.closed = true
	for _, v := range vs.queue {
		v.done <- ErrVisitInterrupted
	}
	vs.queue = nil
}

// lookForVisits begins with a visit that has been asked for. Punctuations make a task commit, so there are few while there is none.
func (p *processor) lookForVisits(int64) error {
	if p.visits.ticking == nil && p.visits.head() != nil {
		p.visits.ticking = p.ctx.Schedule(visitPace, processors.WallClockTime, p.visitOn)
	}
	return nil
}

// visitOn visits the next keys, or ends the visit if those of before are committed: nothing of a task runs during a commit, and one whose commit
// failed is closed.
func (p *processor) visitOn(now int64) error {
	v := p.visits.head()
	for ; v != nil && (v.sealed || v.abandoned.Load()); v = p.visits.head() {
		p.visits.end(nil)
	}
	switch {
	case v == nil:
		p.visits.ticking.Cancel()
		p.visits.ticking = nil
		return nil
	case v.through:
		p.ctx.RequestCommit()
		return nil
	}
	keys, err := p.keysAfter(v.after, v.visited.Load() == 0)
	if err != nil {
		return &storeError{fmt.Errorf("visit %s: %w", v.name, err)}
	}
	for _, key := range keys {
		p.call.begin(goka.Stream(v.name), []byte(key), now, 0)
		p.call.visiting = true
		if err := p.call.run(v.call, v.meta); err != nil {
			return fmt.Errorf("visit %s: key %q: %w", v.name, key, err)
		}
		v.after = key
		v.visited.Add(1)
	}
	if v.through = len(keys) < visitPortion; v.through {
		p.ctx.RequestCommit()
	}
	return nil
}

// keysAfter lists the next keys of the table.
func (p *processor) keysAfter(after string, first bool) (keys []string, err error) {
	var from []byte
	if !first {
		from = []byte(after + "\x00")
	}
	it, err := p.table.rows.Range(from, nil)
	if err != nil {
		return nil, err
	}
	for len(keys) < visitPortion && it.Next() {
		keys = append(keys, string(it.Key()))
	}
	return keys, it.Close()
}
