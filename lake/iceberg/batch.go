package iceberg

import (
	"errors"

	icebergo "github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/rows"
	"github.com/tributary-io/tributary/lake/sink"
)

// batch is one commit's rows. It implements sink.Batch.
type batch struct {
	w          *writer
	b          *columns.Builder
	tombstones int64 // null values that made no row
	at         int64 // the time of the rows in the run columns, microseconds; 0 before the first row

	// The batch keeps what it has written over repeated calls of Commit.
	given bool      // it was given to Commit
	id    string    // names its commit in the table, so that one whose reply was lost is found
	fit   *fit      // of the files; nil before they are written
	data  *recorder // the data files
	adds  []icebergo.DataFile
	doubt bool // an attempt's outcome is not known: its files must stay
}

// Append implements sink.Batch. A null value makes no row, and is no error, unless the sink lands tombstones.
func (b *batch) Append(key, value any, meta *sink.Meta) error {
	if b.given {
		return errors.New("a batch that was given to Commit takes no more rows")
	}
	if b.at == 0 && b.w.sink.layout.HasRun() {
		b.at = b.w.env.Now().UnixMicro()
	}
	err := b.w.sink.layout.Append(b.b, b.at, key, value, meta)
	if err == rows.ErrTombstone {
		b.tombstones++
		return nil
	}
	return err
}

// Rows implements sink.Batch.
func (b *batch) Rows() int { return b.b.Rows() }

// Bytes implements sink.Batch: the memory of the rows' values. Growing buffers may hold up to twice as much for a moment.
func (b *batch) Bytes() int64 { return b.b.Bytes() }

// Release implements sink.Batch. Files of a batch that didn't land are removed.
func (b *batch) Release() {
	if b.b == nil {
		return
	}
	b.removeFiles()
	b.b.Reset()
	b.w.free.Put(b.b)
	b.b = nil
}

// give marks the batch as given to Commit.
func (b *batch) give() {
	b.given = true
	if b.id == "" {
		b.id = uuid.NewString()
	}
}

// landed forgets the files: they are the table's now.
func (b *batch) landed() { b.data, b.adds, b.fit = nil, nil, nil }

// removeFiles deletes the batch's data files, which no commit refers to. After an unknown outcome they stay: the commit may still
// turn up. RemoveOrphans finds them if it doesn't.
func (b *batch) removeFiles() {
	if b.data == nil || b.doubt {
		return
	}
	if n, err := b.data.remove(); err != nil {
		b.w.log.Warn("some files of a batch that didn't land could not be removed; they are orphans", "removed", n, "error", err)
	}
	b.adds, b.fit = nil, nil
}
