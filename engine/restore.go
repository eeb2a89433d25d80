package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// restoreStores brings each store of the runner to the end of its changelog, from what it has. A changelog whose beginning is taken away
// in the middle of it is begun again.
func (e *Engine) restoreStores(ctx context.Context, r *runner, s *starts) error {
	if r.db == nil {
		return nil
	}
	s, err := e.adoptCheckpoint(ctx, r, s)
	if err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		err := e.tryRestore(ctx, r, s)
		var outside *fetch.OutOfRangeError
		if !errors.As(err, &outside) || tries >= 10 {
			return err
		}
		if s, err = e.newStarts(ctx, r, s); err != nil {
			return err
		}
	}
}

// newStarts reads anew where the runner's changelogs begin.
func (e *Engine) newStarts(ctx context.Context, r *runner, s *starts) (*starts, error) {
	first, err := fetch.Bounds(ctx, e.restoreClient, fetch.Start, e.changelogs(r))
	if err != nil {
		return nil, err
	}
	renewed := *s
	renewed.logStart = maps.Clone(s.logStart)
	maps.Copy(renewed.logStart, first)
	return &renewed, nil
}

func (e *Engine) tryRestore(ctx context.Context, r *runner, s *starts) error {
	spans, err := e.restoreSpans(ctx, r, s)
	if err != nil {
		return err
	}
	r.changelogSize.Store(e.sizeOf(r, s))
	offsets := int64(0)
	for _, sp := range spans {
		offsets += max(0, sp.To-sp.From)
	}
	e.beginRestore(r, offsets)
	defer func() { r.restore.end(e.cfg.clock()) }()
	for _, sp := range spans {
		if err := e.restoreStore(ctx, r, sp); err != nil {
			return fmt.Errorf("store %s from %s: %w", sp.store, sp.Partition, e.explainRestore(sp, err))
		}
	}
	e.endRestore(r, "state restored")
	return nil
}

// explainRestore says what to do where a changelog has records that the store can't be made of.
func (e *Engine) explainRestore(sp restoreSpan, err error) error {
	if !errors.Is(err, state.ErrChangelogKey) && !errors.Is(err, state.ErrBufferValue) {
		return err
	}
	return fmt.Errorf("%w. Topic %s has records that no %s store has written: store %q was probably one of another kind before. Give it another name with "+
		"topology.Store (it begins empty), or reset the application (its command reset, or engine.ResetApplication): see %s",
		err, sp.Topic, e.plan.Stores[sp.store].Spec.Kind, sp.store, changingPage)
}

// sizeOf is how many offsets the changelogs of a runner's stores span.
func (e *Engine) sizeOf(r *runner, s *starts) (n int64) {
	for _, p := range e.changelogs(r) {
		n += max(0, s.high[p]-s.logStart[p])
	}
	return n
}

// restoreSpan is what a store lacks.
type restoreSpan struct {
	store string
	fetch.Span
}

// misfits are stores that are where their changelogs aren't: the next record is gone, or there never was one.
type misfits struct{ stores, reasons []string }

func (m *misfits) Error() string { return strings.Join(m.reasons, "; ") }

// restoreSpans works out what each store lacks. Stores that don't fit their changelogs are built anew; the task's others stay.
func (e *Engine) restoreSpans(ctx context.Context, r *runner, s *starts) ([]restoreSpan, error) {
	for attempt := 0; ; attempt++ {
		spans, stale := e.spansFrom(r, s, r.db.Offset)
		if stale == nil {
			return spans, nil
		}
		if attempt > 0 {
			return nil, stale
		}
		if err := e.awaitInternal(ctx); err != nil { // the changelog is gone, or was made anew: its contents are no reason to forget what is here
			return nil, err
		}
		e.log.Warn("local state doesn't fit its changelog any more and is built anew", "task", taskOf(r.spec.id), "stores", stale.stores, "reason", stale)
		err := r.db.CloseWithout(stale.stores...)
		r.db = nil
		if err == nil {
			err = e.openStores(ctx, r)
		}
		if err != nil {
			return nil, err
		}
	}
}

// spansFrom works out what each of the runner's stores lacks that is at an offset. stale is nil if all of them fit.
func (e *Engine) spansFrom(r *runner, s *starts, at func(store string) (int64, bool)) (spans []restoreSpan, stale *misfits) {
	for _, spec := range r.db.Stores() {
		st := e.plan.Stores[spec.Name]
		if st.Changelog == "" {
			continue
		}
		p := fetch.Partition{Topic: st.Changelog, Partition: r.spec.id.Partition}
		first, end := s.logStart[p], s.high[p]
		if r.copy {
			end = s.stable[p]
		}
		if st.SourceAsChangelog { // what lies behind the committed offset comes by processing
			end = max(first, s.committedOf(p))
		}
		from, ok := at(spec.Name)
		switch {
		case !ok:
			from = first
		case from < first || from > max(end, s.high[p]):
			if stale == nil {
				stale = &misfits{}
			}
			stale.stores = append(stale.stores, spec.Name)
			stale.reasons = append(stale.reasons, fmt.Sprintf("store %s is at offset %d of %s, which has %d to %d", spec.Name, from, p, first, end))
		}
		spans = append(spans, restoreSpan{spec.Name, fetch.Span{Partition: p, ID: e.catalog().id(p.Topic), From: from, To: end}})
	}
	return spans, stale
}

