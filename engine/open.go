package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// opened is what an opener tells the conductor: the runner is ready to go on from these positions, or why it isn't.
type opened struct {
	r         *runner
	positions map[task.TopicPartition]int64
	err       error
}

// openAll opens runners in the background, each telling the conductor when it is ready. Runners that have their stores already keep them:
// they are brought to the end of their changelogs. The order is what makes it right: first the committed offsets, once no transaction
// holds them back; then the ends of the changelogs; so whatever those offsets stand for is restored.
func (e *Engine) openAll(runners []*runner) {
	if len(runners) == 0 {
		return
	}
	opening := make([]context.Context, len(runners))
	for i, r := range runners {
		opening[i] = r.context(e.life)
	}
	ctx, cancel := whileAny(e.life, opening)
	e.openers.Go(func() {
		defer cancel()
		starts, err := e.awaitStarts(ctx, runners)
		for i, r := range runners {
			if err != nil {
				e.tell(opened{r: r, err: err})
				continue
			}
			r.paceOpening(starts)
			e.releaseSiblings(r)
			e.openers.Go(func() { e.tell(e.openOne(opening[i], r, starts)) })
		}
	})
}

// openOne opens a runner when it is its turn. One that is shut meanwhile doesn't wait for its turn: its stores may be wanted by its successor.
func (e *Engine) openOne(ctx context.Context, r *runner, s *starts) opened {
	select {
	case e.openSlots <- struct{}{}:
		defer func() { <-e.openSlots }()
	case <-ctx.Done():
		return opened{r: r, err: ctx.Err()}
	}
	for {
		positions, err := e.open(ctx, r, s)
		if !errors.As(err, new(*OffsetOutOfRangeError)) || r.spec.lake {
			return opened{r, positions, err}
		}
		// Another instance may have had the task until now, have committed, and purged what is behind.
		again, failed := e.readStarts(ctx, []*runner{r})
		if failed != nil {
			return opened{r: r, err: failed}
		}
		if !slices.ContainsFunc(r.spec.inputs, func(tp task.TopicPartition) bool { return again.committed[tp].offset != s.committed[tp].offset }) {
			return opened{r: r, err: err}
		}
		s = again
	}
}

// context gives the context of the runner's opening: it ends when the runner is shut.
func (r *runner) context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	r.inMu.Lock()
	defer r.inMu.Unlock()
	if r.closed {
		cancel()
	}
	r.cancel = cancel
	return ctx
}

// whileAny gives a context that ends when all of the others have.
func whileAny(parent context.Context, others []context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	var left atomic.Int64
	left.Store(int64(len(others)))
	for _, o := range others {
		context.AfterFunc(o, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})
	}
	return ctx, cancel
}

// starts is what the brokers say about where tasks start.
type starts struct {
	committed map[task.TopicPartition]start
	dead      map[task.TopicPartition]int64 // of the group that remembers lake tasks' dead letters
	logStart  map[fetch.Partition]int64     // of inputs and changelogs
	high      map[fetch.Partition]int64     // of changelogs: read after the committed offsets
	stable    map[fetch.Partition]int64     // of inputs; for standbys of changelogs
}

type start struct {
	offset int64 // offsets.None if there is none
	meta   offsets.Metadata
}

// startsPatience bounds one try to read where tasks start. It doubles from try to try, up to eight times this.
const startsPatience = 10 * time.Second

// awaitStarts reads where tasks start, however long brokers are away or a transaction of a dead instance stays open. What keeps it waiting is
// said after each try; a new one also gets over a request that was lost.
func (e *Engine) awaitStarts(ctx context.Context, runners []*runner) (*starts, error) {
	for patience := startsPatience; ; patience = min(2*patience, 8*startsPatience) {
		try, cancel := context.WithTimeout(ctx, patience)
		s, err := e.readStarts(try, runners)
		late := try.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !late {
			return s, err
		}
		e.log.Warn("tasks wait to be opened: committed offsets and the ends of topics can't be read yet (brokers away, or an open transaction)",
			"tasks", len(runners), "error", err)
		if err := e.vanished(ctx, nil, e.knownInputs()); err != nil {
			return nil, err
		}
	}
}

