package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
)

// A global table is read whole by every instance: before any task starts up to the end of its topics, then as a runner among the others. It
// is in no transaction, and commits no offsets: how far it has come is kept in its own database. What it sends are dead letters: see globalletters.go.

// openGlobal opens the global tables and reads them to the end that their topics have now.
func (e *Engine) openGlobal(ctx context.Context) error {
	if e.catalog().global == nil {
		return nil
	}
	r := e.newRunner(e.catalog().global, 1<<20)
	e.global = r
	err := e.readGlobal(ctx, r)
	var outside *fetch.OutOfRangeError
	if errors.As(err, &outside) { // the topic is younger than what we have of it
		e.log.Warn("a global table doesn't fit its topic any more and is read anew", "reason", err)
		if err = errors.Join(r.shut(), e.wipe(ctx, r)); err != nil {
			return err
		}
		fresh := e.newRunner(e.catalog().global, 1<<20)
		fresh.db, fresh.changelog = r.db, r.changelog
		e.global = fresh
		err = e.readGlobal(ctx, fresh)
	}
	if err != nil {
		return fmt.Errorf("global tables: %w", err)
	}
	return nil
}

func (e *Engine) readGlobal(ctx context.Context, r *runner) error {
	if err := e.openStores(ctx, r); err != nil {
		return err
	}
	if err := e.makeTask(r); err != nil {
		return err
	}
	positions, err := e.globalPositions(ctx, r)
	if err != nil {
		return err
	}
	if err := e.prepare(ctx, r.task); err != nil {
		return err
	}
	parts := r.partitions()
	ends, err := fetch.Bounds(ctx, e.restoreClient, fetch.Stable, parts)
	if err != nil {
		return err
	}
	spans, offsets := make([]fetch.Span, 0, len(parts)), int64(0)
	for _, p := range parts {
		tp := task.TopicPartition(p)
		at := positions[tp]
		if at > ends[p] {
			return &fetch.OutOfRangeError{Partition: p, Offset: at, End: ends[p]}
		}
		if err := r.task.SetPosition(tp, at, processors.NoTimestamp); err != nil {
			return err
		}
		spans = append(spans, fetch.Span{Partition: p, ID: e.catalog().id(p.Topic), From: at, To: ends[p]})
		offsets += ends[p] - at
	}
	e.beginRestore(r, offsets)
	defer func() { r.restore.end(e.cfg.clock()) }()
	e.publish()
	for _, sp := range spans {
		tp := task.TopicPartition(sp.Partition)
		r.inMu.Lock()
		r.taken[tp], r.ends[tp] = max(sp.From, sp.To), sp.To
		r.inMu.Unlock()
		if err := e.bootstrap(ctx, r, sp); err != nil {
			return err
		}
	}
	r.inMu.Lock()
	r.done = r.task.Positions(nil)
	r.inMu.Unlock()
	e.endRestore(r, "global tables are read")
	return nil
}

// bootstrap reads a part of a global topic through the task.
func (e *Engine) bootstrap(ctx context.Context, r *runner, span fetch.Span) error {
	tp, at := task.TopicPartition(span.Partition), span.From
	cfg := fetch.ReadConfig{MaxBytes: restoreBatch, MaxWait: 100 * time.Millisecond}
	return fetch.Read(ctx, e.restoreClient, cfg, span, func(rs []*kgo.Record, next int64) error {
		if err := r.task.Add(tp, rawRecords(rs), next); err != nil {
			return err
		}
		for {
			did, err := r.task.Process()
			if err != nil {
				return err
			}
			if !did {
				break
			}
		}
		if err := e.letters.flush(ctx); err != nil {
			return err
		}
		if err := e.applyGlobal(r); err != nil {
			return err
		}
		size := 0
		for _, rec := range rs {
			size += len(rec.Key) + len(rec.Value)
		}
		e.restored(r, len(rs), size, next-at)
		at = next
		return nil
	})
}

