package lake

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/datafile"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/parquetfile"
)

// stateWrite is a plan with the files that it needs, written and not yet committed.
type stateWrite struct {
	plan      *statePlan
	adds      []delta.Add
	removes   []delta.Add
	files     []*stateFile // that are in the table once this has landed, new or with another deletion vector
	dropped   []string     // names of files that aren't any more
	slotOf    map[int32]uint32
	rowOf     map[int32]uint32
	next      uint32     // number for the next slot
	deletions *deletions // that then count; nil: those that did before
	sync      []string   // objects beside the data files that must be durable before the commit
}

// output is one file to be written: what is left of some files, and rows of the batch.
type output struct {
	values  map[string]*string // of the partition columns, by the names that the log has for them
	sources []*stateFile
	size    int64   // of the sources
	rows    []int32 // of the batch
}

// write makes the files of a plan: by deletion vectors where the table has them, else by writing the files anew without the rows that go.
func (w *writer) write(ctx context.Context, b *batch, p *statePlan) (*stateWrite, error) {
	md := w.table.Head().Metadata
	out := &stateWrite{plan: p, next: w.index.next, slotOf: map[int32]uint32{}, rowOf: map[int32]uint32{}}
	if b.columnsMoved(md) {
		b.written = nil
	}
	b.md = md
	outputs, err := b.outputs(md, p)
	if err != nil {
		return nil, err
	}
	if md.Flag(vectorsProperty, false) {
		err = w.writeVectors(ctx, p, out)
	} else {
		outputs, err = w.gatherSources(md, p, outputs, out)
	}
	if err != nil {
		return nil, err
	}
	opts, err := w.parquetOptions(md)
	if err != nil {
		return nil, err
	}
	for _, o := range outputs {
		f, err := w.writeOutput(ctx, b, md, p, &o, out, opts)
		if err != nil {
			return nil, err
		}
		if f != nil {
			out.adds, out.files = append(out.adds, f.add), append(out.files, f)
		}
	}
	if len(p.deletions) > 0 {
		if out.deletions, err = w.index.writeDeletions(ctx, p.deletions); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// outputs divides the batch's rows by partition values.
func (b *batch) outputs(md *delta.Metadata, p *statePlan) (out []output, err error) {
	l := b.w.sink.layout
	if len(p.put) == 0 {
		return nil, nil
	}
	slices.Sort(p.put)
	if len(l.partitions) == 0 {
		return []output{{values: map[string]*string{}, rows: p.put}}, nil
	}
	groups, order, err := groupRows(b.b.Record(), l)
	if err != nil {
		return nil, err
	}
	for _, key := range order {
		rows := slices.DeleteFunc(groups[key].rows, func(r int32) bool { _, ok := slices.BinarySearch(p.put, r); return !ok })
		if len(rows) > 0 {
			out = append(out, output{values: physicalValues(md, groups[key].values), rows: rows})
		}
	}
	return out, nil
}

// gatherSources adds the files that lose rows to the outputs: large ones each to an output of its own, small ones together.
func (w *writer) gatherSources(md *delta.Metadata, p *statePlan, outputs []output, out *stateWrite) ([]output, error) {
	target := targetSize(md)
	for _, f := range slices.SortedFunc(maps.Keys(p.gone), func(a, b *stateFile) int { return compareNames(a.name, b.name) }) {
		out.removes, out.dropped = append(out.removes, f.add), append(out.dropped, f.name)
		i := slices.IndexFunc(outputs, func(o output) bool {
			return samePartition(o.values, f.add.PartitionValues) && o.size+f.add.Size <= target
		})
		if i < 0 || f.add.Size > target/2 {
			outputs = append(outputs, output{values: f.add.PartitionValues, sources: []*stateFile{f}, size: f.add.Size})
			continue
		}
		outputs[i].sources = append(outputs[i].sources, f)
		outputs[i].size += f.add.Size
	}
	return outputs, nil
}

func compareNames(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func samePartition(a, b map[string]*string) bool {
	return maps.EqualFunc(a, b, func(x, y *string) bool { return x == y || x != nil && y != nil && *x == *y })
}

// writeOutput writes one file; nil if nothing is left for it.
func (w *writer) writeOutput(ctx context.Context, b *batch, md *delta.Metadata, p *statePlan, o *output, out *stateWrite, opts parquetfile.Options) (*stateFile, error) {
	f := &stateFile{gone: roaring.New()}
	if len(o.sources) == 0 {
		add, err := w.writeRows(ctx, b, md, o, opts)
		if err != nil {
			return nil, err
		}
		f.add = add
	} else if err := w.writeSources(ctx, b, md, p, o, f, opts); err != nil {
		return nil, err
	}
	if f.add.Path == "" {
		return nil, nil
	}
	if len(o.rows) > 0 {
		s := &slot{out.next, f, f.rows, roaring.New()}
		out.next++
		f.slots = append(f.slots, s)
		for i, r := range o.rows {
			out.slotOf[r], out.rowOf[r] = s.id, uint32(i)
		}
		f.rows += uint32(len(o.rows))
	}
	var err error
	f.name, err = f.add.Name()
	return f, err
}

// written is a file of rows of a batch alone. It is found again after a lost race, if the same rows are still to be written.
type written struct {
	rows []int32
	add  delta.Add
}

// writeRows writes a file of rows of the batch alone.
func (w *writer) writeRows(ctx context.Context, b *batch, md *delta.Metadata, o *output, opts parquetfile.Options) (delta.Add, error) {
	for _, done := range b.written {
		if slices.Equal(done.rows, o.rows) {
			return done.add, nil
		}
	}
	add, err := w.writeFile(ctx, md, b.gather(o.rows), opts)
	add.PartitionValues = o.values
	if err == nil {
		b.written = append(b.written, written{o.rows, add})
	}
	return add, err
}

// gather returns rows of the batch, without the partition columns.
func (b *batch) gather(rows []int32) arrow.RecordBatch {
	l := b.w.sink.layout
	inFile := &columns.Schema{}
	for _, i := range l.rest {
		inFile.Fields = append(inFile.Fields, l.Schema.Fields[i])
	}
	return b.b.Gather(inFile, l.rest, rows).Record()
}

// writeSources writes what is left of some files, and then rows of the batch, as one file. f gets the slots of the files.
func (w *writer) writeSources(ctx context.Context, b *batch, md *delta.Metadata, p *statePlan, o *output, f *stateFile, opts parquetfile.Options) (err error) {
	layout, err := datafile.NewLayout(md)
	if err != nil {
		return err
	}
	out := &fileWriter{ctx: ctx, store: w.table.Store(), md: md, opts: opts, now: w.env.Now}
	defer out.abort() // does nothing once the file is complete
	for _, src := range o.sources {
		drop := src.gone
		if more := p.gone[src]; more != nil {
			drop = roaring.Or(drop, more)
		}
		if err := w.copyRows(ctx, layout, src, drop, out); err != nil {
			return err
		}
		f.takeSlots(src, drop)
	}
	if len(o.rows) > 0 {
		rec, err := layout.FromNames(b.gather(o.rows))
		if err == nil {
			err = out.write(rec)
		}
		if err != nil {
			return err
		}
	}
	add, _, err := out.finish()
	if err != nil || add == nil {
		return err
	}
	f.add = *add
	f.add.PartitionValues = o.values
	return nil
}

// copyRows writes the rows of a file but for some.
func (w *writer) copyRows(ctx context.Context, layout *datafile.Layout, src *stateFile, drop *roaring.Bitmap, out *fileWriter) error {
	in, err := datafile.Open(ctx, w.table.Store(), layout, &src.add)
	if err != nil {
		return err
	}
	defer in.Close()
	src.rows = uint32(in.Rows())
	var row uint32
	for rec, err := range in.AllBatches(ctx, rewriteBatch) {
		if err != nil {
			return err
		}
		n := uint32(rec.NumRows())
		left, err := without(ctx, rec, drop, row)
		if err != nil {
			return fmt.Errorf("data file %s: %w", src.name, err)
		}
		row += n
		if left.NumRows() == 0 {
			continue
		}
		if err := out.write(left); err != nil {
			return err
		}
	}
	return nil
}

// without leaves out rows of a batch, whose first row has a number.
func without(ctx context.Context, rec arrow.RecordBatch, drop *roaring.Bitmap, first uint32) (arrow.RecordBatch, error) {
	n := uint32(rec.NumRows())
	if drop.CardinalityInRange(uint64(first), uint64(first+n)) == 0 {
		return rec, nil
	}
	keep := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer keep.Release()
	keep.Reserve(int(n))
	for i := range n {
		keep.Append(!drop.Contains(first + i))
	}
	mask := keep.NewArray()
	defer mask.Release()
	return compute.FilterRecordBatch(ctx, rec, mask, compute.DefaultFilterOptions())
}

// takeSlots moves the slots of a file behind the rows that f has already.
func (f *stateFile) takeSlots(src *stateFile, drop *roaring.Bitmap) {
	slices.SortFunc(src.slots, func(a, b *slot) int { return int(int64(a.base) - int64(b.base)) })
	for i, s := range src.slots {
		end := src.rows
		if i+1 < len(src.slots) {
			end = src.slots[i+1].base
		}
		inside := drop.Clone()
		inside.RemoveRange(0, uint64(s.base))
		inside.RemoveRange(uint64(end), 1<<32)
		f.slots = append(f.slots, &slot{s.id, f, f.rows, s.withHoles(inside)})
		f.rows += end - s.base - uint32(inside.GetCardinality())
	}
}

// withHoles returns the slot's holes together with rows that are given by their places in the file.
func (s *slot) withHoles(places *roaring.Bitmap) *roaring.Bitmap {
	out := s.holes.Clone()
	holes := s.holes.Iterator()
	passed := uint32(0) // holes in front of the row
	for it := places.Iterator(); it.HasNext(); {
		row := it.Next() - s.base
		for holes.HasNext() && holes.PeekNext() <= row+passed {
			holes.Next()
			passed++
		}
		out.Add(row + passed)
	}
	out.RunOptimize()
	return out
}

// writeVectors gives the files that lose rows new deletion vectors. A file that has lost all of them leaves the table.
func (w *writer) writeVectors(ctx context.Context, p *statePlan, out *stateWrite) error {
	var files []*stateFile
	var sets []*roaring.Bitmap
	for _, f := range slices.SortedFunc(maps.Keys(p.gone), func(a, b *stateFile) int { return compareNames(a.name, b.name) }) {
		out.removes = append(out.removes, f.add)
		gone := roaring.Or(f.gone, p.gone[f])
		if n, ok := f.add.NumRecords(); ok && uint64(n) == gone.GetCardinality() {
			out.dropped = append(out.dropped, f.name)
			continue
		}
		files, sets = append(files, &stateFile{name: f.name, add: f.add, rows: f.rows, gone: gone, slots: f.slots}), append(sets, gone)
	}
	if len(sets) == 0 {
		return nil
	}
	vectors, name, err := delta.WriteDeletionVectors(ctx, w.table.Store(), sets)
	if err != nil {
		return err
	}
	if name != "" {
		out.sync = append(out.sync, name)
	}
	for i, f := range files {
		f.add.DeletionVector, f.add.Stats = vectors[i], f.add.LooseStats(int64(f.rows))
		for n, s := range f.slots {
			if n == 0 {
				f.slots = slices.Clone(f.slots)
			}
			f.slots[n] = &slot{s.id, f, s.base, s.holes}
		}
		out.adds, out.files = append(out.adds, f.add), append(out.files, f)
	}
	return nil
}
