package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/lander"
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/internal/task"
)

// mailbox is what other goroutines tell the conductor. Telling never blocks; the conductor takes all at once, in order.
type mailbox struct {
	mu    sync.Mutex
	mails []any
	ready chan struct{} // has a token while there are mails
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

func (m *mailbox) put(mail any) {
	m.mu.Lock()
	m.mails = append(m.mails, mail)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

func (m *mailbox) take() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	mails := m.mails
	m.mails = nil
	return mails
}

// putBack puts mails that were taken, but not dealt with, in front again.
func (m *mailbox) putBack(mails []any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails = append(mails, m.mails...)
}

// The conductor's mails, besides opened and lander.Result.
type (
	// rebalanced: there is a new assignment, or everything was lost; see membership.
	rebalanced struct{}
	// hold: the membership is about to join. Commit, then none until the next rebalanced.
	hold struct{ done chan struct{} }
	// commitRequest: commit before the interval is over.
	commitRequest struct{}
	// failure ends the engine.
	failure struct{ err error }
	// outside: the log of an input has no longer what the runner would read next.
	outside struct {
		r   *runner
		err error
	}
	// newCatalog: topics of a pattern have appeared or gone.
	newCatalog struct{ c *catalog }
	// purged: a purge has ended.
	purged struct {
		bounds  []topics.Bound
		refused []string
		err     error
	}
)

func (e *Engine) tell(mail any) { e.mail.put(mail) }

// failed ends the engine with an error.
func (e *Engine) failed(err error) { e.tell(failure{err}) }

// requestCommit asks for a commit as soon as possible; one request at a time.
func (e *Engine) requestCommit() {
	if e.commitWanted.CompareAndSwap(false, true) {
		e.tell(commitRequest{})
	}
}

// conduct is the conductor: it runs until ctx ends or something fails for good.
func (e *Engine) conduct(ctx context.Context) error {
	tick := time.NewTicker(e.cfg.commitInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := e.commitCycle(); err != nil {
				return err
			}
			tick.Reset(e.cfg.commitInterval) // between commits, so that slow ones leave time for work
			e.purge()
			e.tendStandbys()
			e.trimBuffers()
		case <-e.mail.ready:
			mails := e.mail.take()
			for i, mail := range mails {
				if err := e.handle(mail); err != nil {
					e.mail.putBack(mails[i+1:]) // runners that are open now must be closed, too
					return err
				}
			}
		}
		e.showState()
	}
}

func (e *Engine) handle(mail any) error {
	switch m := mail.(type) {
	case rebalanced:
		return e.rebalance()
	case hold:
		defer close(m.done)
		return e.holdCommits()
	case commitRequest:
		e.commitWanted.Store(false)
		return e.commitCycle()
	case opened:
		return e.takeOpened(m)
	case lander.Result:
		return e.landed(m)
	case lettersWritten:
		return e.lettersWritten()
	case pauseChanged:
		e.wakeAll()
		return nil
	case failure:
		return m.err
	case outside:
		return e.outOfRange(m)
	case newCatalog:
		e.next = m.c
		if e.held {
			return nil // after the rebalance
		}
		return e.renew()
	case reopened:
		return e.reopened(m)
	case retryTask:
		return e.retryTask(m.r)
	case unreadableInput:
		return e.parkUnreadable(m)
	case purged:
		e.purgeEnded(m)
		return nil
	}
	return fmt.Errorf("internal: the conductor got a %T", mail)
}

// holdCommits commits what there is, and commits nothing more until the assignment that follows.
func (e *Engine) holdCommits() error {
	if e.held {
		return e.dropLost() // another attempt to join
	}
	if err := e.dropLost(); err != nil {
		return err
	}
	if err := e.commitNow(); err != nil {
		return err
	}
	e.held = true
	return nil
}

// rebalance brings what runs in line with the assignment: tasks that were taken away are committed and closed, then given up; new ones are
// opened in the background. The others go on.
func (e *Engine) rebalance() error {
	if err := e.dropLost(); err != nil {
		return err
	}
	target, copies, assigned := e.members.given()
	if !assigned {
		return nil
	}
	e.held = false
	var revoked []task.ID
	for id := range e.runners {
		if !target[id] {
			revoked = append(revoked, id)
		}
	}
	if len(revoked) > 0 {
		losses := e.losses
		if err := e.giveUp(revoked, copies); err != nil {
			return err
		}
		if e.members.lossCount() != losses {
			return nil // thrown out meanwhile: the others of that assignment may run elsewhere already, and what comes after it is told of
		}
	}
	if e.next != nil { // topics of patterns have changed meanwhile
		return e.renew()
	}
	return e.openGiven(target, copies, len(revoked))
}

