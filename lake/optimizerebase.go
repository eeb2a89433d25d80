package lake

import (
	"context"
	"errors"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

// A compaction that takes longer than the time between two commits of a sink of current state finds its files with other deletion vectors than those
// that it has read, each time. So it brings over what it has missed: copied rows that are gone in the newest version get a deletion vector of the new
// file. Nobody's rules are bent by that. The commit removes files only as the newest version has them, with the vectors of that version; the rows
// that the table has are the same before it and after it; and a writer that is overtaken finds its files removed, as by any compaction.

// vectorsProperty is the table property that allows to write deletion vectors.
const vectorsProperty = "delta.enableDeletionVectors"

// copied is a file of a group as its rows were copied.
type copied struct {
	add  delta.Add       // as it was chosen, and then as the version has it that the group goes with
	rows uint32          // in the file
	gone *roaring.Bitmap // rows that weren't copied, by their places in the file
	lost bool            // the version doesn't have the file any more: others have written its rows anew, or deleted them
}

// kept is the number of rows that were copied.
func (c *copied) kept() uint32 { return c.rows - uint32(c.gone.GetCardinality()) }

// number counts the copied rows of all files.
func (g *fileGroup) number() (rows uint32) {
	for i := range g.copied {
		rows += g.copied[i].kept()
	}
	return rows
}

// removes lists the files that the group's commit takes out of the table.
func (g *fileGroup) removes() (out []delta.Add) {
	for i := range g.copied {
		if !g.copied[i].lost {
			out = append(out, g.copied[i].add)
		}
	}
	return out
}

// missed calls fn with each row that was copied and is gone by now, by its number among the file's copied ones. It returns false if one that wasn't
// copied has come back.
func (c *copied) missed(now *roaring.Bitmap, fn func(row uint32)) bool {
	if !roaring.AndNot(c.gone, now).IsEmpty() {
		return false
	}
	before, passed := c.gone.Iterator(), uint32(0)
	for it := roaring.AndNot(now, c.gone).Iterator(); it.HasNext(); {
		row := it.Next()
		for before.HasNext() && before.PeekNext() < row {
			before.Next()
			passed++
		}
		fn(row - passed)
	}
	return true
}

// rebase makes the groups go with the newest version. Those that can't are dropped. ok=false says that nothing can be told of any. After an error it has to
// be called again before a commit.
func (c *groupCommit) rebase(ctx context.Context) (ok bool, err error) {
	table := c.o.table
	head, err := table.Refresh(ctx)
	// Where the plan's version had no deletion vectors nobody has noted to which places sorted rows have gone.
	if err != nil || !c.p.md.Flag(vectorsProperty, false) || !head.Metadata.Flag(vectorsProperty, false) {
		return false, err
	}
	live := map[string]delta.Add{}
	for i := range c.ready {
		for _, a := range c.ready[i].group.removes() {
			name, err := a.Name()
			if err != nil {
				return false, err
			}
			live[name] = a
		}
	}
	switch err := table.Changes(ctx, c.version, head.Version, func(f delta.FileChanges) error { return follow(live, &f) }); {
	case errors.Is(err, object.ErrNotFound): // the log has been cleaned up to there
		return false, nil
	case err != nil:
		return false, err
	}
	c.half = true
	still := make([]bool, len(c.ready))
	groups, inner := errgroup.WithContext(ctx)
	groups.SetLimit(maxParallel)
	for i := range c.ready {
		groups.Go(func() (err error) {
			still[i], err = c.ready[i].rebase(inner, table.Store(), live)
			return err
		})
	}
	if err := groups.Wait(); err != nil {
		return false, err
	}
	n := -1
	c.drop(ctx, func(*rewritten) bool { n++; return !still[n] })
	c.version = head.Version
	if err := c.writeVectors(ctx); err != nil {
		return false, err
	}
	c.half = false
	return true, nil
}

// rebase finds the rows of the new file that the table doesn't have any more, given its live files. ok=false says that the group can't land, or
// isn't worth it: most of its rows have gone, and it makes no fewer files.
func (r *rewritten) rebase(ctx context.Context, store object.Store, live map[string]delta.Add) (ok bool, err error) {
	gone, base := roaring.New(), uint32(0)
	add := func(row uint32) {
		if row += base; r.group.place != nil {
			row = r.group.place[row]
		}
		gone.Add(row)
	}
	for i := range r.group.copied {
		c := &r.group.copied[i]
		name, err := c.add.Name()
		if err != nil {
			return false, err
		}
		now, there := live[name]
		if c.lost = c.lost || !there; c.lost {
			for row := range c.kept() {
				add(row)
			}
		} else if ok, err := c.catchUp(ctx, store, now, add); err != nil || !ok {
			return false, err
		}
		base += c.kept()
	}
	r.gone = gone
	removes := len(r.group.removes())
	return removes > 1 || removes == 1 && gone.GetCardinality() <= uint64(base)/2, nil
}

// catchUp takes a file over as a version has it, and calls fn with the copied rows that are gone there.
func (c *copied) catchUp(ctx context.Context, store object.Store, now delta.Add, fn func(row uint32)) (ok bool, err error) {
	vector, err := delta.DeletedRows(ctx, store, now.DeletionVector)
	if errors.Is(err, object.ErrNotFound) { // the table has gone on, and was vacuumed
		return false, nil
	}
	if err != nil || !c.missed(vector, fn) {
		return false, err
	}
	c.add = now
	return true, nil
}

// writeVectors gives the new files their deletion vectors.
func (c *groupCommit) writeVectors(ctx context.Context) error {
	c.discard(ctx, c.vectors)
	c.vectors = ""
	var files []*rewritten
	var sets []*roaring.Bitmap
	for i := range c.ready {
		r := &c.ready[i]
		if r.add == nil {
			continue
		}
		if r.add.DeletionVector = nil; !r.gone.IsEmpty() {
			files, sets = append(files, r), append(sets, r.gone)
		}
	}
	if len(files) == 0 {
		return nil
	}
	store := c.o.table.Store()
	vectors, name, err := delta.WriteDeletionVectors(ctx, store, sets)
	if c.vectors = name; err == nil && name != "" {
		err = store.Sync(ctx, name)
	}
	if err != nil {
		return err
	}
	for i, r := range files {
		r.add.DeletionVector, r.add.Stats = vectors[i], r.add.LooseStats(r.rows)
	}
	return nil
}
