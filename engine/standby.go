package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
)

// standby is a copy of a task's state that this instance keeps up to date from the changelogs, for the case that it has to take the task
// over. It has a goroutine of its own that opens and restores it; then the follower has it (follower.go), until it is closed, or the task comes
// here: the database goes from the standby to the runner as it is, and back if the task moves away again.
type standby struct {
	r      *runner // holds the database and shows the restore; never has a task
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing touches the database any more
	failed chan error    // from the follower: the copy has to be opened anew

	stores    atomic.Pointer[[]*copiedStore] // set before it follows
	following atomic.Bool
	warmup    atomic.Bool
	warm      atomic.Bool // caught up: see noteLag

	mu      sync.Mutex // held while records are applied
	stopped bool       // nothing is applied any more

	// The conductor's own.
	warmSince time.Time
	told      bool // that it is caught up
	letGo     bool
	left      int64 // lag when it was let go
}

// unknownLag stands for the lag of a copy that is still being opened.
const unknownLag = assign.UnknownLag

// lag is how many offsets the copy is behind.
func (s *standby) lag() int64 {
	if s.following.Load() {
		n := int64(0)
		for _, c := range *s.stores.Load() {
			n += max(0, c.end.Load()-c.at.Load())
		}
		return n
	}
	s.r.restore.mu.Lock()
	defer s.r.restore.mu.Unlock()
	if s.r.restore.active {
		return s.r.restore.left
	}
	return unknownLag
}

// openingLag is how much of a runner's state that is being opened is still to be restored; 0 when it is there.
func (r *runner) openingLag() int64 {
	if r.counting.Load() != nil {
		return 0
	}
	r.restore.mu.Lock()
	defer r.restore.mu.Unlock()
	switch {
	case r.restore.active:
		return r.restore.left
	case r.restore.over || r.kept:
		return 0
	}
	return unknownLag
}

// warmSlack is how far beyond the acceptable lag a copy may fall that was caught up before it counts as behind again. It keeps a rebalance
// from being overtaken by a moment's delay.
const warmSlack = 10

// noteLag decides whether the copy is caught up.
func (s *standby) noteLag(acceptable int64) {
	limit := acceptable
	if s.warm.Load() {
		limit *= warmSlack
	}
	s.warm.Store(s.following.Load() && s.lag() <= limit)
}

// standbyLags tells of the copies that are kept here how far they are behind. Any goroutine may ask.
func (e *Engine) standbyLags() map[task.ID]int64 {
	lags := map[task.ID]int64{}
	for _, s := range e.standbysNow() {
		lags[s.r.spec.id] = s.lag()
		if s.warm.Load() {
			lags[s.r.spec.id] = min(s.lag(), e.cfg.spread.AcceptableLag)
		}
	}
	return lags
}

// heldState tells of the stateful tasks that this instance holds how much others would have to restore, as far as known, and how much it has
// still to restore itself where that isn't over.
func (e *Engine) heldState(held map[task.ID]bool) (sizes, left map[assign.TaskID]int64) {
	sizes, left = map[assign.TaskID]int64{}, map[assign.TaskID]int64{}
	for _, r := range e.runnersShown() {
		id := r.spec.id
		if !held[id] || !e.catalog().stateful[int32(id.Subtopology)] {
			continue
		}
		if size := r.changelogSize.Load(); size > 0 || r.counting.Load() != nil {
			sizes[assignID(id)] = size
		}
		if n := r.openingLag(); n > 0 {
			left[assignID(id)] = n
		}
	}
	return sizes, left
}

// runnersShown are the runners as the conductor showed them last.
func (e *Engine) runnersShown() []*runner {
	if shown := e.shown.Load(); shown != nil {
		return *shown
	}
	return nil
}

func (e *Engine) standbysNow() []*standby {
	if shown := e.standbysShown.Load(); shown != nil {
		return *shown
	}
	return nil
}

// showStandbys shows the standbys to those who look from other goroutines.
func (e *Engine) showStandbys() {
	all := make([]*standby, 0, len(e.standbys))
	for _, s := range e.standbys {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *standby) int { return compareIDs(a.r.spec.id, b.r.spec.id) })
	e.standbysShown.Store(&all)
}