func (e *Engine) readStarts(ctx context.Context, runners []*runner) (*starts, error) {
	var inputs, lakeInputs []offsets.Partition
	var logs []fetch.Partition
	for _, r := range runners {
		for _, tp := range r.spec.inputs {
			p := offsets.Partition{Topic: tp.Topic, ID: e.catalog().id(tp.Topic), Partition: tp.Partition}
			inputs = append(inputs, p)
			if r.spec.lake {
				lakeInputs = append(lakeInputs, p)
			}
		}
		logs = append(logs, e.changelogs(r)...)
	}
	s := &starts{committed: map[task.TopicPartition]start{}, dead: map[task.TopicPartition]int64{}}
	found, err := offsets.Fetch(ctx, e.control, e.group(), inputs)
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		s.committed[task.TopicPartition{Topic: p.Topic, Partition: p.Partition.Partition}] = e.startOf(p)
	}
	if found, err = offsets.Fetch(ctx, e.control, e.deadGroup(), lakeInputs); err != nil {
		return nil, err
	}
	for _, p := range found {
		s.dead[task.TopicPartition{Topic: p.Topic, Partition: p.Partition.Partition}] = p.Offset
	}
	inputParts := make([]fetch.Partition, len(inputs))
	for i, p := range inputs {
		inputParts[i] = fetch.Partition{Topic: p.Topic, Partition: p.Partition}
	}
	if s.high, err = fetch.Bounds(ctx, e.control, fetch.High, logs); err != nil {
		return nil, err
	}
	if s.logStart, err = fetch.Bounds(ctx, e.control, fetch.Start, slices.Concat(inputParts, logs)); err != nil {
		return nil, err
	}
	s.stable, err = fetch.Bounds(ctx, e.control, fetch.Stable, inputParts)
	return s, err
}

func (e *Engine) startOf(p offsets.Position) start {
	meta, err := offsets.DecodeMetadata(p.Metadata)
	if err != nil {
		e.log.Warn("the metadata of a committed offset is not ours: the partition's time is forgotten", "topic", p.Topic, "partition", p.Partition.Partition, "error", err)
	}
	return start{p.Offset, meta}
}

// changelogs lists the partitions that the runner's stores are restored from.
func (e *Engine) changelogs(r *runner) []fetch.Partition {
	var parts []fetch.Partition
	for _, spec := range e.storeSpecs(r.spec) {
		if s := e.plan.Stores[spec.Name]; s.Changelog != "" {
			parts = append(parts, fetch.Partition{Topic: s.Changelog, Partition: r.spec.id.Partition})
		}
	}
	return parts
}

// storeSpecs are the stores that a task owns, in a fixed order.
func (e *Engine) storeSpecs(spec *taskSpec) []state.Spec {
	var specs []state.Spec
	for _, sub := range spec.subs {
		for _, name := range sub.Stores {
			if s := e.plan.Stores[name]; s != nil && s.Global == (spec.id.Subtopology < 0) {
				specs = append(specs, s.Spec)
			}
		}
	}
	return specs
}

// open makes a runner ready: stores, restore, task, and where it goes on.
func (e *Engine) open(ctx context.Context, r *runner, s *starts) (positions map[task.TopicPartition]int64, err error) {
	if !r.spec.lake { // of those, the tables decide
		if positions, err = e.positions(ctx, r, s); err != nil {
			return nil, err
		}
	}
	if err := e.openStores(ctx, r); err != nil {
		return nil, err
	}
	if err := e.restoreStores(ctx, r, s); err != nil {
		return nil, fmt.Errorf("task %s: restore: %w", taskOf(r.spec.id), err)
	}
	if err := e.makeTask(r); err != nil {
		return nil, err
	}
	if r.spec.lake {
		if positions, err = e.lakePositions(ctx, r, s); err != nil {
			return nil, err
		}
	}
	if err := r.begin(positions, s); err != nil {
		return nil, err
	}
	if err := e.prepare(ctx, r.task); err != nil {
		return nil, err
	}
	return positions, nil
}

