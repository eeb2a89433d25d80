package iceberg

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	icebergo "github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"github.com/tributary-io/tributary/lake/parquetfile"
)

// fileWriter writes one data file, row group by row group. The file is complete and durable after finish.
type fileWriter struct {
	name string
	file iceio.FileWriter
	rows *parquetfile.Stream
}

func newFileWriter(fsys iceio.WriteFileIO, name string, opts parquetfile.Options) (w *fileWriter, err error) {
	w = &fileWriter{name: name}
	if w.file, err = fsys.Create(name); err != nil {
		return nil, w.named(err)
	}
	if w.rows, err = parquetfile.NewStream(w.file, opts); err != nil {
		w.file.Close()
		return nil, w.named(err)
	}
	return w, nil
}

func (w *fileWriter) named(err error) error {
	if err != nil {
		return fmt.Errorf("data file %s: %w", w.name, err)
	}
	return nil
}

// finish completes the file, which must have a row, and describes it. After an error of write it only closes the file.
func (w *fileWriter) finish(f *fit, partition map[int]any, failed error) (icebergo.DataFile, error) {
	var leaves []parquetfile.Leaf
	err := failed
	if err == nil {
		leaves, err = w.rows.Close()
	}
	if e := w.file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, w.named(err)
	}
	b, err := icebergo.NewDataFileBuilder(f.spec, icebergo.EntryContentData, w.name, icebergo.ParquetFile, partition, nil, nil, w.rows.Rows(), w.rows.Size())
	if err != nil {
		return nil, w.named(err)
	}
	s := newFileStats(f.schema, leaves)
	return b.ValueCounts(s.values).NullValueCounts(s.nulls).LowerBoundValues(s.lower).UpperBoundValues(s.upper).SplitOffsets([]int64{4}).Build(), nil
}

// writePart writes the rows of one partition, as one file unless that would pass the target size. newName names a file.
func writePart(fsys iceio.WriteFileIO, newName func() string, f *fit, rec arrow.RecordBatch, partition map[int]any, opts parquetfile.Options, target int64) (files []icebergo.DataFile, err error) {
	groups := parquetfile.RowGroups(rec, opts)
	for len(groups) > 0 {
		w, err := newFileWriter(fsys, newName(), opts)
		if err != nil {
			return nil, err
		}
		for err == nil && len(groups) > 0 && w.rows.Size() < target {
			err = w.rows.Write(groups[0])
			groups = groups[1:]
		}
		file, err := w.finish(f, partition, err)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