// keepCopies brings the standbys in line with the assignment.
func (e *Engine) keepCopies(copies map[task.ID]bool) error {
	var gone []*standby
	for id, s := range e.standbys {
		if warmup, ok := copies[id]; ok {
			s.warmup.Store(warmup)
			continue
		}
		delete(e.standbys, id)
		gone = append(gone, s)
	}
	err := e.closeCopies(gone)
	fresh := 0
	for id, warmup := range copies {
		spec := e.catalog().tasks[id]
		if spec == nil || e.standbys[id] != nil || e.runners[id] != nil {
			continue
		}
		e.follow(e.newRunner(spec, 0), warmup)
		fresh++
	}
	if len(gone)+fresh > 0 {
		e.log.Info("standbys assigned", "new", fresh, "given_up", len(gone), "kept", len(e.standbys)-fresh)
	}
	e.showStandbys()
	return err
}

// follow makes a standby of a runner without a task, which may have its database open already.
func (e *Engine) follow(r *runner, warmup bool) {
	r.copy = true
	ctx, cancel := context.WithCancel(e.life)
	s := &standby{r: r, cancel: cancel, done: make(chan struct{}), failed: make(chan error, 1)}
	s.warmup.Store(warmup)
	e.standbys[r.spec.id] = s
	go func() {
		defer close(s.done)
		e.keepStandby(ctx, s)
	}()
}

// promote gives a runner that is about to be opened the database of the standby of its task, if there is one.
func (e *Engine) promote(r *runner) error {
	s := e.standbys[r.spec.id]
	if s == nil {
		return nil
	}
	delete(e.standbys, r.spec.id)
	s.release()
	lag := s.left
	<-s.done
	e.queries.copies.Close(r.spec.id)
	r.db = s.r.db
	if r.db != nil {
		r.changelog, r.kept = make([]*txn.End, len(r.db.Stores())), lag < unknownLag
	}
	e.step(stepPromoted)
	lag = shownLag(lag)
	e.log.Info("a standby takes over", "task", r.spec.id.String(), "behind", lag)
	e.restoring(RestoreEvent{Task: r.spec.id.String(), Standby: true, Phase: StandbyTakesOver, Left: lag})
	return nil
}

// release has a standby end whose task comes here. How far it is behind is known only until then.
func (s *standby) release() {
	if !s.letGo {
		s.letGo, s.left = true, s.lag()
	}
	s.cancel()
}

// shownLag is what users are told of a lag: -1 where it isn't known.
func shownLag(lag int64) int64 {
	if lag >= unknownLag {
		return -1
	}
	return lag
}

// demote turns runners that are retired into standbys where a copy is to be kept. Their databases change hands, and stay open.
func (e *Engine) demote(runners []*runner, copies map[task.ID]bool) error {
	var errs []error
	for _, r := range runners {
		warmup, keep := copies[r.spec.id]
		if !keep || r.db == nil || r.opening || e.standbys[r.spec.id] != nil {
			continue
		}
		if err := r.db.Drop(); err != nil {
			errs = append(errs, err)
			continue
		}
		n := e.newRunner(r.spec, 0)
		n.db, n.changelog, r.db = r.db, r.changelog, nil
		e.follow(n, warmup)
	}
	return errors.Join(errs...)
}

// stop ends what touches the standby's database, and waits for that.
func (s *standby) stop() {
	s.cancel()
	<-s.done
}

