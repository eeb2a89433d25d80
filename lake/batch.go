package lake

import (
	"errors"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/rows"
	"github.com/tributary-io/tributary/lake/sink"
)

// batch is one commit's rows. It implements sink.Batch.
type batch struct {
	w          *writer
	b          *columns.Builder
	tombstones int64 // null values that made no row

	at int64 // the time of the rows in the run columns, microseconds; 0 before the first row

	// Source timestamps of the rows in ms, for the commit's record.
	oldest, newest int64

	// Of a batch for a table of current state: what each record does, and a buffer for keys.
	changes []change
	key     []byte

	// Once encoded, the batch keeps its files over repeated calls of Commit.
	encoded  bool
	written  []written // of a batch for a table of current state
	adds     []delta.Add
	md       *delta.Metadata  // that the files were written for
	distinct map[string]int64 // about how many different values each column has, if there is one file
}

// Append implements sink.Batch. A null value makes no row, and is no error, unless the sink lands tombstones.
func (b *batch) Append(key, value any, meta *sink.Meta) error {
	if b.encoded {
		return errors.New("a batch that was given to Commit takes no more rows")
	}
	if b.at == 0 && b.w.sink.layout.HasRun() {
		b.at = b.w.env.Now().UnixMicro()
	}
	var err error
	if b.w.sink.layout.state != nil {
		err = b.appendChange(key, value, meta)
	} else {
		err = b.w.sink.layout.append(b.b, b.at, key, value, meta)
	}
	switch {
	case err == rows.ErrTombstone:
		b.tombstones++
		return nil
	case err != nil:
		return err
	}
	ts := meta.BrokerTimestamp
	if b.Rows() == 1 {
		b.oldest, b.newest = ts, ts
	}
	b.oldest, b.newest = min(b.oldest, ts), max(b.newest, ts)
	return nil
}

// Rows implements sink.Batch: in a table of current state the number of changes.
func (b *batch) Rows() int {
	if b.w.sink.layout.state != nil {
		return len(b.changes)
	}
	return b.b.Rows()
}

// Bytes implements sink.Batch: the memory of the rows' values. Growing buffers may hold up to twice as much for a moment.
func (b *batch) Bytes() int64 { return b.b.Bytes() + int64(len(b.changes))*changeBytes }

// Release implements sink.Batch.
func (b *batch) Release() {
	if b.b != nil {
		b.w.recycle(b.b)
		b.b, b.changes, b.written = nil, nil, nil
	}
}
