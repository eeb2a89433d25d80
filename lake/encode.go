package lake

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/parquetfile"
	"github.com/tributary-io/tributary/lake/sink"
)

// codecProperty is the table property that names the codec of new data files.
const codecProperty = "delta.parquet.compression.codec"

// writeBuffer is how much of a file is gathered before it is handed to the store.
const writeBuffer = 256 << 10

// encode writes the batch's rows as data files, one for each combination of partition values. It holds no lock of the table. A
// batch is encoded once: a call of Commit that is made again finds the files.
func (b *batch) encode(ctx context.Context) error {
	if b.encoded || b.b.Rows() == 0 {
		b.encoded = true
		return nil
	}
	md := b.w.table.Head().Metadata
	opts, err := b.w.parquetOptions(md)
	if err != nil {
		return err
	}
	parts, err := b.split()
	if err != nil {
		return err
	}
	adds := make([]delta.Add, len(parts))
	leaves := make([][]parquetfile.Leaf, len(parts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range parts {
		g.Go(func() (err error) {
			rec := parts[i].record()
			leaves[i] = parquetfile.Measure(rec)
			adds[i], err = b.w.writeFile(ctx, md, rec, leaves[i], opts)
			adds[i].PartitionValues = parts[i].values
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	b.adds, b.encoded = adds, true
	if len(leaves) == 1 {
		b.distinct = distinctEstimates(md, leaves[0])
	}
	return nil
}

// distinctEstimates tells about how many different values the columns with statistics have.
func distinctEstimates(md *delta.Metadata, leaves []parquetfile.Leaf) map[string]int64 {
	out := map[string]int64{}
	for _, c := range delta.StatsColumns(md) {
		if l := findLeaf(leaves, c.Path); l != nil && l.Distinct > 0 {
			out[strings.Join(c.Path, ".")] = l.Distinct
		}
	}
	return out
}

func (w *writer) parquetOptions(md *delta.Metadata) (parquetfile.Options, error) {
	if w.sink.opts.parquet.Codec != "" {
		return w.sink.opts.parquet, nil
	}
	opts, err := parquetfile.Options{Codec: md.Configuration[codecProperty]}.Normalize()
	if err != nil {
		return opts, &sink.RefusedError{Table: w.sink.place, Reason: fmt.Sprintf("its property %s: %v", codecProperty, err),
			Advice: "set the property to a codec that is known, or choose one with lake.Compression"}
	}
	return opts, nil
}

// writeFile writes one data file. It is complete, but not yet durable: the table's commit syncs all files together.
func (w *writer) writeFile(ctx context.Context, md *delta.Metadata, rec arrow.RecordBatch, leaves []parquetfile.Leaf, opts parquetfile.Options) (add delta.Add, err error) {
	name := delta.NewDataFileName(opts.Codec)
	obj, err := w.table.Store().Create(ctx, name)
	if err != nil {
		return add, err
	}
	defer obj.Abort() // does nothing once the object is closed
	count := &counter{w: obj}
	buf := bufio.NewWriterSize(count, writeBuffer)
	if err = parquetfile.Write(buf, rec, leaves, opts); err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = obj.Close()
	}
	if err != nil {
		return add, fmt.Errorf("data file %s: %w", name, err)
	}
	return delta.Add{Path: delta.EncodePath(name), Size: count.n, ModificationTime: w.env.Now().UnixMilli(), DataChange: true,
		Stats: fileStats(md, rec.NumRows(), leaves)}, nil
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

// filePart is the rows of a batch that go into one file.
type filePart struct {
	values map[string]*string // of the partition columns
	record func() arrow.RecordBatch
}

// split divides the batch by partition values.
func (b *batch) split() ([]filePart, error) {
	l := b.w.sink.layout
	if len(l.partitions) == 0 {
		return []filePart{{values: map[string]*string{}, record: b.b.Record}}, nil
	}
	rec := b.b.Record()
	groups, order, err := groupRows(rec, l)
	if err != nil {
		return nil, err
	}
	inFile := &columns.Schema{}
	for _, i := range l.rest {
		inFile.Fields = append(inFile.Fields, l.Schema.Fields[i])
	}
	var out []filePart
	for _, key := range order {
		g := groups[key]
		out = append(out, filePart{values: g.values, record: func() arrow.RecordBatch { return b.b.Gather(inFile, l.rest, g.rows).Record() }})
	}
	return out, nil
}
