package lake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/datafile"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/parquetfile"
	"github.com/tributary-io/tributary/lake/sink"
)

// codecProperty is the table property that names the codec of new data files.
const codecProperty = "delta.parquet.compression.codec"

// encode writes the batch's rows as data files, one for each combination of partition values, or more where one would pass the target size. At
// most as many as there are cores are open at the same time. It holds no lock of the table. A batch is encoded once: a call of Commit that is
// made again finds the files.
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
	adds := make([][]delta.Add, len(parts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range parts {
		g.Go(func() (err error) {
			var leaves []parquetfile.Leaf
			adds[i], leaves, err = b.w.writePart(ctx, md, parts[i].record(), opts, targetSize(md))
			for n := range adds[i] {
				adds[i][n].PartitionValues = physicalValues(md, parts[i].values)
			}
			if len(parts) == 1 && len(adds[i]) == 1 {
				b.distinct = distinctEstimates(md, leaves)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	b.adds, b.md, b.encoded = slices.Concat(adds...), md, true
	return nil
}

// physicalValues are partition values by the names that the log has for the columns.
func physicalValues(md *delta.Metadata, values map[string]*string) map[string]*string {
	if md.ColumnMapping() == delta.MappingNone {
		return values
	}
	out := make(map[string]*string, len(values))
	for name, v := range values {
		f, _ := md.Schema.Field(name)
		out[md.PhysicalName(f)] = v
	}
	return out
}

// asTable brings rows into the form of the table's files, where that isn't what the sink makes: other names (column mapping), wider types.
func asTable(md *delta.Metadata, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	if md.ColumnMapping() == delta.MappingNone && !md.HasWidened() {
		return rec, nil
	}
	l, err := datafile.NewLayout(md)
	if err != nil {
		return nil, err
	}
	return l.FromNames(rec)
}

// errColumnsMoved says that the table's columns have changed since the batch's files were written.
var errColumnsMoved = errors.New("the table's columns have changed since the files were written")

// fits is writer.fits for the batch's files.
func (b *batch) fits(current *delta.Metadata) (*delta.Metadata, error) {
	if b.columnsMoved(current) {
		return nil, errColumnsMoved
	}
	return b.w.fits(current)
}

// columnsMoved reports whether the batch's files may mean something else under other metadata than they were written for: under column mapping they
// hold names and ids, which that may give to other columns.
func (b *batch) columnsMoved(now *delta.Metadata) bool {
	if b.md == nil || b.md == now {
		return false
	}
	mapped := now.ColumnMapping() != delta.MappingNone || b.md.ColumnMapping() != delta.MappingNone
	return mapped && !now.Schema.Equal(b.md.Schema)
}

// distinctEstimates tells about how many different values the columns with statistics have.
func distinctEstimates(md *delta.Metadata, leaves []parquetfile.Leaf) map[string]int64 {
	out := map[string]int64{}
	for _, c := range delta.StatsColumns(md) {
		if l := findLeaf(leaves, c.Physical); l != nil && l.Distinct > 0 {
			out[strings.Join(c.Path, ".")] = l.Distinct
		}
	}
	return out
}

func (w *writer) parquetOptions(md *delta.Metadata) (opts parquetfile.Options, err error) {
	opts = w.sink.opts.parquet
	if opts.Codec == "" {
		opts.Codec = md.Configuration[codecProperty]
	}
	opts, err = opts.Normalize()
	if err != nil {
		return opts, &sink.RefusedError{Table: w.sink.place, Reason: fmt.Sprintf("its property %s: %v", codecProperty, err),
			Advice: "set the property to a codec that is known, or choose one with lake.Compression"}
	}
	return opts, nil
}

// writeFile writes rows as one file.
func (w *writer) writeFile(ctx context.Context, md *delta.Metadata, rec arrow.RecordBatch, opts parquetfile.Options) (delta.Add, error) {
	adds, _, err := w.writePart(ctx, md, rec, opts, math.MaxInt64)
	if err != nil {
		return delta.Add{}, err
	}
	return adds[0], nil
}

// writePart writes the rows of one partition, as one file unless that would pass the target size. It returns what was measured of the last one.
func (w *writer) writePart(ctx context.Context, md *delta.Metadata, rec arrow.RecordBatch, opts parquetfile.Options, target int64) (adds []delta.Add, leaves []parquetfile.Leaf, err error) {
	if rec, err = asTable(md, rec); err != nil {
		return nil, nil, err
	}
	groups := parquetfile.RowGroups(rec, opts)
	for len(groups) > 0 {
		f := fileWriter{ctx: ctx, store: w.table.Store(), md: md, opts: opts, now: w.env.Now}
		defer f.abort() // does nothing once the file is complete
		for len(groups) > 0 && f.size() < target {
			if err := f.write(groups[0]); err != nil {
				return nil, nil, err
			}
			groups = groups[1:]
		}
		var add *delta.Add
		if add, leaves, err = f.finish(); err != nil {
			return nil, nil, err
		}
		adds = append(adds, *add)
	}
	return adds, leaves, nil
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
