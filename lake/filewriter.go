package lake

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/parquetfile"
)

// fileWriter writes one data file, batch by batch. The file is complete after finish, but not yet durable: the table's commit syncs all
// of its files together.
type fileWriter struct {
	ctx   context.Context
	store object.Store
	md    *delta.Metadata
	opts  parquetfile.Options
	now   func() time.Time

	name   string // "" before the first row
	object object.Writer
	file   *parquetfile.Stream
}

// write adds rows; see parquetfile.Stream.
func (w *fileWriter) write(rec arrow.RecordBatch) error {
	if w.name == "" {
		if err := w.start(); err != nil {
			return err
		}
	}
	return w.named(w.file.Write(rec))
}

func (w *fileWriter) start() (err error) {
	name := delta.NewDataFileName(w.opts.Codec)
	if w.object, err = w.store.Create(w.ctx, name); err != nil {
		return err
	}
	w.name = name
	w.file, err = parquetfile.NewStream(w.object, w.opts)
	return err
}

func (w *fileWriter) named(err error) error {
	if err != nil {
		return fmt.Errorf("data file %s: %w", w.name, err)
	}
	return nil
}

// size is what the file has so far, without the rows that aren't encoded yet.
func (w *fileWriter) size() int64 {
	if w.file == nil {
		return 0
	}
	return w.file.Size()
}

// finish completes the file, and returns its add action without partition values; nil if there were no rows.
func (w *fileWriter) finish() (*delta.Add, []parquetfile.Leaf, error) {
	if w.name == "" {
		return nil, nil, nil
	}
	leaves, err := w.file.Close()
	if err == nil {
		err = w.object.Close()
	}
	if err != nil {
		return nil, nil, w.named(err)
	}
	return &delta.Add{Path: delta.EncodePath(w.name), Size: w.file.Size(), ModificationTime: w.now().UnixMilli(), DataChange: true,
		Stats: fileStats(w.md, w.file.Rows(), leaves)}, leaves, nil
}

// abort drops the file, unless it is complete.
func (w *fileWriter) abort() {
	if w.object != nil {
		w.object.Abort()
	}
}

// targetSize is the size in bytes that a table's data files should have.
func targetSize(md *delta.Metadata) int64 {
	if n := byteSize(md.Configuration[targetProperty]); n > 0 {
		return n
	}
	return defaultTargetSize
}