// closeCopies closes standbys, all at once.
func (e *Engine) closeCopies(all []*standby) error {
	var closing sync.WaitGroup
	errs := make([]error, len(all))
	for i, s := range all {
		closing.Go(func() {
			s.stop()
			e.queries.copies.Close(s.r.spec.id)
			errs[i] = s.r.closeStores()
			e.restoring(RestoreEvent{Task: s.r.spec.id.String(), Standby: true, Phase: StandbyClosed})
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}

// closeStandbys closes all of them, for good.
func (e *Engine) closeStandbys() error {
	all := e.standbysNow()
	for _, s := range e.standbys {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	e.standbys = map[task.ID]*standby{}
	err := e.closeCopies(all)
	e.showStandbys()
	return err
}

// keepStandby opens a copy, restores it to the end that its changelogs have, and lets the follower have it until ctx ends. What fails is tried
// again: a standby that can't be kept must not bring the instance down.
func (e *Engine) keepStandby(ctx context.Context, s *standby) {
	for pause := 250 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 30*time.Second) {
		err := e.openStandby(ctx, s)
		if err == nil {
			pause = 250 * time.Millisecond
			err = e.awaitStandby(ctx, s)
		}
		if ctx.Err() != nil {
			return
		}
		e.log.Warn("a standby can't be kept up to date at the moment", "task", taskOf(s.r.spec.id), "error", err, "again_in", pause)
		if err := e.closeFailedStandby(s, err); err != nil {
			e.log.Warn("a failed standby can't be closed in order", "task", taskOf(s.r.spec.id), "error", err)
		}
		if sleep(ctx, pause) != nil {
			return
		}
	}
}

// closeFailedStandby closes what a standby has open, so that it is opened anew; what is damaged is set aside.
func (e *Engine) closeFailedStandby(s *standby, cause error) error {
	if s.r.db == nil {
		return nil
	}
	err := s.r.db.Close()
	s.r.db = nil
	if errors.Is(cause, state.ErrCorruption) {
		err = errors.Join(err, setAside(e.taskDir(s.r.spec.id), e.cfg.clock()))
	}
	return err
}

// openStandby brings the copy near to the end.
func (e *Engine) openStandby(ctx context.Context, s *standby) error {
	select {
	case e.standbySlots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.standbySlots }()
	if err := e.openStores(ctx, s.r); err != nil {
		return err
	}
	starts, err := e.readStandbyStarts(ctx, s.r)
	if err != nil {
		return err
	}
	return e.restoreStores(ctx, s.r, starts)
}

// awaitStandby lets the follower have the copy until ctx ends or the follower fails.
func (e *Engine) awaitStandby(ctx context.Context, s *standby) error {
	if err := e.queries.copies.Open(s.r.spec.id, s.r.db); err != nil {
		return err
	}
	if err := e.beginFollowing(s); err != nil {
		e.queries.copies.Close(s.r.spec.id)
		return err
	}
	e.restoring(RestoreEvent{Task: s.r.spec.id.String(), Standby: true, Phase: StandbyFollows})
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	e.endFollowing(s)
	e.queries.copies.Close(s.r.spec.id)
	return err
}

// readStandbyStarts is readStarts for a copy: it waits for no transaction, but goes as far as everything is decided (what lies behind that is
// followed), and needs the committed offsets of topics only that serve as changelogs.
func (e *Engine) readStandbyStarts(ctx context.Context, r *runner) (*starts, error) {
	s := &starts{}
	var err error
	if s.committed, err = e.decidedStarts(ctx, r); err != nil {
		return nil, err
	}
	logs := e.changelogs(r)
	if s.stable, err = fetch.Bounds(ctx, e.restoreClient, fetch.Stable, logs); err != nil {
		return nil, err
	}
	if s.high, err = fetch.Bounds(ctx, e.restoreClient, fetch.High, logs); err != nil {
		return nil, err
	}
	s.logStart, err = fetch.Bounds(ctx, e.restoreClient, fetch.Start, logs)
	return s, err
}

// gatherWarm is how long a warm-up that has caught up waits for others of this instance before it says so.
const gatherWarm = time.Second

// tendStandbys tells the group of warm-ups that have caught up: at once if they are the last, else after a moment for others to join them.
func (e *Engine) tendStandbys() {
	if e.held {
		return
	}
	e.members.probe()
	var ready []*standby
	waiting := false
	now := e.cfg.clock()
	first := now
	for _, s := range e.standbys {
		switch {
		case !s.warmup.Load():
			continue
		case !s.warm.Load():
			waiting, s.told, s.warmSince = true, false, time.Time{}
		case !s.told:
			if s.warmSince.IsZero() {
				s.warmSince = now
			}
			if s.warmSince.Before(first) {
				first = s.warmSince
			}
			ready = append(ready, s)
		}
	}
	if len(ready) == 0 || waiting && now.Sub(first) < gatherWarm {
		return
	}
	for _, s := range ready {
		s.told = true
		e.restoring(RestoreEvent{Task: s.r.spec.id.String(), Standby: true, Phase: StandbyCaughtUp, Left: s.lag()})
	}
	slices.SortFunc(ready, func(a, b *standby) int { return cmp.Compare(a.r.spec.id.String(), b.r.spec.id.String()) })
	e.log.Info("ready to take tasks over", "tasks", len(ready), "first", ready[0].r.spec.id.String())
	e.members.ask()
}
