package iceberg

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	icebergo "github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/parquetfile"
	"github.com/tributary-io/tributary/lake/sink"
)

// encode writes the batch's rows as data files, one for each partition, or more where one would pass the target size, unless it has files of the same
// fit.
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
	target := int64(b.w.table.Properties().GetInt(table.WriteTargetFileSizeBytesKey, table.WriteTargetFileSizeBytesDefault))
	newName := func() string { return locations.NewDataLocation(uuid.NewString() + ".parquet") }
	files := make([][]icebergo.DataFile, len(groups))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, part := range groups {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			files[i], err = writePart(b.data, newName, f, b.rowsOf(rec, f, part, len(groups)), part.values, opts, target)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.removeFiles()
		return err
	}
	b.adds, b.fit = slices.Concat(files...), f
	return nil
}

// rowsOf is the part of the batch that goes into one partition.
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