// openGiven opens the tasks that were assigned and don't run yet.
func (e *Engine) openGiven(target, copies map[task.ID]bool, revoked int) error {
	for id, s := range e.standbys {
		if target[id] {
			s.release() // its end is waited for below, one after the other
		}
	}
	var fresh []*runner
	for id := range target {
		if e.runners[id] != nil {
			continue
		}
		spec := e.catalog().tasks[id]
		if spec == nil {
			if len(e.catalog().matched) > 0 {
				e.log.Info("a task was assigned of whose topics this instance doesn't know yet: it looks for them", "task", id.String())
				e.lookAgain()
				continue
			}
			e.log.Error("a task was assigned that this instance doesn't know: it is left alone", "task", id.String())
			continue
		}
		r := e.newRunner(spec, 0)
		r.opening = true
		if err := e.promote(r); err != nil {
			return err
		}
		e.runners[id] = r
		fresh = append(fresh, r)
	}
	e.shareMemory()
	slices.SortFunc(fresh, func(a, b *runner) int { return compareIDs(a.spec.id, b.spec.id) })
	if len(fresh)+revoked > 0 {
		e.log.Info("tasks assigned", "new", len(fresh), "given_up", revoked, "kept", len(e.runners)-len(fresh))
	}
	e.pair()
	e.checkFiles(copies)
	e.openAll(fresh)
	if e.members.forget(e.runners) {
		e.membership.Rejoin()
	}
	return e.keepCopies(copies)
}

// giveUp commits and closes tasks, and lets others have them. They process nothing more before that: what they did after their last
// commit would be in the next one, without its offsets. Those of which a copy is to be kept keep their stores open.
func (e *Engine) giveUp(ids []task.ID, copies map[task.ID]bool) error {
	e.gate.close()
	for _, r := range e.runnersOf(ids) {
		r.leaving = true
	}
	e.gate.open()
	if err := e.landRevoked(e.runnersOf(ids)); err != nil {
		return err
	}
	if err := e.commitNow(); err != nil {
		return err
	}
	runners := e.runnersOf(ids)
	if err := errors.Join(e.retire(runners), e.demote(runners, copies), closeStores(runners)); err != nil {
		return err
	}
	e.step(stepClosed)
	e.members.release(ids)
	e.membership.Rejoin()
	return nil
}

// runnersOf are the runners that the tasks have now: a failed commit makes new ones.
func (e *Engine) runnersOf(ids []task.ID) []*runner {
	var all []*runner
	for _, id := range ids {
		if r := e.runners[id]; r != nil {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *runner) int { return compareIDs(a.spec.id, b.spec.id) })
	return all
}

// closeRunners takes runners out of work and closes their stores. Those that are still being opened are closed when their opener is done.
func (e *Engine) closeRunners(runners []*runner) error {
	return errors.Join(e.retire(runners), closeStores(runners))
}

// retire takes runners out of work, and leaves their stores open.
func (e *Engine) retire(runners []*runner) error {
	var parts []fetch.Partition
	for _, r := range runners {
		parts = append(parts, r.partitions()...)
	}
	e.inputs.Remove(parts...)
	e.unreadable(runners...)
	e.gate.close()
	var errs []error
	for _, r := range runners {
		delete(e.runners, r.spec.id)
		e.parts(r)
		errs = append(errs, r.shut())
	}
	e.gate.open()
	e.routes.remove(runners)
	return errors.Join(errs...)
}

// parts notes that a runner is shut whose opener may still have its stores; parted, that its opener is done.
func (e *Engine) parts(r *runner) {
	if r.opening {
		e.parting[r.spec.id]++
	}
}

func (e *Engine) parted(r *runner) {
	if e.parting[r.spec.id]--; e.parting[r.spec.id] <= 0 {
		delete(e.parting, r.spec.id)
	}
}

