package lander

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tributary-io/tributary/lake/sink"
)

// Limits say when a batch is due.
type Limits struct {
	Rows  int
	Bytes int64
	Every time.Duration
}

// Result is what became of a cut. It is given to the lander's done function, from the committing goroutine.
type Result struct {
	Lander *Lander
	Moves  []sink.Move
	Commit sink.Commit
	// Err is nil, a *sink.FencedError, a *sink.RefusedError, or that of the context. After an error nothing has landed.
	Err error
}

// Lander is the way into one table. Append may be called by many goroutines; the other methods are the engine's, and no Append runs
// while Cut, Own, Disown or Drop does.
type Lander struct {
	Name   string
	open   func(context.Context) (sink.Writer, error)
	writer sink.Writer // nil before Open
	limits Limits
	clock  func() time.Time
	log    *slog.Logger
	done   func(Result)

	io chan struct{} // has its token while nobody uses the writer, but for batches

	mu       sync.Mutex
	batch    sink.Batch                  // nil until it is needed; the next one is made before a commit begins, since a writer makes none during it
	began    time.Time                   // of the batch's first row
	cut      time.Time                   // the last one
	progress map[sink.Partition]int64    // what the open batch starts from: the table's, once the commits under way have landed
	landed   map[sink.Partition]int64    // what the table has
	gaps     map[sink.Partition]sink.Gap // what comes next in a partition and was never read
	busy     bool
	stale    bool  // a commit failed: rows that come are of no use until Restart
	parked   error // why nothing can land; nil while it can
	parkedAt time.Time
	stats    Stats
}

// Stats count what has landed since the lander was made.
type Stats struct {
	Commits, Rows, Files, Bytes int64
	Retries, Fenced             int64
	Version                     int64     // the table's, after the last commit; -1 before
	LastCommit                  time.Time // zero before the first
	LastTook                    time.Duration
	OpenRows                    int   // in the open batch
	OpenBytes                   int64 // its memory
	Parked                      error // why nothing can land, nil while it can
	ParkedSince                 time.Time
}

// New makes a lander of the table that open opens. It takes rows after Open.
func New(name string, open func(context.Context) (sink.Writer, error), limits Limits, clock func() time.Time, log *slog.Logger, done func(Result)) *Lander {
	l := &Lander{Name: name, open: open, limits: limits, clock: clock, log: log, done: done, cut: clock(), io: make(chan struct{}, 1),
		progress: map[sink.Partition]int64{}, landed: map[sink.Partition]int64{}, gaps: map[sink.Partition]sink.Gap{}, stats: Stats{Version: -1}}
	l.io <- struct{}{}
	return l
}

// enter waits until nobody uses the writer, or ctx ends. leave is to be called without an error.
func (l *Lander) enter(ctx context.Context) error {
	select {
	case <-l.io:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Lander) leave() { l.io <- struct{}{} }

// Open opens the table: for the first time, or anew after Park. No partition may be this instance's, and no commit under way.
func (l *Lander) Open(ctx context.Context) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer l.leave()
	if l.writer != nil {
		if err := l.writer.Close(); err != nil {
			l.log.Warn("a table was not closed in order before it is opened anew", "sink", l.Name, "error", err)
		}
		l.set(nil)
	}
	w, err := l.open(ctx)
	if err != nil {
		return err
	}
	l.set(w)
	return nil
}

func (l *Lander) set(w sink.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writer = w
}

// Park keeps rows from the table, for a reason, until Unpark: the open batch is dropped, and all partitions are given up. It may be called again
// with another reason.
func (l *Lander) Park(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parked == nil {
		l.parkedAt = l.clock()
	}
	l.parked, l.stale = err, true
	l.forget()
}

// Unpark lets rows come again, after Open.
func (l *Lander) Unpark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parked, l.stale = nil, false
}

// Parked is the reason of Park; nil if the table isn't parked.
func (l *Lander) Parked() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.parked
}