// begin sets where the task goes on, and what is known of its inputs.
func (r *runner) begin(positions map[task.TopicPartition]int64, s *starts) error {
	r.inMu.Lock()
	defer r.inMu.Unlock()
	for _, tp := range r.spec.inputs {
		c := s.committed[tp]
		r.task.RestoreProgress(c.meta.Progress)
		if err := r.task.SetPosition(tp, positions[tp], c.meta.PartitionTime); err != nil {
			return err
		}
		r.committed[tp] = c.offset
		r.taken[tp], r.ends[tp] = positions[tp], s.stable[fetch.Partition(tp)]
		if floor, ok := s.dead[tp]; ok {
			r.deadFloor[tp] = floor
		}
	}
	r.progress = maps.Clone(r.task.Progress())
	r.done = r.task.Positions(r.done[:0])
	return nil
}

// openStores opens the task's database. One that is damaged, or was made for other stores, is set aside: the changelogs have it all.
func (e *Engine) openStores(ctx context.Context, r *runner) error {
	specs := e.storeSpecs(r.spec)
	if r.db != nil || len(specs) == 0 {
		return nil
	}
	dir := e.taskDir(r.spec.id)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("task %s: make state directory: %w", taskOf(r.spec.id), err)
	}
	opt := state.Options{Policy: state.LastPerKeyPerCommit, Log: e.log}
	fresh := false // set aside, and made anew
	for tries := 0; ; tries++ {
		db, err := state.OpenPebble(dir, specs, e.resources, opt)
		var kind *state.KindError
		if errors.As(err, &kind) { // the changelog would not do, either
			if changed := changedKind(e.plan.Stores[kind.Store], kind.Was, dir); changed != nil {
				return fmt.Errorf("task %s: %w", taskOf(r.spec.id), changed)
			}
		}
		switch {
		case err == nil:
			r.db = db
			r.changelog = make([]*txn.End, len(specs))
			return nil
		case errors.Is(err, state.ErrCorruption) || errors.Is(err, state.ErrIncompatible) || errors.Is(err, fs.ErrNotExist): // the last: a file of it is gone
			if fresh {
				return fmt.Errorf("task %s: %w", taskOf(r.spec.id), err)
			}
			fresh = true
			e.log.Error("local state can't be used: it is set aside and restored", "task", taskOf(r.spec.id), "error", err)
			if err := setAside(dir, e.cfg.clock()); err != nil {
				return fmt.Errorf("task %s: set damaged state aside: %w", taskOf(r.spec.id), err)
			}
		case errors.Is(err, state.ErrLocked):
			// No other process has it (see package identity): a predecessor of the runner is just being closed, which may have to wait for brokers.
			if tries == 100 {
				e.log.Warn("a task waits for its state, which is still open here", "task", taskOf(r.spec.id))
			}
			if err := sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		default:
			return fmt.Errorf("task %s: %w", taskOf(r.spec.id), err)
		}
	}
}