// closeStores closes the stores of runners that are shut, all at once, since each takes a while. The workers need not wait for it.
func closeStores(runners []*runner) error {
	var closing sync.WaitGroup
	errs := make([]error, len(runners))
	for i, r := range runners {
		if !r.opening {
			closing.Go(func() { errs[i] = r.closeStores() })
		}
	}
	closing.Wait()
	return errors.Join(errs...)
}

// takeOpened lets a runner that is ready run.
func (e *Engine) takeOpened(o opened) error {
	r := o.r
	r.opening = false
	if e.runners[r.spec.id] != r || r.closed { // given up meanwhile
		e.parted(r)
		return r.close()
	}
	if o.err == nil {
		o.err = r.parkedTable() // since it was asked how far it has come
	}
	if o.err != nil && r.spec.lake && e.cfg.parks && e.life.Err() == nil {
		return e.parkTask(r, o.err)
	}
	if o.err != nil {
		delete(e.runners, r.spec.id)
		err := r.close()
		if e.life.Err() != nil {
			return err
		}
		return errors.Join(o.err, err)
	}
	if r.spec.lake {
		e.ownLake(r)
	}
	e.step(stepOpened)
	e.routes.add(r)
	positions := map[fetch.Partition]int64{}
	for tp, at := range o.positions {
		positions[fetch.Partition(tp)] = at
	}
	if err := e.readable(r); err != nil {
		return err
	}
	r.open = true
	r.parked.Store(nil)
	r.runs.Store(true)
	r.inMu.Lock()
	idle := !slices.ContainsFunc(r.spec.inputs, func(tp task.TopicPartition) bool { return r.ends[tp] > r.taken[tp] })
	r.tellIntake()
	r.inMu.Unlock()
	if idle {
		e.inputs.AddIdle(positions)
	} else {
		e.inputs.Add(positions)
	}
	e.queue.wake(r)
	e.log.Debug("task runs", "task", r.spec.id.String(), "from", positions)
	return nil
}

// shareMemory divides the process's budgets over what is open.
func (e *Engine) shareMemory() {
	stateful, inputs := 0, 0
	for _, r := range e.runners {
		inputs += len(r.spec.inputs)
		if len(e.storeSpecs(r.spec)) > 0 {
			stateful++
		}
	}
	e.resources.Expect(stateful)
	e.writeShare.Store(max(e.cfg.writeBuffer/int64(max(1, stateful)), 256<<10))
	share := int(max(e.cfg.inputBuffer/int64(max(1, inputs)), 64<<10))
	for _, r := range e.runners {
		r.inMu.Lock()
		r.pauseCap = share
		r.inMu.Unlock()
	}
}

// showState derives the instance's state from what its runners do.
func (e *Engine) showState() {
	_, joined := e.membership.Member()
	ready := joined && !e.held
	for _, r := range e.runners {
		ready = ready && (r.open || r.parked.Load() != nil)
	}
	switch {
	case e.troubled:
		e.states.set(Recovering)
	case !ready:
		e.states.set(Rebalancing)
	case e.paused.Load():
		e.states.set(Paused)
	default:
		if before, _ := e.states.get(); before != Running && e.states.set(Running) {
			e.log.Info("running", "tasks", len(e.runners))
		}
	}
	e.publish()
}

func compareIDs(a, b task.ID) int {
	if a.Subtopology != b.Subtopology {
		return a.Subtopology - b.Subtopology
	}
	return int(a.Partition - b.Partition)
}

// routes finds the runner of an input partition.
type routes struct {
	mu sync.RWMutex
	to map[fetch.Partition]*runner
}

func (t *routes) add(r *runner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range r.partitions() {
		t.to[p] = r
	}
}

func (t *routes) remove(runners []*runner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.to, func(_ fetch.Partition, r *runner) bool { return slices.Contains(runners, r) })
}

func (t *routes) find(p fetch.Partition) *runner {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.to[p]
}

// deliver hands what was fetched to the runners.
func (e *Engine) deliver(batches []fetch.Batch) {
	for i := range batches {
		b := &batches[i]
		r := e.routes.find(b.Partition)
		if r == nil {
			continue
		}
		if b.Err != nil {
			e.fetchFailed(r, b)
			continue
		}
		r.deliver(b, e.inputs)
		e.queue.wake(r)
	}
}
