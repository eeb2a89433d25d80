package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/lander"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/lake/sink"
)

// ParkLake lets a fault of one table, or of one task that feeds tables, concern nothing else: it is parked, the others go on, and it is tried again
// now and then, so that it goes on by itself once somebody has mended what is wrong. Without it such a fault ends Run, as others do. Parked are
//
//   - a table that can't be opened, that refuses (sink.RefusedError), or whose progress can't be read, with all tasks that feed it;
//   - a task that can't begin, such as by a LakeProgressError, or whose input can't be read;
//   - a task at a record that fails, where its records make one row of one table each, and nothing else. The rows before it land. So is one at a record
//     whose dead letter can't be written, since its topic was deleted or the right to it taken.
//
// Topics that are landed as they are may be missing: their tasks come when they do (see LookForTopics). Where no table at all can be opened at the
// start, Run ends. What is parked counts as Ready; Stats tells what is, since when and why.
func ParkLake() Option { return func(c *config) { c.parks = true } }

// The time between two tries of what is parked doubles from the first to the longest.
const (
	firstRetry   = time.Second
	longestRetry = time.Minute
)

// retryIn is the pause after so many tries.
func retryIn(tries int) time.Duration { return min(firstRetry<<min(tries, 10), longestRetry) }

// parked is why a task doesn't go on, and since when.
type parked struct {
	since time.Time
	err   error
}

// tableParkedError says that a task can't run since a table that it feeds is parked.
type tableParkedError struct {
	table *lander.Lander
	err   error
}

func (e *tableParkedError) Error() string { return fmt.Sprintf("sink %s: %v", e.table.Name, e.err) }
func (e *tableParkedError) Unwrap() error { return e.err }

// The conductor's mails about what is parked.
type (
	// reopened: a table was tried again.
	reopened struct {
		table *lander.Lander
		err   error
	}
	// retryTask: a parked task is to be opened again.
	retryTask struct{ r *runner }
	// unreadableInput: an input of a lake task can't be read.
	unreadableInput struct {
		r   *runner
		err error
	}
)

// tries counts how often the conductor has tried what is parked, since something of it landed.
type tries struct {
	tables map[*lander.Lander]int
	tasks  map[task.ID]int
}

// retryTables tries the tables again that could not be opened at the start.
func (e *Engine) retryTables() {
	for _, l := range e.landers {
		if l.Parked() != nil {
			e.retryTable(l)
		}
	}
}

// parkTable keeps rows from a table until it can be opened anew.
func (e *Engine) parkTable(l *lander.Lander, err error) {
	l.Park(err)
	e.log.Error("a table is parked: others go on, and it is tried again", "sink", l.Name, "error", err, "in", retryIn(e.tries.tables[l]))
	e.retryTable(l)
}

func (e *Engine) retryTable(l *lander.Lander) {
	pause := retryIn(e.tries.tables[l])
	e.tries.tables[l]++
	e.openers.Go(func() {
		if sleep(e.life, pause) == nil {
			e.tell(reopened{l, l.Open(e.life)})
		}
	})
}

// reopened lets the tasks of a table go on, if it is open again.
func (e *Engine) reopened(m reopened) error {
	l := m.table
	if e.life.Err() != nil {
		return nil
	}
	if m.err != nil {
		l.Park(m.err)
		e.log.Warn("a table stays parked", "sink", l.Name, "error", m.err, "in", retryIn(e.tries.tables[l]))
		e.retryTable(l)
		return nil
	}
	l.Unpark()
	e.log.Info("a table is open again", "sink", l.Name)
	e.lookAgain() // its topic may have been made with it
	var waiting []*runner
	for _, r := range sortedRunners(e.runners) {
		if p := r.parked.Load(); p != nil && !r.opening && !r.open && parkedBy(p.err) == l {
			waiting = append(waiting, r)
		}
	}
	e.gate.close()
	defer e.gate.open()
	return e.rewind(waiting)
}

// parkedBy is the table that has parked a task; nil if it wasn't one.
func parkedBy(err error) *lander.Lander {
	var by *tableParkedError
	if errors.As(err, &by) {
		return by.table
	}
	return nil
}

// parkedTable is the error of the first parked table that a task feeds; nil if there is none.
func (r *runner) parkedTable() error {
	if r.lake == nil {
		return nil
	}
	for _, l := range r.lake.landers {
		if err := l.Parked(); err != nil {
			return &tableParkedError{l, err}
		}
	}
	return nil
}

