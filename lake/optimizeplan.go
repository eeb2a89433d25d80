package lake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tributary-io/tributary/lake/datafile"
	"github.com/tributary-io/tributary/lake/delta"
)

// sortedTag is the tag of an add action that says by which column the file's rows are sorted.
const sortedTag = "tributary.sortedBy"

// plan is what is to be compacted of one version of a table.
type plan struct {
	version int64
	md      *delta.Metadata
	layout  *datafile.Layout
	sortBy  int // place of the column in the layout; -1: none
	groups  []*fileGroup
}

// fileGroup is the files that become one.
type fileGroup struct {
	values map[string]*string // of the partition
	files  []delta.Add
	size   int64

	copied []copied // the files, once their rows were read
	place  []uint32 // of each row in the new file, by its number among the copied ones; nil: the same
}

// plan chooses groups of files of the newest version.
func (o *optimizer) plan(ctx context.Context) (*plan, error) {
	snap, err := o.table.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	md := snap.Head.Metadata
	p := &plan{version: snap.Head.Version, md: md, sortBy: -1}
	o.result.Version = p.version
	if p.layout, err = datafile.NewLayout(md); err != nil {
		return nil, fmt.Errorf("table %s: %w", o.table.Store(), err)
	}
	if o.opts.SortBy != "" {
		if p.sortBy, err = sortColumn(p.layout, o.opts.SortBy); err != nil {
			return nil, fmt.Errorf("table %s: %w", o.table.Store(), err)
		}
	}
	where, err := compileConditions(md, o.opts.Where)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", o.table.Store(), err)
	}
	target := o.target(md)
	parts := map[string][]delta.Add{}
	for add, err := range snap.Files(ctx) {
		if err != nil {
			return nil, err
		}
		if where.holds(&add) && o.wants(&add, target) {
			key := partitionKey(&add)
			parts[key] = append(parts[key], add)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		p.groups = append(p.groups, o.pack(parts[key], target)...)
	}
	return p, nil
}

func (o *optimizer) target(md *delta.Metadata) int64 {
	if o.opts.TargetSize > 0 {
		return o.opts.TargetSize
	}
	return targetSize(md)
}

// wants reports whether a file is a candidate: too small, with deleted rows, or not sorted as asked for.
func (o *optimizer) wants(a *delta.Add, target int64) bool {
	return a.Size < target/4*3 || a.DeletionVector != nil || o.unsorted(a)
}

func (o *optimizer) unsorted(a *delta.Add) bool {
	return o.opts.SortBy != "" && a.Tags[sortedTag] != o.opts.SortBy
}

func partitionKey(a *delta.Add) string {
	var key []byte
	for _, name := range slices.Sorted(maps.Keys(a.PartitionValues)) {
		key = appendKey(append(key, name...), a.PartitionValues[name])
	}
	return string(key)
}

// pack fills groups with the files of one partition, oldest first, up to the target, and returns those that are worth it.
func (o *optimizer) pack(files []delta.Add, target int64) (out []*fileGroup) {
	slices.SortFunc(files, func(a, b delta.Add) int {
		return cmp.Or(cmp.Compare(a.ModificationTime, b.ModificationTime), cmp.Compare(a.Path, b.Path))
	})
	g := &fileGroup{}
	end := func() {
		if o.worthwhile(g, target) {
			out = append(out, g)
		}
	}
	for _, a := range files {
		if g.size > 0 && g.size+a.Size > target {
			end()
			g = &fileGroup{}
		}
		g.values = a.PartitionValues
		g.files = append(g.files, a)
		g.size += a.Size
	}
	end()
	return out
}

// worthwhile reports whether a group shall be written: it becomes a whole file, or one half as large again as its largest; or its files are
// not sorted, or many of their rows are deleted.
func (o *optimizer) worthwhile(g *fileGroup, target int64) bool {
	var largest int64
	for i := range g.files {
		a := &g.files[i]
		largest = max(largest, a.Size)
		rows, known := a.NumRecords()
		if o.unsorted(a) || a.DeletionVector != nil && (!known || a.DeletionVector.Cardinality*10 >= rows) {
			return true
		}
	}
	return len(g.files) > 1 && (g.size >= target/4*3 || g.size >= largest/2*3)
}
