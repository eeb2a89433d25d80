package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
)

// commitCycle is a commit by the clock or on request. While the instance joins there is none, unless that takes long, because another
// member is dead or slow: the old generation may still commit then, and keeps the open transaction from running out. If the generation ends
// just then, the commit is refused and its work done again.
func (e *Engine) commitCycle() error {
	if e.held {
		since, open := e.producer.Open()
		if !open || time.Since(since) < e.cfg.transaction/3 {
			return nil
		}
	}
	return e.commitNow()
}

// commitWork is what one commit is about.
type commitWork struct {
	runners   []*runner // whose offsets and state are committed
	gens      map[*runner]*state.Generation
	positions map[*runner][]task.Position
	metas     map[*runner]map[string]int64
	offsets   []offsets.Position // of the application's group
	dead      []offsets.Position // of the group that remembers dead letters
	lakeDead  []*runner          // lake runners with dead letters in the transaction
	lakeShown map[*runner][]task.Position
}

// commitNow commits what all tasks have done since the last time. Whatever isn't clearly committed is taken back, and done again: the error
// is nil then. Errors are for a person.
func (e *Engine) commitNow() error {
	if e.noCommits != nil {
		return e.noCommits
	}
	m, ok := e.membership.Member() // before the losses are looked at: see members
	if e.members.lossCount() != e.losses || !ok {
		return e.dropLost()
	}
	e.gate.close()
	defer e.gate.open()
	if err := e.fatal.Load(); err != nil {
		return *err
	}
	if err := e.broken.Swap(nil); err != nil {
		return e.recover(&commitWork{}, txn.Aborted, *err)
	}
	began := e.cfg.clock()
	w, err := e.seal()
	if errors.As(err, new(*producerError)) {
		return e.recover(w, txn.Aborted, err)
	}
	if err != nil {
		return err
	}
	e.step(stepSealed)
	if err := e.finish(m, w, began); err != nil {
		return err
	}
	if err := e.settleAfterOutage(); err != nil {
		return err
	}
	e.cutLake() // last: dead letters are committed before the table moves past them
	return nil
}

// finish commits what was sealed and lets it into the stores.
func (e *Engine) finish(m offsets.Member, w *commitWork, began time.Time) error {
	_, inTxn := e.producer.Open()
	if len(w.offsets) == 0 && len(w.runners) == 0 && !inTxn {
		e.troubled = false // what was taken back is done again, or there was nothing
		return nil
	}
	ctx, cancel := context.WithTimeout(e.life, e.cfg.transaction)
	defer cancel()
	outcome, err := e.commitWork(ctx, m, w)
	if outcome != txn.Committed {
		return e.recover(w, outcome, err)
	}
	e.step(stepCommitted)
	if err := e.applied(w); err != nil {
		return err
	}
	e.step(stepApplied)
	e.calm()
	e.refusals.committed()
	var records int64
	if inTxn {
		records = e.producer.Written()
	}
	e.stats.committed(e.cfg.clock().Sub(began), records, e.cfg.clock())
	for _, r := range w.runners {
		e.queue.wake(r)
	}
	return nil
}

// seal closes the buffers of all tasks that have done something, and puts their changelog records into the transaction. The gate must be
// closed.
func (e *Engine) seal() (*commitWork, error) {
	w := &commitWork{
		gens: map[*runner]*state.Generation{}, positions: map[*runner][]task.Position{},
		metas: map[*runner]map[string]int64{}, lakeShown: map[*runner][]task.Position{},
	}
	var stateful []*runner
	for _, r := range sortedRunners(e.runners) {
		if !r.open {
			continue
		}
		if r.spec.lake {
			e.sealLake(r, w)
			continue
		}
		if !r.dirty() {
			continue
		}
		w.runners = append(w.runners, r)
		if err := r.task.PrepareCommit(); err != nil { // updates that wait for the commit
			return w, &TaskError{Task: taskOf(r.spec.id), Err: err}
		}
		w.positions[r] = r.moved()
		w.metas[r] = r.task.Progress()
		r.task.TakeDirty()
		r.redo = false
		w.offsets = append(w.offsets, e.commitPositions(r, w.positions[r])...)
		if r.db != nil {
			stateful = append(stateful, r)
		}
	}
	if err := e.outputFirst(); err != nil {
		return w, err
	}
	gens := make([]*state.Generation, len(stateful))
	err := e.together(stateful, func(i int, r *runner) (err error) {
		gens[i], err = e.sealStores(r)
		e.step(stepSealing)
		return err
	})
	for i, r := range stateful {
		w.gens[r] = gens[i]
	}
	if err != nil {
		return w, err
	}
	return w, e.sealGlobal()
}

// together does something for each of some runners, several at a time, as the workers stand still meanwhile. The error is that of the first.
func (e *Engine) together(runners []*runner, do func(i int, r *runner) error) error {
	errs := make([]error, len(runners))
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(e.cfg.workers, len(runners)) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(runners); i = int(next.Add(1)) - 1 {
				if err := do(i, runners[i]); err != nil {
					errs[i] = fmt.Errorf("task %s: %w", taskOf(runners[i].spec.id), err)
				}
			}
		})
	}
	running.Wait()
	return cmp.Or(errs...)
}