// globalPositions is where each partition goes on: behind what the database has, else at the log's beginning.
func (e *Engine) globalPositions(ctx context.Context, r *runner) (map[task.TopicPartition]int64, error) {
	first, err := fetch.Bounds(ctx, e.restoreClient, fetch.Start, r.partitions())
	if err != nil {
		return nil, err
	}
	kept := map[string]int64{}
	if r.db != nil && !e.anyInMemory(r) {
		if meta := r.db.TaskMeta(); meta != nil {
			if err := json.Unmarshal(meta, &kept); err != nil {
				return nil, fmt.Errorf("read positions: %w", err)
			}
		}
	}
	positions := map[task.TopicPartition]int64{}
	for _, tp := range r.spec.inputs {
		at, ok := kept[tp.String()]
		if !ok {
			at = first[fetch.Partition(tp)]
		}
		positions[tp] = max(at, first[fetch.Partition(tp)]) // compaction and retention may take what was read
	}
	return positions, nil
}

// anyInMemory tells that a store starts empty, so that its topic has to be read from the beginning.
func (e *Engine) anyInMemory(r *runner) bool {
	for _, spec := range e.storeSpecs(r.spec) {
		if spec.InMemory {
			return true
		}
	}
	return false
}

// sealGlobal lets what the global tables have read since the last time be seen, once the letters of what they left out are written. The gate
// must be closed.
func (e *Engine) sealGlobal() error {
	if e.global == nil || !e.global.open || e.letters.written != nil || !e.global.dirty() {
		return nil
	}
	if len(e.letters.waiting) > 0 {
		e.letters.begin()
		return nil
	}
	err := e.applyGlobal(e.global)
	e.queue.wake(e.global) // it may have waited for room in the write buffer
	return err
}

// lettersWritten goes on where sealGlobal has begun to write letters.
func (e *Engine) lettersWritten() error {
	e.gate.close()
	defer e.gate.open()
	if e.letters.written == nil {
		return nil // the end has waited for them
	}
	e.letters.written = nil
	if e.letters.err != nil {
		if e.life.Err() != nil {
			return nil // the next start reads their records again
		}
		return e.letters.err
	}
	err := e.applyGlobal(e.global)
	e.queue.wake(e.global)
	return err
}

// drainGlobal writes the letters that wait, as long as that doesn't hold up the end: the next start would read their records again.
func (e *Engine) drainGlobal() error {
	if e.global == nil || !e.global.open {
		return nil
	}
	e.gate.close()
	defer e.gate.open()
	ctx, cancel := context.WithTimeout(e.life, e.cfg.closing/3)
	defer cancel()
	if err := e.letters.flush(ctx); ctx.Err() != nil {
		return &UncommittedError{fmt.Errorf("dead letters of global tables are not written: %w", err)}
	} else if err != nil {
		return err
	}
	if !e.global.dirty() {
		return nil
	}
	return e.applyGlobal(e.global)
}

func (e *Engine) applyGlobal(r *runner) error {
	r.task.TakeDirty()
	if r.db == nil {
		return nil
	}
	kept := map[string]int64{}
	for _, p := range r.task.Positions(nil) {
		if p.Offset >= 0 {
			kept[p.TopicPartition.String()] = p.Offset
		}
	}
	meta, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("global tables: %w", err)
	}
	gen, err := r.db.Seal()
	if err == nil {
		err = gen.Apply(nil, meta)
	}
	if err == nil {
		gen.Release()
	}
	r.inMu.Lock()
	r.tellWritten()
	r.inMu.Unlock()
	if err != nil {
		return fmt.Errorf("global tables: %w", err)
	}
	return nil
}

// followGlobal lets the global tables run among the tasks.
func (e *Engine) followGlobal() error {
	r := e.global
	if r == nil {
		return nil
	}
	e.routes.add(r)
	positions := map[fetch.Partition]int64{}
	for _, p := range r.task.Positions(nil) {
		positions[fetch.Partition(p.TopicPartition)] = max(0, p.Offset)
	}
	r.open = true
	r.runs.Store(true)
	e.inputs.Add(positions)
	return e.readable(r)
}

func (e *Engine) closeGlobal() error {
	if e.global == nil {
		return nil
	}
	e.letters.running.Wait() // the engine's life has ended, or it never ran
	e.unreadable(e.global)
	return e.global.close()
}
