package lake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/datafile"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/parquetfile"
)

const (
	rewriteBatch = 32 << 10 // rows decoded at once
	// A commit is made when so much has been written since the last one, so that little is lost when the process is killed, and when so much time
	// has passed.
	commitBytes = 1 << 30
	commitAfter = time.Minute
)

// rewritten is a group that has become a file.
type rewritten struct {
	group *fileGroup
	add   *delta.Add // nil: all rows were deleted
	rows  int64
	gone  *roaring.Bitmap // rows that the file has and the table doesn't any more; nil: none
	err   error
}

// rewrite writes and commits all groups of a plan. Groups that other writers were faster with are counted as conflicts.
func (o *optimizer) rewrite(ctx context.Context, p *plan) error {
	ctx, cancel := context.WithCancel(ctx)
	todo, done := make(chan *fileGroup), make(chan rewritten)
	var workers errgroup.Group
	workers.Go(func() error {
		defer close(todo)
		for _, g := range p.groups {
			select {
			case todo <- g:
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	for range o.opts.Parallel {
		workers.Go(func() error {
			for g := range todo {
				r := o.writeGroup(ctx, p, g)
				select {
				case done <- r:
				case <-ctx.Done():
					return nil
				}
			}
			return nil
		})
	}
	go func() {
		_ = workers.Wait() // its functions return no errors
		close(done)
	}()
	err := o.commitAll(ctx, p, done)
	cancel()
	for range done { // until the workers have ended
	}
	return err
}

// commitAll commits what the workers have written, several groups at once.
func (o *optimizer) commitAll(ctx context.Context, p *plan, done <-chan rewritten) error {
	var ready []rewritten
	var size int64
	last := o.opts.Now()
	for r := range done {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(r.err, object.ErrNotFound): // removed and vacuumed meanwhile, or damage; a new plan tells
			o.result.Conflicts++
			continue
		case r.err != nil:
			o.leave(r.group, r.err.Error())
			continue
		}
		ready = append(ready, r)
		size += r.group.size
		if now := o.opts.Now(); size >= commitBytes || now.Sub(last) >= commitAfter {
			if err := o.land(ctx, p, ready); err != nil {
				return err
			}
			ready, size, last = nil, 0, now
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return o.land(ctx, p, ready)
}

// writeGroup writes a group's rows into one file.
func (o *optimizer) writeGroup(ctx context.Context, p *plan, g *fileGroup) rewritten {
	opts, err := parquetfile.Options{Codec: p.md.Configuration[codecProperty]}.Normalize()
	if err != nil {
		return rewritten{group: g, err: fmt.Errorf("the table's property %s: %w", codecProperty, err)}
	}
	w := fileWriter{ctx: ctx, store: o.table.Store(), md: p.md, opts: opts, now: o.opts.Now}
	defer w.abort()
	if err := p.copyGroup(&w, g); err != nil {
		return rewritten{group: g, err: err}
	}
	add, _, err := w.finish()
	if err != nil || add == nil {
		return rewritten{group: g, err: err}
	}
	add.PartitionValues = g.values
	if p.sortBy >= 0 {
		add.Tags = map[string]string{sortedTag: o.opts.SortBy}
	}
	if n := int64(g.number()); n != w.file.Rows() {
		return rewritten{group: g, err: fmt.Errorf("%d rows were read, and %d written", n, w.file.Rows())}
	}
	return rewritten{group: g, add: add, rows: w.file.Rows()}
}

// copyGroup writes the rows of a group's files, one file after the other, or, if they are to be sorted, all of them together.
func (p *plan) copyGroup(w *fileWriter, g *fileGroup) error {
	take, all := w.write, []arrow.RecordBatch{}
	if p.sortBy >= 0 {
		take = func(rec arrow.RecordBatch) error {
			rec.Retain()
			all = append(all, rec)
			return nil
		}
	}
	if err := p.eachBatch(w.ctx, w.store, g, take); err != nil {
		return err
	}
	if len(all) == 0 {
		return nil
	}
	rec, err := parquetfile.Join(all)
	var order *array.Uint64
	if err == nil {
		rec, order, err = sortRows(w.ctx, rec, p.sortBy)
	}
	if err != nil {
		return err
	}
	if p.md.Flag(vectorsProperty, false) {
		g.place = make([]uint32, order.Len())
		for i, n := range order.Uint64Values() {
			g.place[n] = uint32(i)
		}
	}
	for _, part := range parquetfile.RowGroups(rec, w.opts) {
		if err := w.write(part); err != nil {
			return err
		}
	}
	return nil
}

const (
	// Small files are read ahead, so that the ones are decoded while the others are encoded.
	readAhead     = 4
	readAheadSize = 4 << 20 // of a file in the store, at the most
)

// eachBatch calls take with the rows of a group's files, in order.
func (p *plan) eachBatch(ctx context.Context, store object.Store, g *fileGroup, take func(arrow.RecordBatch) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var readers errgroup.Group
	readers.SetLimit(readAhead)
	defer func() {
		cancel()
		_ = readers.Wait() // its functions return no errors
	}()
	ahead := make([]chan readFileResult, len(g.files))
	g.copied = make([]copied, len(g.files))
	next := 0 // file to be read ahead
	for i := range g.files {
		for next = max(next, i); next < len(g.files) && next < i+readAhead && g.files[next].Size <= readAheadSize; next++ {
			a, c, out := &g.files[next], &g.copied[next], make(chan readFileResult, 1)
			ahead[next] = out
			readers.Go(func() error {
				var r readFileResult
				r.err = p.readFile(ctx, store, a, c, func(rec arrow.RecordBatch) error {
					rec.Retain()
					r.batches = append(r.batches, rec)
					return nil
				})
				out <- r
				return nil
			})
		}
		if ahead[i] == nil {
			if err := p.readFile(ctx, store, &g.files[i], &g.copied[i], take); err != nil {
				return err
			}
			continue
		}
		r := <-ahead[i]
		ahead[i] = nil
		for _, rec := range r.batches {
			if err := take(rec); err != nil {
				return err
			}
		}
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// readFileResult is a file that was read ahead.
type readFileResult struct {
	batches []arrow.RecordBatch
	err     error
}

func (p *plan) readFile(ctx context.Context, store object.Store, a *delta.Add, c *copied, take func(arrow.RecordBatch) error) error {
	f, err := datafile.Open(ctx, store, p.layout, a)
	if err != nil {
		return err
	}
	defer f.Close()
	*c = copied{add: *a, rows: uint32(f.Rows()), gone: f.Deleted()}
	for rec, err := range f.Batches(ctx, rewriteBatch) {
		if err == nil {
			err = take(rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sortColumn finds the column to sort by.
func sortColumn(l *datafile.Layout, name string) (int, error) {
	i := l.Index(name)
	if i < 0 {
		return 0, fmt.Errorf("can't sort by %s: files have no such column", name)
	}
	switch t := l.Arrow().Field(i).Type; t.ID() {
	case arrow.STRUCT, arrow.LIST, arrow.MAP:
		return 0, fmt.Errorf("can't sort by %s of type %s", name, t)
	}
	return i, nil
}

// sortRows sorts by a column, stably, nulls last. order has the rows' numbers before.
func sortRows(ctx context.Context, rec arrow.RecordBatch, column int) (sorted arrow.RecordBatch, order *array.Uint64, err error) {
	indices, err := compute.SortIndicesArray(ctx, rec.Column(column), compute.DefaultSortKey())
	if err != nil {
		return nil, nil, fmt.Errorf("sort by %s: %w", rec.Schema().Field(column).Name, err)
	}
	columns := make([]arrow.Array, rec.NumCols())
	for i := range columns {
		if columns[i], err = compute.TakeArray(ctx, rec.Column(i), indices); err != nil {
			return nil, nil, fmt.Errorf("sort by %s: %w", rec.Schema().Field(column).Name, err)
		}
	}
	return array.NewRecordBatch(rec.Schema(), columns, rec.NumRows()), indices.(*array.Uint64), nil
}
