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
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
)

// Lake tasks stand outside the transaction: the tables that they feed say how far they have come. Each table has a lander; the conductor
// cuts its batch between two records of all tasks, and takes the result by mail.

// lakeSide is what a runner of a lake task has to do with tables.
type lakeSide struct {
	landers  []*lander.Lander                            // that it feeds
	progress map[*lander.Lander]map[sink.Partition]int64 // as read when it was opened
	gaps     map[*lander.Lander]map[sink.Partition]sink.Gap
	parts    map[task.TopicPartition]sink.Partition // its inputs as the tables know them
	counted  int64                                  // records processed at the last cut
}

// openLanders opens every table of the plan, once for the process, several at a time: each takes some requests to its store.
func (e *Engine) openLanders(ctx context.Context) error {
	for _, n := range e.plan.Nodes {
		if n.Kind == plan.LakeNode && e.landers[n.Lake.Name] == nil {
			e.landers[n.Lake.Name] = e.newLander(n)
		}
	}
	names := slices.Sorted(maps.Keys(e.landers))
	errs := make([]error, len(names))
	var opening sync.WaitGroup
	slots := make(chan struct{}, e.cfg.openAtOnce)
	for i, name := range names {
		slots <- struct{}{}
		opening.Go(func() {
			defer func() { <-slots }()
			errs[i] = e.landers[name].Open(ctx)
		})
	}
	opening.Wait()
	failed := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(failed) > 0 && (len(failed) == len(names) || !e.cfg.parks || ctx.Err() != nil) {
		return errors.Join(failed...)
	}
	for i, err := range errs {
		if err != nil {
			e.log.Error("a table can't be opened: the others go on, and it is tried again", "sink", names[i], "error", err)
			e.landers[names[i]].Park(err)
		}
	}
	shown := maps.Clone(e.landers)
	e.openLandersShown.Store(&shown)
	return nil
}

func (e *Engine) newLander(n *plan.Node) *lander.Lander {
	open := func(ctx context.Context) (sink.Writer, error) {
		w, err := n.Lake.Sink.Open(ctx, sink.Env{ApplicationID: e.plan.ApplicationID, Name: n.Lake.Name, Logger: e.log, Now: e.cfg.clock})
		if err != nil {
			return nil, fmt.Errorf("sink %s (%s): %w", n.Lake.Name, n.Lake.Sink, err)
		}
		return w, nil
	}
	limits := lander.Limits{Rows: e.cfg.lake.Rows, Bytes: e.cfg.lake.Bytes, Every: e.cfg.lake.Every}
	return lander.New(n.Lake.Name, open, limits, e.cfg.clock, e.log, func(r lander.Result) { e.tell(r) })
}