// Progress asks the table how far the partitions have come; sink.NoOffset where it has none. It waits for a commit that is under way, until ctx
// ends.
func (l *Lander) Progress(ctx context.Context, parts []sink.Partition) (map[sink.Partition]int64, error) {
	if err := l.enter(ctx); err != nil {
		return nil, fmt.Errorf("a commit is under way: %w", err)
	}
	defer l.leave()
	return l.writer.Progress(ctx, parts)
}

// Restart makes a lander usable again after a failed commit: the open batch is dropped, and the partitions go on from what the table
// says. The tasks must be fed from there.
func (l *Lander) Restart(progress map[sink.Partition]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.landed, progress)
	l.drop()
	l.stale = false
}

// Stale tells that the lander waits for Restart.
func (l *Lander) Stale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stale
}

// Owned lists the partitions that are this instance's.
func (l *Lander) Owned() []sink.Partition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.landed))
}

// Own makes partitions this instance's, with the table's progress, and with what lies between that and where reading begins.
func (l *Lander) Own(progress map[sink.Partition]int64, gaps map[sink.Partition]sink.Gap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.progress, progress)
	maps.Copy(l.landed, progress)
	for p := range progress {
		delete(l.gaps, p)
	}
	maps.Copy(l.gaps, gaps)
}

// Disown gives partitions up. Their rows must have been cut or dropped.
func (l *Lander) Disown(parts ...sink.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range parts {
		delete(l.progress, p)
		delete(l.landed, p)
		delete(l.gaps, p)
	}
}

// Forget drops the open batch and gives all partitions up. A commit under way goes on: the table decides about it.
func (l *Lander) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
}

func (l *Lander) forget() {
	clear(l.landed)
	clear(l.progress)
	clear(l.gaps)
	l.drop()
}

// Landed is the table's progress of a partition as of the last commit; sink.NoOffset if it has none.
func (l *Lander) Landed(p sink.Partition) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.landed[p]; ok {
		return at
	}
	return sink.NoOffset
}

// Append adds the row that the record at offset of the input partition has given, unless the table has it already.
func (l *Lander) Append(p sink.Partition, offset int64, key, value any, meta *sink.Meta) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stale || offset < l.progress[p] {
		return nil
	}
	if l.batch == nil {
		l.batch = l.writer.NewBatch()
	}
	if l.batch.Rows() == 0 {
		l.began = l.clock()
	}
	return l.batch.Append(key, value, meta)
}

func (l *Lander) rows() int {
	if l.batch == nil {
		return 0
	}
	return l.batch.Rows()
}

// Due tells that the open batch has reached a limit and no commit is under way.
func (l *Lander) Due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.busy && !l.stale && l.rows() > 0 && (l.full() || l.since(&l.began) >= l.limits.Every)
}

// since is the time since then. Where the clock has jumped back behind it, the time counts from now, so that nothing waits until it is there again.
func (l *Lander) since(then *time.Time) time.Duration {
	now := l.clock()
	if now.Before(*then) {
		*then = now
	}
	return now.Sub(*then)
}

// idleFactor is how many times the limit of time progress without rows waits: a commit for nothing but progress is worth less.
const idleFactor = 10

// DueForProgress tells that there have been no rows for long, so that it is time to commit how far the input was read.
func (l *Lander) DueForProgress() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.busy && !l.stale && l.rows() == 0 && l.since(&l.cut) >= idleFactor*l.limits.Every
}

// Full tells that the open batch has reached its size: nothing more should be appended before it is cut.
func (l *Lander) Full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full()
}

func (l *Lander) full() bool {
	return l.rows() > 0 && (l.batch.Rows() >= l.limits.Rows || l.batch.Bytes() >= l.limits.Bytes)
}

// Busy tells that a commit is under way.
func (l *Lander) Busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy
}

// OpenBytes is the memory of the open batch.
func (l *Lander) OpenBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil {
		return 0
	}
	return l.batch.Bytes()
}