func setAside(dir string, now time.Time) error {
	err := os.Rename(dir, fmt.Sprintf("%s.damaged-%s", dir, now.UTC().Format("20060102-150405")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// makeTask makes the task and its collector anew.
func (e *Engine) makeTask(r *runner) error {
	r.out = &collector{e: e, r: r, hand: e.producer.Hand(), ctx: e.sending, asking: e.asking}
	cfg := task.Config{
		ApplicationID: e.plan.ApplicationID, ID: r.spec.id, Subtopologies: r.spec.subs, Inputs: r.spec.inputs,
		Collector: r.out, Handlers: e.cfg.handlers, Clock: e.cfg.clock, Logger: e.log.With("task", taskOf(r.spec.id)),
		MaxIdle: e.cfg.maxTaskIdle, Lag: r.lag,
	}
	if r.db != nil {
		cfg.DB = r.db
	}
	if r.spec.lake {
		cfg.Lake = func(n *plan.Node) (processors.LakeAppender, error) { return e.lakeAppender(r, n) }
	}
	if e.global != nil && r != e.global && e.global.db != nil {
		view, err := e.global.db.View()
		if err != nil {
			return fmt.Errorf("task %s: global tables: %w", taskOf(r.spec.id), err)
		}
		r.out.views = append(r.out.views, view)
		cfg.GlobalStores = view
	}
	if r.spec.id.Subtopology < 0 {
		cfg.MaxIdle = -1
	}
	t, err := task.New(cfg)
	if err != nil {
		return errors.Join(err, r.out.close())
	}
	r.task = t
	r.counting.Store(t)
	return nil
}

// positions decides where each input of a task goes on that isn't a lake task.
func (e *Engine) positions(ctx context.Context, r *runner, s *starts) (map[task.TopicPartition]int64, error) {
	positions := map[task.TopicPartition]int64{}
	for _, tp := range r.spec.inputs {
		at, err := e.position(ctx, tp, s.committed[tp].offset, s)
		if err != nil {
			return nil, err
		}
		positions[tp] = at
	}
	return positions, nil
}

// position checks a committed offset against the log, or decides where to start without one.
func (e *Engine) position(ctx context.Context, tp task.TopicPartition, committed int64, s *starts) (int64, error) {
	p := fetch.Partition(tp)
	first, end := s.logStart[p], s.stable[p]
	if committed < 0 {
		return e.startWithout(ctx, tp, e.resetOf(tp.Topic), s)
	}
	if committed >= first && committed <= max(end, first) {
		return committed, nil
	}
	if committed > end && e.plan.InternalTopics[tp.Topic] == nil && committed <= s.highOf(p) {
		return committed, nil
	}
	switch e.cfg.outOfRange {
	case Fail:
		return 0, &OffsetOutOfRangeError{Partition: tp, Committed: committed, Start: first, End: end}
	case Earliest:
		e.log.Warn("records were lost to retention before they were read", "partition", tp.String(), "committed", committed, "log_start", first, "log_end", end)
	default:
		e.log.Warn("records are skipped, since the committed offset is outside of the log", "partition", tp.String(), "committed", committed, "log_start", first, "log_end", end)
	}
	return e.startWithout(ctx, tp, e.cfg.outOfRange, s)
}

// startWithout is where a policy starts a partition that has no usable offset.
func (e *Engine) startWithout(ctx context.Context, tp task.TopicPartition, reset Reset, s *starts) (int64, error) {
	p := fetch.Partition(tp)
	switch reset {
	case Earliest:
		return s.logStart[p], nil
	case Latest:
		return s.stable[p], nil
	case Fail:
		return 0, &NoOffsetError{Partition: tp}
	}
	ago, _ := plan.OffsetReset(reset).Duration()
	from, err := fetch.Since(ctx, e.control, e.cfg.clock().Add(-ago).UnixMilli(), []fetch.Partition{p})
	if err != nil {
		return 0, err
	}
	if at := from[p]; at >= 0 {
		return min(at, s.stable[p]), nil
	}
	return s.stable[p], nil
}

// highOf is the high watermark as far as it was read, else the stable offset.
func (s *starts) highOf(p fetch.Partition) int64 {
	if h, ok := s.high[p]; ok {
		return h
	}
	return s.stable[p]
}

func (e *Engine) resetOf(topic string) Reset {
	if e.plan.InternalTopics[topic] != nil {
		return Earliest
	}
	switch reset := e.catalog().resets[topic]; reset {
	case plan.ResetDefault:
		return e.cfg.reset
	case plan.ResetEarliest:
		return Earliest
	case plan.ResetLatest:
		return Latest
	case plan.ResetNone:
		return Fail
	default:
		return Reset(reset) // by duration
	}
}

// NoOffsetError says that a source has no committed offset and may not start without one.
type NoOffsetError struct{ Partition task.TopicPartition }

func (e *NoOffsetError) Error() string {
	return fmt.Sprintf("%s has no committed offset, and its source may not choose one: commit a start offset for the group, or let the source reset to earliest or latest", e.Partition)
}

// OffsetOutOfRangeError says that the log no longer has what is to be read next: retention was faster, or the topic was made anew.
type OffsetOutOfRangeError struct {
	Partition             task.TopicPartition
	Committed, Start, End int64
}

func (e *OffsetOutOfRangeError) Error() string {
	if e.Committed < e.Start {
		return fmt.Sprintf("%s: offset %d is committed, but the log starts at %d: retention has taken %d records that were never read; start with OutOfRange(Earliest) to go on without them",
			e.Partition, e.Committed, e.Start, e.Start-e.Committed)
	}
	return fmt.Sprintf("%s: offset %d is committed, but the log ends at %d: the topic was made anew or has lost data; "+
		"reset the application, or start with OutOfRange(Earliest) to read it from its beginning",
		e.Partition, e.Committed, e.End)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
