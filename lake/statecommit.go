package lake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/keyed"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// changeBytes is about the memory that one change takes beside its row, while it is collected and while it is planned.
const changeBytes = 128

// maxStatePause bounds the time between two tries after lost races.
const maxStatePause = time.Second

// commitState lands a batch of changes: it is planned on the version that the index has, and lands right behind that version or not at all. A
// loser of a race brings its index up to the winner's version and plans anew.
func (w *writer) commitState(ctx context.Context, b *batch, moves []sink.Move, due []delta.Move) (*stateWrite, delta.Landed, error) {
	b.encoded = true
	for lost := 0; ; lost++ {
		if err := w.pauseAfter(ctx, lost); err != nil {
			return nil, delta.Landed{}, err
		}
		tried := w.table.Head().Version
		done, landed, err := w.tryState(ctx, b, moves, due)
		var conflict *delta.ConflictError
		var fenced *delta.FencedError
		switch {
		case errors.As(err, &conflict), errors.As(err, &fenced) && fenced.AppID == deletionsApp:
			if _, err := w.table.Refresh(ctx); err != nil {
				return nil, landed, err
			}
			continue
		case errors.Is(err, object.ErrNotFound):
			if err := w.overtaken(ctx, tried, err); err != nil {
				return nil, landed, err
			}
			continue
		case err != nil:
			return nil, landed, err
		}
		landed.Attempts += lost
		w.tellOfHorizon(done)
		// What the index can't take now it reads from the table before the next batch.
		if err := w.index.landed(done, landed.Version); err != nil {
			w.log.Warn("the index missed a commit; it is read from the table", "version", landed.Version, "error", err)
		}
		return done, landed, nil
	}
}

// firstSync brings a new index to the table's newest version.
func (w *writer) firstSync(ctx context.Context) error {
	for {
		tried := w.table.Head().Version
		err := w.index.sync(ctx, w.table)
		if !errors.Is(err, object.ErrNotFound) {
			return err
		}
		if err := w.overtaken(ctx, tried, err); err != nil {
			return err
		}
	}
}

// overtaken is asked where an object wasn't found that a version names. If the table has moved on others may have compacted it and vacuumed what
// the version rests on, and the newest one is as good; else the object is lost, and the error is returned.
func (w *writer) overtaken(ctx context.Context, version int64, notFound error) error {
	head, err := w.table.Refresh(ctx)
	if err != nil || head.Version == version {
		return errors.Join(notFound, err)
	}
	return nil
}

// tellOfHorizon logs what a commit has forgotten, and which changes it has dropped because of that.
func (w *writer) tellOfHorizon(done *stateWrite) {
	order := func(o uint64) string { return keyed.FormatOrder(w.sink.layout.state.order.kind, o) }
	was := w.index.deletions.horizon
	if done.plan.beyond > 0 {
		w.log.Warn("dropped changes of keys without a row: they are older than the deletions that are remembered, so that they might bring deleted rows back",
			"changes", done.plan.beyond, "olderThan", order(was))
	}
	if d := done.deletions; d != nil && d.horizon > was {
		w.log.Info("forgot the oldest deletions", "olderThan", order(d.horizon), "remembered", d.count())
	}
}