func (s *starts) committedOf(p fetch.Partition) int64 {
	for tp, c := range s.committed {
		if fetch.Partition(tp) == p {
			return c.offset
		}
	}
	return 0
}

// wipe empties the runner's state.
func (e *Engine) wipe(ctx context.Context, r *runner) error {
	if err := r.db.Close(); err != nil {
		return err
	}
	r.db = nil
	if err := removeState(e.taskDir(r.spec.id)); err != nil {
		return err
	}
	return e.openStores(ctx, r)
}

// restoreBatch bounds what is fetched and put into a store at once, in bytes as they are sent. Records of a changelog are often small, and take ten times
// as much in memory; each store that is being restored has such a batch.
const restoreBatch = 256 << 10

// restorePiece is how many records a store gets at once, so that what they are turned into for it stays small.
const restorePiece = 512

func (e *Engine) restoreStore(ctx context.Context, r *runner, sp restoreSpan) error {
	var batch []state.RestoreRecord
	keeps, err := e.judge(r, sp)
	if err != nil {
		return err
	}
	cfg := fetch.ReadConfig{MaxBytes: restoreBatch, MaxWait: 100 * time.Millisecond}
	apply := func(records []*kgo.Record, next int64) error {
		before, _ := r.db.Offset(sp.store)
		size := 0
		for piece, reached := range pieces(records, next) {
			var bytes int
			var err error
			if batch, bytes, err = restoreRecords(batch, piece, keeps); err != nil {
				return err
			}
			if err := r.db.Restore(sp.store, batch, reached); err != nil {
				return err
			}
			size += bytes
		}
		e.restored(r, len(records), size, next-max(before, sp.From))
		return nil
	}
	if err := r.db.BeginRestore(sp.store); err != nil {
		return err
	}
	// What was read is kept whatever ended the reading: the next attempt goes on behind it.
	err = errors.Join(fetch.Read(ctx, e.restoreClient, cfg, sp.Span, apply), r.db.EndRestore(sp.store))
	if err != nil {
		return err
	}
	if _, ok := r.db.Offset(sp.store); !ok { // nothing to read, but the store has to know where it is
		return r.db.Restore(sp.store, nil, sp.To)
	}
	return nil
}

// pieces are the records in their order, a few at a time, each time with the offset to go on from.
func pieces(records []*kgo.Record, next int64) iter.Seq2[[]*kgo.Record, int64] {
	return func(yield func([]*kgo.Record, int64) bool) {
		for len(records) > restorePiece {
			if !yield(records[:restorePiece], records[restorePiece].Offset) {
				return
			}
			records = records[restorePiece:]
		}
		yield(records, next)
	}
}

// restoreRecords turns records of a changelog into what a store takes, in the memory of batch. size is in bytes.
func restoreRecords(batch []state.RestoreRecord, records []*kgo.Record, keeps func(*kgo.Record) (bool, error)) (_ []state.RestoreRecord, size int, err error) {
	batch = batch[:0]
	for _, rec := range records {
		keep, err := keeps(rec)
		if err != nil {
			return batch, 0, err
		}
		if keep {
			batch = append(batch, state.RestoreRecord{
				Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp.UnixMilli(), Headers: headers(rec.Headers)})
			size += len(rec.Key) + len(rec.Value)
		}
	}
	return batch, size, nil
}

// judge tells which records belong into a store. In a changelog all do; a source topic that serves as one may have records that the task
// left out when it met them.
func (e *Engine) judge(r *runner, sp restoreSpan) (keeps func(*kgo.Record) (bool, error), err error) {
	if !e.plan.Stores[sp.store].SourceAsChangelog {
		return func(*kgo.Record) (bool, error) { return true, nil }, nil
	}
	j, err := task.NewJudge(task.Config{
		ApplicationID: e.plan.ApplicationID, ID: r.spec.id, Subtopologies: r.spec.subs, Handlers: e.cfg.handlers, Clock: e.cfg.clock, Logger: e.log,
	}, task.TopicPartition(sp.Partition))
	if err != nil {
		return nil, err
	}
	return func(rec *kgo.Record) (bool, error) {
		return j.Keeps(&processors.RawRecord{
			Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Timestamp: rec.Timestamp.UnixMilli(),
			Key: rec.Key, Value: rec.Value, Headers: headers(rec.Headers),
		})
	}, nil
}