// parkTask takes a lake task out of work that stays this instance's. It must have no rows in open batches that can still land.
func (e *Engine) parkTask(r *runner, err error) error {
	e.inputs.Remove(r.partitions()...)
	e.gate.close()
	defer e.gate.open()
	if err := r.shut(); err != nil {
		return fmt.Errorf("task %s: close: %w", taskOf(r.spec.id), err)
	}
	e.routes.remove([]*runner{r})
	r.park(err, e.cfg.clock())
	if by := parkedBy(err); by != nil {
		if by.Parked() == nil { // it was opened again meanwhile
			return e.rewind([]*runner{r})
		}
		return nil // the table's end of parking is the task's
	}
	pause := retryIn(e.tries.tasks[r.spec.id])
	e.tries.tasks[r.spec.id]++
	e.log.Error("a lake task is parked: others go on, and it is tried again", "task", taskOf(r.spec.id), "error", err, "in", pause)
	e.openers.Go(func() {
		if sleep(e.life, pause) == nil {
			e.tell(retryTask{r})
		}
	})
	return nil
}

// park notes why a runner doesn't go on; since when, is of the first reason.
func (r *runner) park(err error, now time.Time) {
	if before := r.parked.Load(); before != nil {
		now = before.since
	}
	r.parked.Store(&parked{now, err})
}

// retryTask opens a parked task again, if it still is.
func (e *Engine) retryTask(r *runner) error {
	if e.runners[r.spec.id] != r || r.open || r.opening {
		return nil
	}
	e.gate.close()
	defer e.gate.open()
	return e.rewind([]*runner{r})
}

// parkUnreadable parks a task whose input can't be read. What it has in open batches is read again.
func (e *Engine) parkUnreadable(m unreadableInput) error {
	r := m.r
	if e.runners[r.spec.id] != r || !r.open {
		return nil
	}
	if err := e.keepLetters(r.lake.landers...); err != nil {
		return err
	}
	if e.runners[r.spec.id] != r || !r.open {
		return nil // it was taken back, and finds out again
	}
	if err := e.parkTask(r, m.err); err != nil {
		return err
	}
	return e.resetTables(r.lake.landers...)
}

// lakeSources are the sources of tables whose topics may be missing for a while, by name.
func (e *Engine) lakeSources() map[string][]string {
	all := map[string][]string{}
	if !e.cfg.parks {
		return all
	}
	for _, sub := range e.plan.Subtopologies {
		var sources []*plan.Node
		for _, n := range sub.Nodes {
			if n.Kind == plan.SourceNode {
				sources = append(sources, n)
			}
		}
		if sub.Lake && len(sources) == 1 && sources[0].Pattern == "" &&
			!slices.ContainsFunc(sources[0].Topics, func(topic string) bool { return e.plan.InternalTopics[topic] != nil }) {
			all[sources[0].Name] = sources[0].Topics
		}
	}
	return all
}

// parking is what a runner has to do with it.
type parking struct {
	parked  atomic.Pointer[parked] // nil while nothing is wrong
	retries int                    // of the record at its head; the worker's that has it
}

// mayWait reports whether a failed record leaves its task as it was, so that it may be tried again in place.
func (e *Engine) mayWait(r *runner, err error) bool {
	if !r.spec.single() || errors.As(err, new(*producerError)) {
		return false
	}
	return e.cfg.parks || errors.As(err, new(*sink.NotYetError))
}

// lakePatience is the time between two tries of a record whose row can't be made yet (sink.NotYetError).
const lakePatience = 250 * time.Millisecond

// retryRecordIn parks a runner at its record that has failed, and says when to try it again.
func (e *Engine) retryRecordIn(r *runner, err error) time.Duration {
	first := r.parked.Load() == nil
	r.park(err, e.cfg.clock())
	if errors.As(err, new(*sink.NotYetError)) {
		if first {
			e.log.Warn("a lake task waits: its next record can't become a row yet", "task", r.spec.id.String(), "error", err)
		}
		return lakePatience
	}
	pause := retryIn(r.retries)
	r.retries++
	e.log.Error("a lake task is parked at a record: others go on, and it is tried again", "task", r.spec.id.String(), "error", err, "in", pause)
	return pause
}