// pauseAfter waits a random time that grows with the races lost.
func (w *writer) pauseAfter(ctx context.Context, lost int) error {
	if lost <= 1 {
		return ctx.Err()
	}
	timer := time.NewTimer(rand.N(min(time.Millisecond<<min(lost, 20), maxStatePause)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("given up after %d lost races, nothing landed: %w", lost, ctx.Err())
	case <-timer.C:
		return nil
	}
}

// tryState plans the batch on the newest version that is known, and tries to land behind it.
func (w *writer) tryState(ctx context.Context, b *batch, moves []sink.Move, due []delta.Move) (*stateWrite, delta.Landed, error) {
	if err := w.index.sync(ctx, w.table); err != nil {
		return nil, delta.Landed{}, w.stateRefused(err)
	}
	p, err := w.index.plan(b.changes)
	if err != nil {
		return nil, delta.Landed{}, err
	}
	// Another writer may have come while files are written: they are not wasted on a version that is known to be old.
	done, err := w.write(ctx, b, p)
	if err != nil {
		return nil, delta.Landed{}, err
	}
	due = slices.Clone(due)
	if m, ok := w.index.deletionsMove(done, w.table.Head(), w.env.Now()); ok {
		due = append(due, m)
	}
	if done.deletions != nil {
		done.sync = append(done.sync, keyed.SegmentName(done.deletions.head()))
	}
	if len(done.sync) > 0 {
		if err := w.table.Store().Sync(ctx, done.sync...); err != nil {
			return nil, delta.Landed{}, err
		}
	}
	metrics := b.metrics(moves)
	maps.Copy(metrics, p.metrics())
	landed, err := w.table.Commit(ctx, delta.Commit{Add: done.adds, Remove: done.removes, Moves: due, Metadata: w.fits,
		ReadVersion: w.index.version, Exact: len(done.adds)+len(done.removes)+len(p.deletions) > 0,
		OperationParameters: map[string]string{"outputMode": "Update", "queryId": w.env.ApplicationID + "/" + w.env.Name, "epochId": strconv.FormatInt(w.commits, 10)},
		OperationMetrics:    metrics, Info: w.info(b, moves)})
	return done, landed, err
}

// metrics count the rows as a merge of other engines does.
func (p *statePlan) metrics() map[string]string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return map[string]string{"numOutputRows": n(p.inserted + p.updated), "numTargetRowsInserted": n(p.inserted), "numTargetRowsUpdated": n(p.updated),
		"numTargetRowsDeleted": n(p.deleted), "numLateChanges": n(p.late), "numChangesBeyondHorizon": n(p.beyond)}
}

// stateRefused names the table in a refusal of the index.
func (w *writer) stateRefused(err error) error {
	var refused *sink.RefusedError
	if errors.As(err, &refused) && refused.Table == "" {
		return &sink.RefusedError{Table: w.sink.place, Reason: refused.Reason, Advice: refused.Advice}
	}
	return err
}

// deletionsMove moves the table's pointer to the newest segment, or renews it where the table forgets what nobody renews.
func (x *stateIndex) deletionsMove(done *stateWrite, head *delta.Head, now time.Time) (m delta.Move, ok bool) {
	old, has := head.Txns[deletionsApp]
	m = delta.Move{AppID: deletionsApp, First: !has, From: old.Version, To: old.Version}
	if done.deletions != nil {
		m.To = done.deletions.head()
		return m, true
	}
	renew := head.Metadata.Interval(txnRetention, 0) / 2
	return m, has && renew > 0 && now.UnixMilli()-old.LastUpdated >= renew.Milliseconds()
}

// landed brings the index to the version that a write has made.
func (x *stateIndex) landed(done *stateWrite, version int64) error {
	if version != x.version+1 && len(done.adds)+len(done.removes) == 0 && len(done.plan.deletions) == 0 {
		return nil // only progress has moved, perhaps behind commits of others
	}
	files, slots := maps.Clone(x.files), maps.Clone(x.slots)
	for _, name := range done.dropped {
		for _, s := range files[name].slots {
			delete(slots, s.id)
		}
		delete(files, name)
	}
	for _, f := range done.files {
		files[f.name] = f
		for _, s := range f.slots {
			slots[s.id] = s
		}
	}
	d := x.deletions
	if done.deletions != nil {
		d = *done.deletions
	}
	x.next = done.next // never given again, even if what follows fails
	meta, err := x.meta(version, slots, d)
	if err != nil {
		return err
	}
	if err := x.x.Apply(done.plan.changes(func(row int32) (uint32, uint32) { return done.slotOf[row], done.rowOf[row] }), meta); err != nil {
		return err
	}
	risen := d.horizon > x.deletions.horizon
	x.deletions = d
	x.version, x.listed, x.files, x.slots = version, true, files, slots
	if risen {
		return x.forget()
	}
	return nil
}
