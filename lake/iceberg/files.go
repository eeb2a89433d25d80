package iceberg

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	icebergo "github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/parquetfile"
	"github.com/tributary-io/tributary/lake/sink"
)

// writeBuffer is how much of a file is gathered before it is handed to the store.
const writeBuffer = 256 << 10

// encode writes the batch's rows as data files, one for each partition, unless it has files of the same fit.
func (b *batch) encode(ctx context.Context, f *fit) error {
	if b.fit != nil && b.fit.same(f) || b.b.Rows() == 0 {
		return nil
	}
	if b.fit != nil {
		b.w.log.Info("the table's columns or partitions have changed: the batch's files are written anew")
		b.removeFiles()
	}
	opts, err := b.w.parquetOptions(b.w.table.Properties())
	if err != nil {
		return err
	}
	locations, err := b.w.table.LocationProvider()
	if err != nil {
		return err
	}
	fsys, err := b.w.files(ctx)
	if err != nil {
		return err
	}
	if b.data == nil {
		b.data = &recorder{WriteFileIO: fsys}
	}
	rec := f.record(b.b.Record())
	groups, err := groupRows(b.b.Rows(), f.sources(rec))
	if err != nil {
		return err
	}
	files := make([]icebergo.DataFile, len(groups))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, part := range groups {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			name := locations.NewDataLocation(uuid.NewString() + ".parquet")
			files[i], err = writeFile(b.data, name, f, b.rowsOf(rec, f, part, len(groups)), part.values, opts)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.removeFiles()
		return err
	}
	b.adds, b.fit = files, f
	return nil
}

// rowsOf is the part of the batch that goes into one file.
func (b *batch) rowsOf(rec arrow.RecordBatch, f *fit, g *group, groups int) arrow.RecordBatch {
	if groups == 1 {
		return rec
	}
	s := b.b.Schema()
	all := make([]int, len(s.Fields))
	for i := range all {
		all[i] = i
	}
	return f.record(b.b.Gather(s, all, g.rows).Record())
}

// sources are the table's partition fields with the batch's columns.
func (f *fit) sources(rec arrow.RecordBatch) (out []source) {
	for _, field := range f.spec.Fields() {
		s := source{fieldID: field.FieldID, fn: field.Transform}
		if column, ok := f.schema.FindFieldByID(field.SourceIDs[0]); ok {
			s.typ = column.Type
			if i := rec.Schema().FieldIndices(column.Name); len(i) == 1 {
				s.array = rec.Column(i[0])
			}
		}
		out = append(out, s)
	}
	return out
}

// writeFile writes one data file and describes it. It is complete and durable when it returns.
func writeFile(fsys iceio.WriteFileIO, name string, f *fit, rec arrow.RecordBatch, partition map[int]any, opts parquetfile.Options) (icebergo.DataFile, error) {
	leaves := parquetfile.Measure(rec)
	size, err := writeParquet(fsys, name, rec, leaves, opts)
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", name, err)
	}
	b, err := icebergo.NewDataFileBuilder(f.spec, icebergo.EntryContentData, name, icebergo.ParquetFile, partition, nil, nil, rec.NumRows(), size)
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", name, err)
	}
	s := newFileStats(f.schema, leaves)
	return b.ValueCounts(s.values).NullValueCounts(s.nulls).LowerBoundValues(s.lower).UpperBoundValues(s.upper).SplitOffsets([]int64{4}).Build(), nil
}

func writeParquet(fsys iceio.WriteFileIO, name string, rec arrow.RecordBatch, leaves []parquetfile.Leaf, opts parquetfile.Options) (size int64, err error) {
	file, err := fsys.Create(name)
	if err != nil {
		return 0, err
	}
	count := &counter{w: file}
	buf := bufio.NewWriterSize(count, writeBuffer)
	if err = parquetfile.Write(buf, rec, leaves, opts); err == nil {
		err = buf.Flush()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	return count.n, err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// parquetOptions are the sink's, or what the table's property asks for.
func (w *writer) parquetOptions(properties icebergo.Properties) (parquetfile.Options, error) {
	if w.sink.opts.parquet.Codec != "" {
		return w.sink.opts.parquet, nil
	}
	opts, err := parquetfile.Options{Codec: properties[table.ParquetCompressionKey]}.Normalize()
	if err != nil {
		return opts, &sink.RefusedError{Table: w.sink.name, Reason: fmt.Sprintf("its property %s: %v", table.ParquetCompressionKey, err),
			Advice: "set the property to a codec that is known, or choose one with iceberg.Compression"}
	}
	return opts, nil
}

// files is the table's file system.
func (w *writer) files(ctx context.Context) (iceio.WriteFileIO, error) {
	fsys, err := w.table.FS(ctx)
	if err != nil {
		return nil, err
	}
	wfs, ok := fsys.(iceio.WriteFileIO)
	if !ok {
		return nil, fmt.Errorf("files at %s can't be written", w.table.Location())
	}
	return wfs, nil
}
