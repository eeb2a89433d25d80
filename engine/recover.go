package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/engine/internal/txn"
)

// recover takes back what wasn't clearly committed. The gate is closed. The producer starts anew, which ends the transaction one way or the
// other; the tasks that had a part in it are made anew, and go on from what the committed offsets and the changelogs then say. Whether the
// commit had landed makes no difference to that. The others have lain down where they found the producer broken, and are woken.
func (e *Engine) recover(w *commitWork, outcome txn.Outcome, cause error) error {
	defer e.wakeAll()
	if e.closing.Load() { // nothing would come of beginning anew
		e.stopWork()
		return e.stopCommits(cause)
	}
	if e.learn(e.producer.Refused()) {
		e.log.Warn("a broker refused records: the work is done again, and they go to the production-error handler", "error", cause)
	} else if e.closeLetters(cause, nil) {
		e.trouble(outcome, cause)
	} else if txn.Permanent(cause) {
		return fmt.Errorf("commit: %w", cause)
	} else {
		e.trouble(outcome, cause)
	}
	if unknownTopic(cause) {
		if err := e.vanished(e.life, e.showTrouble, e.knownFor(cause)); err != nil && !e.closeLetters(cause, err) {
			return err
		}
	}
	if err := e.resetProducer(e.life, e.showTrouble); err != nil {
		return err
	}
	e.step(stepProducerReset)
	involved := e.involved(w)
	if err := e.rewind(involved); err != nil {
		return err
	}
	return e.rewindLake(w)
}

// stopCommits ends the commits of an instance that closes: the open transaction has what came to nothing, but no offsets of it any more, so that a commit after
// this would have it done twice. It is aborted at the end.
func (e *Engine) stopCommits(cause error) error {
	e.noCommits = &UncommittedError{cause}
	return e.noCommits
}

// involved are the runners whose work is lost: those that were to be committed, and those that have done something since.
func (e *Engine) involved(w *commitWork) []*runner {
	var all []*runner
	in := map[*runner]bool{}
	for _, r := range w.runners {
		in[r] = true
	}
	for _, r := range sortedRunners(e.runners) {
		if r.open && !r.spec.lake && (in[r] || r.dirty()) {
			all = append(all, r)
		}
	}
	return all
}

// rewind closes the tasks of runners, drops what their stores hold uncommitted, and opens them again.
func (e *Engine) rewind(runners []*runner) error {
	if len(runners) == 0 {
		return nil
	}
	var parts []fetch.Partition
	for _, r := range runners {
		parts = append(parts, r.partitions()...)
	}
	e.inputs.Remove(parts...)
	e.routes.remove(runners)
	e.unreadable(runners...)
	var fresh []*runner
	for _, r := range runners {
		e.parts(r)
		if err := r.shut(); err != nil {
			return fmt.Errorf("task %s: close: %w", taskOf(r.spec.id), err)
		}
		n := e.newRunner(e.specOf(r), r.pauseCap)
		n.opening = true
		if r.db != nil && !r.opening { // else its opener has it, and closes it
			if err := r.db.Drop(); err != nil {
				return fmt.Errorf("task %s: drop uncommitted state: %w", taskOf(r.spec.id), err)
			}
			n.db, n.changelog, n.kept = r.db, make([]*txn.End, len(r.changelog)), true
		}
		n.parked.Store(r.parked.Load())       // until it is open
		n.pace.next.Store(r.pace.next.Load()) // until the brokers say where it begins again
		e.runners[r.spec.id] = n
		fresh = append(fresh, n)
	}
	e.pair() // before the gate opens
	e.openAll(fresh)
	return nil
}

// resetProducer starts the producer anew, and ends what its last transaction left open, however long the brokers take. troubled is called when
// that doesn't go well at once.
func (e *Engine) resetProducer(ctx context.Context, troubled func()) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		try, cancel := context.WithTimeout(ctx, e.cfg.transaction+20*time.Second)
		err := patiently(troubled, func() error {
			if err := e.producer.Reset(try); err != nil {
				return err
			}
			_, err := e.settle(try)
			return err
		})
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || txn.Permanent(err) {
			return err
		}
		troubled()
		e.log.Warn("the producer can't start anew yet", "error", err, "in", pause)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// patiently does something that brokers may take long for; troubled is called, by this goroutine, if it isn't done soon.