// Cut closes the open batch with the positions up to which its rows are complete, and starts to commit it; done is called with the
// result. It reports whether there was anything to commit: rows, or a position that moved. A lander that is busy must not be cut.
func (l *Lander) Cut(ctx context.Context, positions map[sink.Partition]int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy || l.stale {
		return false
	}
	var moves []sink.Move
	for p, to := range positions {
		from, owned := l.progress[p]
		if !owned || to <= from {
			continue
		}
		moves = append(moves, sink.Move{Partition: p, From: from, To: to, Gap: l.gapAt(p, from)})
	}
	if len(moves) == 0 {
		return false
	}
	batch := l.batch
	if batch == nil {
		batch = l.writer.NewBatch()
	}
	l.batch, l.busy, l.cut = l.writer.NewBatch(), true, l.clock()
	for _, m := range moves {
		l.progress[m.Partition] = m.To
	}
	go l.commit(ctx, batch, moves)
	return true
}

// gapAt is the gap that a move from an offset begins with: once it has landed, later moves are behind it.
func (l *Lander) gapAt(p sink.Partition, from int64) sink.Gap {
	if g := l.gaps[p]; g.From == max(from, 0) {
		return g
	}
	return sink.Gap{}
}

// commit lands a batch, however often that has to be tried.
func (l *Lander) commit(ctx context.Context, batch sink.Batch, moves []sink.Move) {
	pause := 100 * time.Millisecond
	for {
		c, err := l.tryCommit(ctx, batch, moves)
		var refused *sink.RefusedError
		if err == nil || sink.IsFenced(err) || errors.As(err, &refused) || ctx.Err() != nil {
			batch.Release()
			l.finish(Result{Lander: l, Moves: moves, Commit: c, Err: err})
			return
		}
		l.log.Warn("rows can't be landed yet", "sink", l.Name, "error", err, "in", pause)
		l.mu.Lock()
		l.stats.Retries++
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			batch.Release()
			l.finish(Result{Lander: l, Moves: moves, Err: fmt.Errorf("sink %s: %w", l.Name, errors.Join(ctx.Err(), err))})
			return
		case <-time.After(pause):
			pause = min(2*pause, 10*time.Second)
		}
	}
}

func (l *Lander) tryCommit(ctx context.Context, batch sink.Batch, moves []sink.Move) (sink.Commit, error) {
	if err := l.enter(ctx); err != nil {
		return sink.Commit{}, err
	}
	defer l.leave()
	return l.writer.Commit(ctx, batch, moves)
}

func (l *Lander) finish(r Result) {
	l.mu.Lock()
	l.busy = false
	if r.Err == nil {
		for _, m := range r.Moves {
			if _, owned := l.landed[m.Partition]; owned {
				l.landed[m.Partition] = m.To
			}
		}
		l.count(r.Commit)
	} else {
		if sink.IsFenced(r.Err) {
			l.stats.Fenced++
		}
		l.stale = true // what came behind the lost batch can't land either
		l.drop()
	}
	l.mu.Unlock()
	l.done(r)
}

func (l *Lander) count(c sink.Commit) {
	l.stats.Commits++
	l.stats.Rows += c.Rows
	l.stats.Files += int64(c.Files)
	l.stats.Bytes += c.Bytes
	l.stats.Version, l.stats.LastCommit, l.stats.LastTook = c.Version, l.clock(), c.Took
}

// Drop forgets the open batch: its rows will be read again.
func (l *Lander) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

func (l *Lander) drop() {
	if l.batch != nil {
		l.batch.Release()
		l.batch = nil
	}
	for p, at := range l.landed {
		l.progress[p] = at
	}
}

// Stats tells what has landed.
func (l *Lander) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	if s.Parked = l.parked; s.Parked != nil {
		s.ParkedSince = l.parkedAt
	}
	if l.batch != nil {
		s.OpenRows, s.OpenBytes = l.batch.Rows(), l.batch.Bytes()
	}
	return s
}

// Close releases the writer. No commit may be under way.
func (l *Lander) Close() error {
	l.Drop()
	if l.writer == nil {
		return nil
	}
	return l.writer.Close()
}