// outputFirst waits, where there are no transactions, until all output is written, before the changelog records that stand for it are sent.
// Else a crash in between could leave a changelog that knows a record, and no output of it: a deduplication that reads the record again would
// drop it, and it would be lost under at-least-once.
func (e *Engine) outputFirst() error {
	if e.cfg.guarantee == ExactlyOnce {
		return nil
	}
	if _, open := e.producer.Open(); !open {
		return nil
	}
	ctx, cancel := context.WithTimeout(e.life, e.cfg.transaction)
	defer cancel()
	err := e.producer.Flush(ctx)
	if err == nil {
		err = e.producer.Err()
	}
	if err != nil {
		return &producerError{err}
	}
	return nil
}

func (e *Engine) commitPositions(r *runner, moved []task.Position) []offsets.Position {
	ps, progress := make([]offsets.Position, len(moved)), r.task.Progress()
	for i, p := range moved {
		ps[i] = offsets.Position{
			Partition: offsets.Partition{Topic: p.Topic, ID: e.catalog().id(p.Topic), Partition: p.Partition},
			Offset:    p.Offset,
			Metadata:  offsets.Metadata{PartitionTime: p.PartitionTime, Progress: progress}.Encode(),
		}
	}
	return ps
}

// sealStores closes the buffer of a task's stores and sends its changelog.
func (e *Engine) sealStores(r *runner) (*state.Generation, error) {
	gen, err := r.db.Seal()
	if err != nil {
		return nil, err
	}
	specs := r.db.Stores()
	for i := range r.changelog {
		r.changelog[i] = nil
	}
	r.sealed = 0
	for rec := range gen.Changelog() {
		r.sealed++
		if r.changelog[rec.Store] == nil {
			r.changelog[rec.Store] = new(txn.End)
		}
		timestamp := rec.Timestamp
		if timestamp == state.NoTimestamp {
			timestamp = e.cfg.clock().UnixMilli()
		}
		// The bytes belong to the generation. They are copied, since a client that is given up may still read them for a moment.
		err := r.out.produce(txn.Record{
			Topic: e.plan.Stores[specs[rec.Store].Name].Changelog, Partition: r.spec.id.Partition,
			Key: r.out.copy(rec.Key), Value: r.out.copy(rec.Value), Timestamp: timestamp, Headers: r.out.headers(rec.Headers), End: r.changelog[rec.Store],
		})
		if err != nil {
			return gen, fmt.Errorf("changelog of store %s: %w", specs[rec.Store].Name, err)
		}
	}
	return gen, nil
}

// commitWork sends what was sealed: in the transaction if there is one, else the offsets alone.
func (e *Engine) commitWork(ctx context.Context, m offsets.Member, w *commitWork) (txn.Outcome, error) {
	if _, open := e.producer.Open(); open {
		return e.producer.Commit(ctx,
			txn.Offsets{Group: e.group(), Member: m, Positions: w.offsets},
			txn.Offsets{Group: e.deadGroup(), Member: offsets.Member{Generation: -1}, Positions: w.dead})
	}
	if len(w.offsets) == 0 {
		return txn.Committed, nil
	}
	if err := offsets.Commit(ctx, e.control, e.group(), m, w.offsets); err != nil {
		return txn.Aborted, err
	}
	return txn.Committed, nil
}

// applied lets the committed buffers into the stores.
func (e *Engine) applied(w *commitWork) error {
	now := e.cfg.clock().UnixNano()
	for _, r := range w.runners {
		r.committedAt.Store(now)
		for _, p := range w.positions[r] {
			r.committed[p.TopicPartition] = p.Offset
		}
		r.progress = w.metas[r]
	}
	err := e.together(w.runners, func(_ int, r *runner) error {
		gen := w.gens[r]
		if gen == nil {
			return nil
		}
		if err := gen.Apply(e.changelogEnds(r), nil); err != nil {
			return err
		}
		gen.Release()
		r.inMu.Lock()
		r.tellWritten()
		r.inMu.Unlock()
		e.step(stepApplying)
		r.changelogSize.Add(r.sealed) // not before: whoever sees it grow looks for the state that belongs to it
		return nil
	})
	e.paceCommitted()
	e.lakeCommitted(w)
	return err
}

// changelogEnds gives, by store, the offset from which a restore would go on.
func (e *Engine) changelogEnds(r *runner) []int64 {
	specs := r.db.Stores()
	ends := make([]int64, len(specs))
	for i, spec := range specs {
		ends[i] = state.NoOffset
		s := e.plan.Stores[spec.Name]
		switch {
		case s.SourceAsChangelog:
			tp := task.TopicPartition{Topic: s.Changelog, Partition: r.spec.id.Partition}
			if at, ok := r.committed[tp]; ok && at >= 0 {
				ends[i] = at
			}
		case r.changelog[i] != nil && r.changelog[i].Next() > 0:
			ends[i] = r.changelog[i].Next()
		}
	}
	return ends
}