// closeLanders closes all tables. No commit may be under way.
func (e *Engine) closeLanders() error {
	var errs []error
	for _, l := range e.landers {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// lakeAppender takes a task's rows for one table.
type lakeAppender struct {
	r *runner
	l *lander.Lander
}

// Append implements processors.LakeAppender.
func (a *lakeAppender) Append(key, value any, meta *sink.Meta) error {
	tp, offset := a.r.task.Current()
	return a.l.Append(a.r.lake.parts[tp], offset, key, value, meta)
}

func (e *Engine) lakeAppender(r *runner, n *plan.Node) (processors.LakeAppender, error) {
	l := e.landers[n.Lake.Name]
	if l == nil {
		return nil, fmt.Errorf("internal: sink %s is not open", n.Lake.Name)
	}
	if r.lake == nil {
		r.lake = &lakeSide{progress: map[*lander.Lander]map[sink.Partition]int64{}, gaps: map[*lander.Lander]map[sink.Partition]sink.Gap{},
			parts: map[task.TopicPartition]sink.Partition{}}
		for _, tp := range r.spec.inputs {
			r.lake.parts[tp] = sink.Partition{Topic: tp.Topic, TopicID: e.catalog().id(tp.Topic), Partition: tp.Partition}
		}
	}
	if !slices.Contains(r.lake.landers, l) {
		r.lake.landers = append(r.lake.landers, l)
	}
	return &lakeAppender{r, l}, nil
}

// lakePositions asks the tables how far they have come: the task goes on at the lowest, and each table leaves out what it has.
func (e *Engine) lakePositions(ctx context.Context, r *runner, s *starts) (map[task.TopicPartition]int64, error) {
	if r.lake == nil {
		return nil, fmt.Errorf("internal: task %s feeds no table", r.spec.id)
	}
	if err := r.parkedTable(); err != nil {
		return nil, err
	}
	for _, l := range r.lake.landers {
		progress, err := l.Progress(ctx, slices.Collect(maps.Values(r.lake.parts)))
		if err != nil {
			return nil, fmt.Errorf("sink %s: read progress: %w", l.Name, err)
		}
		r.lake.progress[l], r.lake.gaps[l] = progress, map[sink.Partition]sink.Gap{}
	}
	positions := map[task.TopicPartition]int64{}
	for _, tp := range r.spec.inputs {
		at, err := e.lakePosition(ctx, r, tp, s)
		if err != nil {
			return nil, err
		}
		positions[tp] = at
		e.lakeGaps(r, tp, at, s)
	}
	return positions, nil
}

// lakeGaps notes for each table what lies between its progress and where the task goes on: it will never be read.
func (e *Engine) lakeGaps(r *runner, tp task.TopicPartition, at int64, s *starts) {
	p := r.lake.parts[tp]
	for _, l := range r.lake.landers {
		landed := r.lake.progress[l][p]
		if at <= max(landed, 0) {
			continue
		}
		reason := sink.GapRetention
		if landed == sink.NoOffset && at > s.logStart[fetch.Partition(tp)] {
			reason = sink.GapStart
		}
		r.lake.gaps[l][p] = sink.Gap{From: max(landed, 0), To: at, Reason: reason}
	}
}

// LakeProgressError says that a table and Kafka disagree on how far a partition has come, and that no rule can decide who is right.
type LakeProgressError struct {
	Sink      string
	Partition task.TopicPartition
	Table     int64 // the table's progress; sink.NoOffset if it has none
	Group     int64 // the group's committed offset, -1 if it has none
	Start     int64 // of the log
	End       int64
}

func (e *LakeProgressError) Error() string {
	if e.Table == sink.NoOffset {
		return fmt.Sprintf("sink %s: the table has no progress for %s, but the group has landed it up to offset %d: the table was lost, moved or emptied; "+
			"put it back, or reset the application and say what becomes of the table",
			e.Sink, e.Partition, e.Group)
	}
	what := fmt.Sprintf("the log ends at %d: the topic has lost data", e.End)
	if e.Table < e.Start {
		what = fmt.Sprintf("the log starts at %d: retention has taken %d records that were never landed", e.Start, e.Start-e.Table)
	}
	return fmt.Sprintf("sink %s: the table has landed %s up to offset %d, but %s; start with OutOfRange(Earliest) to go on without them", e.Sink, e.Partition, e.Table, what)
}

func (e *Engine) lakePosition(ctx context.Context, r *runner, tp task.TopicPartition, s *starts) (int64, error) {
	p := fetch.Partition(tp)
	first, end, group := s.logStart[p], s.stable[p], s.committed[tp].offset
	lowest := int64(-1)
	for _, l := range r.lake.landers {
		at := r.lake.progress[l][r.lake.parts[tp]]
		bad := &LakeProgressError{Sink: l.Name, Partition: tp, Table: at, Group: group, Start: first, End: end}
		switch {
		case at == sink.NoOffset && group > first && len(r.lake.landers) == 1:
			return 0, bad
		case at == sink.NoOffset:
			at = first
			if group < 0 {
				var err error
				if at, err = e.startWithout(ctx, tp, e.resetOf(tp.Topic), s); err != nil {
					return 0, err
				}
			}
		case at > end, at < first && e.cfg.outOfRange == Fail:
			return 0, bad
		case at < first:
			e.log.Warn("records were lost to retention before they were landed", "sink", l.Name, "partition", tp.String(), "landed", at, "log_start", first)
			at = first
		}
		if lowest < 0 || at < lowest {
			lowest = at
		}
	}
	return lowest, nil
}

// ownLake makes the inputs of an opened runner this instance's in the tables that it feeds.
func (e *Engine) ownLake(r *runner) {
	for _, l := range r.lake.landers {
		l.Own(r.lake.progress[l], r.lake.gaps[l])
	}
}

// lakeFull tells that a table that the runner feeds takes no more rows before its batch is cut.
func (e *Engine) lakeFull(r *runner) bool {
	for _, l := range r.lake.landers {
		if l.Full() {
			return true
		}
	}
	return false
}

// feeders are the open runners that feed a table.
func (e *Engine) feeders(l *lander.Lander) []*runner {
	var all []*runner
	for _, r := range sortedRunners(e.runners) {
		if r.open && r.spec.lake && slices.Contains(r.lake.landers, l) {
			all = append(all, r)
		}
	}
	return all
}

// cutLake cuts the batches that are due, and the largest where all together take too much memory. The gate must be closed.
func (e *Engine) cutLake() {
	var open int64
	var largest *lander.Lander
	for _, l := range e.landers {
		switch {
		case l.Due():
			e.cut(l)
		case l.DueForProgress():
			e.cut(l)
		}
		bytes := l.OpenBytes()
		open += bytes
		if !l.Busy() && (largest == nil || bytes > largest.OpenBytes()) {
			largest = l
		}
	}
	if open > e.cfg.lake.Budget && largest != nil && largest.OpenBytes() > 0 {
		e.stats.sealedEarly.Add(1)
		e.cut(largest)
	}
}

// cut closes a table's batch at the positions of its tasks. The gate must be closed. Partitions of which nothing was processed since the
// last cut are left as they are: markers alone are no reason for a commit. While dead letters of its tasks are in an open transaction
// nothing is cut: were the process to die, the table would be past them, and they would be lost.
func (e *Engine) cut(l *lander.Lander) bool {
	positions := map[sink.Partition]int64{}
	feeders := e.feeders(l)
	for _, r := range feeders {
		if r.deadSent.Load() {
			return false
		}
		if r.task.Processed() == r.lake.counted && l.OpenBytes() == 0 {
			continue
		}
		for _, p := range r.task.Positions(nil) {
			if p.Offset >= 0 {
				positions[r.lake.parts[p.TopicPartition]] = p.Offset
			}
		}
	}
	if !l.Cut(e.life, positions) {
		return false
	}
	for _, r := range feeders {
		r.lake.counted = r.task.Processed()
		e.queue.wake(r) // it may have waited for the cut
	}
	return true
}

// landed takes the result of a table's commit.
func (e *Engine) landed(res lander.Result) error {
	var refused *sink.RefusedError
	switch {
	case res.Err == nil:
		e.log.Debug("landed", "sink", res.Lander.Name, "rows", res.Commit.Rows, "version", res.Commit.Version, "took", res.Commit.Took, "attempts", res.Commit.Attempts)
		delete(e.tries.tables, res.Lander)
		for _, r := range e.feeders(res.Lander) {
			delete(e.tries.tasks, r.spec.id)
			e.queue.wake(r)
		}
		return nil
	case errors.As(res.Err, &refused) && e.cfg.parks:
		if err := e.keepLetters(res.Lander); err != nil {
			return err
		}
		e.parkTable(res.Lander, res.Err)
		return e.resetTables(res.Lander)
	case errors.As(res.Err, &refused):
		return fmt.Errorf("sink %s: %w", res.Lander.Name, res.Err)
	case e.life.Err() != nil:
		return nil
	}
	e.log.Warn("rows were not landed and are read again", "sink", res.Lander.Name, "error", res.Err)
	if err := e.keepLetters(res.Lander); err != nil {
		return err
	}
	return e.resetTables(res.Lander)
}

// keepLetters commits the dead letters that tasks of tables have in the open transaction, before these are made anew: later nobody knows any more
// up to where they go, and they would be written twice.
func (e *Engine) keepLetters(ls ...*lander.Lander) error {
	if _, tasks := e.connected(ls); e.held || !slices.ContainsFunc(tasks, func(r *runner) bool { return r.deadSent.Load() }) {
		return nil
	}
	return e.commitNow()
}

// resetTables drops the open batches of tables, and begins again where they say: with all tasks that feed them, and all other tables that those
// feed, since a batch's rows and the positions of its tasks belong together.
func (e *Engine) resetTables(first ...*lander.Lander) error {
	if len(first) == 0 {
		return nil
	}
	e.gate.close()
	defer e.gate.open()
	tables, tasks := e.connected(first)
	if err := e.awaitLanders(e.life, tables); err != nil {
		return err
	}
	for _, l := range tables {
		if l.Parked() != nil {
			continue
		}
		progress, err := l.Progress(e.life, l.Owned())
		switch {
		case err == nil:
			l.Restart(progress)
		case e.cfg.parks && e.life.Err() == nil:
			e.parkTable(l, fmt.Errorf("read progress: %w", err))
		default:
			return fmt.Errorf("sink %s: read progress: %w", l.Name, err)
		}
	}
	return e.rewind(tasks)
}

// connected are the open tasks that feed any of some tables, or tables that such tasks feed, and so on; and all these tables.
func (e *Engine) connected(tables []*lander.Lander) (all []*lander.Lander, tasks []*runner) {
	all = slices.Clone(tables)
	for i := 0; i < len(all); i++ {
		for _, r := range e.feeders(all[i]) {
			if slices.Contains(tasks, r) {
				continue
			}
			tasks = append(tasks, r)
			for _, l := range r.lake.landers {
				if !slices.Contains(all, l) {
					all = append(all, l)
				}
			}
		}
	}
	return all, tasks
}

// rewindLake takes lake tasks back whose dead letters were in a transaction that is lost.
func (e *Engine) rewindLake(w *commitWork) error {
	var tables []*lander.Lander
	for _, r := range sortedRunners(e.runners) {
		if r.open && r.spec.lake && r.deadSent.Load() {
			tables = append(tables, r.lake.landers...)
		}
	}
	return e.resetTables(tables...)
}

// awaitLanders waits until no commit of the tables is under way, and takes their results. Other mails wait.
func (e *Engine) awaitLanders(ctx context.Context, ls []*lander.Lander) error {
	busy := func() bool { return slices.ContainsFunc(ls, (*lander.Lander).Busy) }
	look := time.NewTicker(5 * time.Millisecond) // a lander is idle before its mail is here
	defer look.Stop()
	for busy() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
	return nil
}

// errDeadLettersOpen says that rows can't land since the dead letters beside them could not be committed.
var errDeadLettersOpen = errors.New("dead letters of the same records are not committed")

// landAll commits, then cuts and lands everything of the tables, within the context.
func (e *Engine) landAll(ctx context.Context, ls []*lander.Lander) error {
	if err := e.awaitLanders(ctx, ls); err != nil {
		return err
	}
	if err := e.commitAndCut(ls); err != nil {
		return err
	}
	return e.awaitLanders(ctx, ls)
}

// commitAndCut does both with nothing processed in between.
func (e *Engine) commitAndCut(ls []*lander.Lander) error {
	e.gate.close()
	defer e.gate.open()
	if err := e.commitNow(); err != nil {
		return err
	}
	for _, l := range ls {
		e.cut(l)
		if slices.ContainsFunc(e.feeders(l), func(r *runner) bool { return r.deadSent.Load() }) {
			return errDeadLettersOpen
		}
	}
	return nil
}

// landRevoked lands what the runners that are given up have in open batches. What can't be landed in time is dropped, with the rest of its
// batch, and the tasks that stay read it again.
func (e *Engine) landRevoked(revoked []*runner) error {
	var ls []*lander.Lander
	var parts []sink.Partition
	for _, r := range revoked {
		if r.open && r.spec.lake {
			ls = append(ls, r.lake.landers...)
			parts = slices.AppendSeq(parts, maps.Values(r.lake.parts))
		}
	}
	if len(ls) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(e.life, e.cfg.session/2)
	defer cancel()
	err := e.landAll(ctx, ls)
	if err != nil || slices.ContainsFunc(ls, (*lander.Lander).Stale) {
		e.log.Warn("rows of tasks that move could not be landed in time: their new owner lands them", "error", err)
		err = e.dropRows(ls)
	}
	for _, l := range ls {
		l.Disown(parts...)
	}
	return err
}

// dropRows drops open batches because rows of a task that goes are in them.
func (e *Engine) dropRows(ls []*lander.Lander) error {
	if e.life.Err() != nil {
		return nil
	}
	return e.resetTables(ls...)
}

// dropLake forgets all rows and partitions, after a loss.
func (e *Engine) dropLake() {
	for _, l := range e.landers {
		l.Forget()
	}
}

// sealLake adds to a commit what it has to say of a lake task: how far its tables are, for display, and how far its dead letters are in.
func (e *Engine) sealLake(r *runner, w *commitWork) {
	var shown []task.Position
	for _, p := range r.task.Positions(nil) {
		at := e.landedAt(r, p.TopicPartition)
		if at >= 0 && at != r.committed[p.TopicPartition] {
			p.Offset = at
			shown = append(shown, p)
		}
	}
	if len(shown) > 0 {
		w.lakeShown[r] = shown
		w.offsets = append(w.offsets, e.commitPositions(r, shown)...)
	}
	if !r.deadSent.Load() {
		return
	}
	w.lakeDead = append(w.lakeDead, r)
	w.positions[r] = r.task.Positions(nil)
	w.dead = append(w.dead, e.commitPositions(r, w.positions[r])...)
}

// landedAt is the lowest progress of an input over the tables that it feeds; -1 if one has none.
func (e *Engine) landedAt(r *runner, tp task.TopicPartition) int64 {
	lowest := int64(-1)
	for i, l := range r.lake.landers {
		at := l.Landed(r.lake.parts[tp])
		if i == 0 || at < lowest {
			lowest = at
		}
	}
	return lowest
}

// lakeCommitted notes what a commit has said of lake tasks.
func (e *Engine) lakeCommitted(w *commitWork) {
	for r, shown := range w.lakeShown {
		for _, p := range shown {
			r.committed[p.TopicPartition] = p.Offset
		}
	}
	for _, r := range w.lakeDead {
		r.deadSent.Store(false)
		for _, p := range w.positions[r] {
			r.deadFloor[p.TopicPartition] = max(r.deadFloor[p.TopicPartition], p.Offset)
		}
	}
}
