package delta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tributary-io/tributary/lake/object"
)

const (
	checkpointBatch    = 8192    // rows built at once
	checkpointRowGroup = 1 << 17 // rows
	checkpointTries    = 3       // with other starting points, where one turns out to be damaged
)

// checkpointSums are what a checkpoint holds, for comparing what was read back with what was to be written.
type checkpointSums struct {
	actions, adds, removes, txns, domains int64
	heads                                 int64 // protocol and metaData
	addBytes                              int64
	paths                                 uint64 // sum of the paths' hashes, so that order doesn't matter
}

func (s *checkpointSums) add(a *action) {
	if a.sidecar != nil || a.v2 {
		return // of the checkpoint itself, not of the table
	}
	s.actions++
	switch {
	case a.add != nil:
		s.adds++
		s.addBytes += a.add.Size
		s.paths += hashText(a.add.Path)
	case a.remove != nil:
		s.removes++
		s.paths += 3 * hashText(a.remove.Path)
	case a.txn != nil:
		s.txns++
		s.paths += hashText(a.txn.AppID) + uint64(a.txn.Version)
	case a.domain != nil:
		s.domains++
	default:
		s.heads++
	}
}

func hashText(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// checkpoint writes a checkpoint of the newest version, of the kind that the table asks for, and points _last_checkpoint to it. It is built and
// read back, then published under its name by one atomic put, so that no reader ever sees half of one.
func (t *Table) checkpoint(ctx context.Context) (*Head, *checkpointSums, error) {
	for try := 1; ; try++ {
		head, sums, err := t.checkpointOnce(ctx)
		if err == nil || try == checkpointTries || !errors.Is(err, errCheckpoint) {
			return head, sums, err
		}
	}
}

func (t *Table) checkpointOnce(ctx context.Context) (*Head, *checkpointSums, error) {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	if s.Head.wantsV2() {
		return t.checkpointV2(ctx, s)
	}
	data, sums, err := t.buildCheckpoint(ctx, s)
	if err != nil {
		return nil, nil, t.wrap(fmt.Errorf("checkpoint of version %d: %w", s.Head.Version, err))
	}
	name := checkpointName(s.Head.Version)
	err = t.store.PutIfAbsent(ctx, name, data)
	if err != nil && !errors.Is(err, object.ErrExists) {
		return nil, nil, t.wrap(fmt.Errorf("checkpoint of version %d: %w", s.Head.Version, err))
	}
	if err == nil {
		err = t.pointToCheckpoint(ctx, lastCheckpointFile{
			Version: s.Head.Version, Size: sums.actions, SizeInBytes: int64(len(data)), NumOfAddFiles: sums.adds,
		})
	} else {
		err = nil // another process made it, and points to it
	}
	return s.Head, sums, err
}

// pointToCheckpoint updates _last_checkpoint unless it points further already.
func (t *Table) pointToCheckpoint(ctx context.Context, f lastCheckpointFile) error {
	if t.readLastCheckpoint(ctx) > f.Version {
		return nil
	}
	raw, err := f.marshal()
	if err != nil {
		return t.wrap(err)
	}
	return t.wrap(t.store.Put(ctx, lastCheckpoint, raw))
}

// buildCheckpoint writes a snapshot as Parquet and reads it back.
func (t *Table) buildCheckpoint(ctx context.Context, s *Snapshot) ([]byte, *checkpointSums, error) {
	var buf bytes.Buffer
	w, err := newCheckpointWriter(&buf, s.Head, classicForm)
	if err != nil {
		return nil, nil, err
	}
	sums, err := t.fillCheckpoint(ctx, s, w)
	if err = errors.Join(err, w.close()); err != nil {
		return nil, nil, err
	}
	var read checkpointSums
	err = scanCheckpoint(ctx, bytes.NewReader(buf.Bytes()), headActions|fileActions, func(a *action) error { read.add(a); return nil })
	if err != nil {
		return nil, nil, fmt.Errorf("what was written can't be read back: %w", err)
	}
	if read != *sums {
		return nil, nil, fmt.Errorf("what was written reads back differently: %+v instead of %+v", read, *sums)
	}
	return buf.Bytes(), sums, nil
}

// fillCheckpoint writes all actions of a snapshot.
func (t *Table) fillCheckpoint(ctx context.Context, s *Snapshot, w *checkpointWriter) (*checkpointSums, error) {
	sums := &checkpointSums{}
	write := func(a *action) error { sums.add(a); return w.write(a) }
	if err := s.Head.eachAction(write); err != nil {
		return nil, err
	}
	return sums, t.eachFileAction(ctx, s, write)
}

// eachAction calls fn with all actions of a version but those on files.
func (h *Head) eachAction(fn func(*action) error) error {
	if err := errors.Join(fn(&action{protocol: &h.Protocol}), fn(&action{metadata: h.Metadata})); err != nil {
		return err
	}
	for _, txn := range sortedValues(h.Txns) {
		if err := fn(&action{txn: &txn}); err != nil {
			return err
		}
	}
	for _, d := range sortedValues(h.Domains) {
		if err := fn(&action{domain: &d}); err != nil {
			return err
		}
	}
	return nil
}

// eachFileAction calls fn with the actions on files that a checkpoint holds. Tombstones stay as long as vacuums may need them.
func (t *Table) eachFileAction(ctx context.Context, s *Snapshot, fn func(*action) error) error {
	keepSince := t.opts.Now().Add(-s.Head.Metadata.Interval(propFileRetention, defaultFileRetention)).UnixMilli()
	return s.replay(ctx, func(a *action) error {
		if a.remove != nil && a.remove.DeletionTimestamp <= keepSince {
			return nil
		}
		return fn(a)
	})
}

func newCheckpointWriter(buf *bytes.Buffer, h *Head, form checkpointForm) (*checkpointWriter, error) {
	w := &checkpointWriter{columns: newCheckpointColumns(memory.DefaultAllocator, h.Metadata.Flag(propStatsAsJSON, true), form)}
	props := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Snappy), parquet.WithMaxRowGroupLength(checkpointRowGroup), parquet.WithStats(false),
		parquet.WithCreatedBy("Tributary"))
	var err error
	w.file, err = pqarrow.NewFileWriter(w.columns.schema, buf, props, pqarrow.DefaultWriterProps())
	return w, err
}

// checkpointWriter gathers actions to batches.
type checkpointWriter struct {
	columns *checkpointColumns
	file    *pqarrow.FileWriter
	rows    int
}

func (w *checkpointWriter) write(a *action) error {
	w.columns.append(a)
	if w.rows++; w.rows == checkpointBatch {
		return w.flush()
	}
	return nil
}

func (w *checkpointWriter) flush() error {
	if w.rows == 0 {
		return nil
	}
	w.rows = 0
	batch := w.columns.batch()
	defer batch.Release()
	return w.file.WriteBuffered(batch)
}

func (w *checkpointWriter) close() error {
	return errors.Join(w.flush(), w.file.Close())
}