func patiently(troubled func(), do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(showTroubleAfter):
		troubled()
		return <-done
	}
}

// showTroubleAfter is for how long brokers may keep an instance waiting that still calls itself running.
const showTroubleAfter = 2 * time.Second

// showTrouble lets the state say that something isn't as it should be.
func (e *Engine) showTrouble() {
	e.troubled = true
	e.showState()
}

// trouble notes a failed commit; failures in a row make the engine wait longer before it goes on.
func (e *Engine) trouble(outcome txn.Outcome, cause error) {
	e.stats.aborted.Add(1)
	e.failures++
	level := e.log.Warn
	if offsets.LostMembership(cause) {
		level = e.log.Info
	}
	level("a commit failed: its work is taken back and done again", "outcome", outcome.String(), "in_a_row", e.failures, "error", cause)
	if e.failures > 1 {
		e.showTrouble()
		_ = sleep(e.life, min(time.Duration(e.failures)*100*time.Millisecond, 5*time.Second)) // its end shows in what follows
	}
}

// calm notes that a commit went well.
func (e *Engine) calm() { e.failures, e.troubled = 0, false }

// fetchFailed handles what keeps an input of a runner from being read. Called by the fetching goroutine.
func (e *Engine) fetchFailed(r *runner, b *fetch.Batch) {
	if e.life.Err() != nil {
		return
	}
	var lost *fetch.OutOfRangeError
	if errors.As(b.Err, &lost) || fetch.IsOutOfRange(b.Err) {
		e.inputs.Pause(b.Partition) // brokers would say it again at once, and as fast as they can, until the conductor comes to it
		e.tell(outside{r, b.Err})
		return
	}
	if unknownTopic(b.Err) && e.catalog().matched.has(b.Topic) {
		e.log.Warn("a topic of a pattern can't be read: looking whether it was deleted", "partition", b.Partition.String(), "error", b.Err)
		e.lookAgain()
		return
	}
	if fetch.NeedsAPerson(b.Err) && r.spec.lake && e.cfg.parks {
		e.tell(unreadableInput{r, fmt.Errorf("%s can't be read: %w", b.Partition, b.Err)})
		return
	}
	if unknownTopic(b.Err) { // by one broker, which may lag behind the others, and says so as often as it is asked
		if e.suspectInputs() {
			e.log.Warn("a topic can't be read: looking whether it was deleted", "partition", b.Partition.String(), "error", b.Err)
		}
		return
	}
	if fetch.NeedsAPerson(b.Err) {
		e.failed(fmt.Errorf("%s can't be read: %w", b.Partition, b.Err))
		return
	}
	e.log.Warn("a partition can't be read at the moment", "partition", b.Partition.String(), "error", b.Err)
}

// outOfRange deals with an input whose log no longer has what the runner would read next. Either retention was faster than this instance, or
// the task runs elsewhere already, this instance doesn't know it yet, and what the new owner has committed is purged. The committed offset tells:
// the task is opened again from there, by the rules of an opening.
func (e *Engine) outOfRange(o outside) error {
	r := o.r
	if e.closing.Load() {
		return nil // what was processed can be committed, and the next start deals with the rest
	}
	if r == e.global {
		return fmt.Errorf("global tables can't be read on: %w; start again to read them anew", o.err)
	}
	if e.runners[r.spec.id] != r || !r.open {
		return nil // it is opened again already, or given up
	}
	e.log.Warn("an input's log has no longer what comes next: the task is opened again at its committed offsets", "task", taskOf(r.spec.id), "error", o.err)
	if r.spec.lake {
		return e.resetTables(r.lake.landers...)
	}
	e.gate.close()
	defer e.gate.open()
	r.redo = true
	return e.recover(&commitWork{}, txn.Aborted, o.err)
}
