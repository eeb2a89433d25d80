package lake

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
)

// maxOvertaken bounds how often the groups of a commit are brought to a newer version that came in between. That takes a few requests, and a sink's
// commit takes more, so that seldom two races are lost in a row.
const maxOvertaken = 50

// storeTries is how often in a row a store may fail before the work of minutes is given up for it; the pauses between them double from storePause on.
const (
	storeTries = 4
	storePause = time.Second
)

// groupCommit is the commit of groups that are written.
type groupCommit struct {
	o       *optimizer
	p       *plan
	ready   []rewritten
	version int64  // of the table that the groups go with
	vectors string // file of their deletion vectors; "": none

	overtaken int
	behind    *delta.ConflictError // what was committed in between, and the groups don't go with yet
	half      bool                 // an error has left some groups with the newest version and others not
}

// land commits groups together. Rows that others have deleted meanwhile are deleted in the new files, too; groups that can't land are dropped. Where it
// is given up and nothing has landed, the new files go.
func (o *optimizer) land(ctx context.Context, p *plan, ready []rewritten) error {
	c := &groupCommit{o: o, p: p, ready: ready, version: p.version}
	for failed := 0; len(c.ready) > 0; {
		landed, err := c.try(ctx)
		switch {
		case landed:
			return nil
		case err == nil:
			failed = 0
			continue
		case ctx.Err() != nil || errors.As(err, new(*delta.UndecidedError)):
			return err
		}
		if failed++; failed == storeTries || isFinal(err) {
			c.drop(ctx, func(*rewritten) bool { return true })
			c.discard(ctx, c.vectors)
			return err
		}
		o.opts.Logger.Warn("a commit failed, nothing landed; trying again", "table", o.table.Store().String(), "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(storePause << (failed - 1)):
		}
	}
	c.discard(ctx, c.vectors)
	return nil
}

// isFinal reports whether a commit's error comes again however often it is tried.
func isFinal(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.As(err, new(*delta.FencedError)) || errors.As(err, new(*delta.UnsupportedError)) || errors.As(err, new(*delta.MetadataChangedError))
}

// try commits the groups, or brings them to a newer version if they were overtaken.
func (c *groupCommit) try(ctx context.Context) (landed bool, err error) {
	if c.behind != nil {
		return false, c.catchUp(ctx)
	}
	l, err := c.o.table.Commit(ctx, c.commit())
	var conflict *delta.ConflictError
	switch {
	case err == nil:
		c.o.landed(l, c.ready)
		return true, nil
	case errors.As(err, &conflict):
		c.behind = conflict
		return false, nil
	case errors.Is(err, errPlanAgain):
		c.drop(ctx, func(*rewritten) bool { return true })
		return false, nil
	}
	return false, err
}

// catchUp makes the groups go with the newest version, and drops those that can't.
func (c *groupCommit) catchUp(ctx context.Context) error {
	rebased := false
	if c.overtaken < maxOvertaken {
		var err error
		if rebased, err = c.rebase(ctx); err != nil {
			return err
		}
	}
	if !rebased {
		c.drop(ctx, func(r *rewritten) bool { return c.half || len(c.behind.Paths) == 0 || r.group.has(c.behind.Paths) })
	}
	c.overtaken++
	c.behind = nil
	return nil
}

func (g *fileGroup) has(paths []string) bool {
	return slices.ContainsFunc(g.files, func(a delta.Add) bool { return slices.Contains(paths, a.Path) })
}

// drop gives groups up: nothing of them has landed, so that their new files go, too.
func (c *groupCommit) drop(ctx context.Context, lost func(*rewritten) bool) {
	c.ready = slices.DeleteFunc(c.ready, func(r rewritten) bool {
		if !lost(&r) {
			return false
		}
		c.o.result.Conflicts++
		if r.add != nil {
			if name, err := r.add.Name(); err == nil {
				c.discard(ctx, name)
			}
		}
		return true
	})
}

// discard deletes an object that no commit has named, and none will. "" is none.
func (c *groupCommit) discard(ctx context.Context, name string) {
	if name == "" {
		return
	}
	if err := c.o.table.Store().Delete(ctx, name); err != nil {
		c.o.opts.Logger.Warn("can't delete a file that was not committed; Vacuum will", "table", c.o.table.Store().String(), "file", name, "error", err)
	}
}

func (c *groupCommit) commit() delta.Commit {
	o, p := c.o, c.p
	out := delta.Commit{ReadVersion: c.version, Rearrange: true, Operation: "OPTIMIZE",
		OperationParameters: map[string]string{"predicate": "[]", "zOrderBy": "[]", "auto": strconv.FormatBool(o.claim != nil)}}
	if o.opts.SortBy != "" {
		out.OperationParameters["sortBy"] = o.opts.SortBy
	}
	if o.claim != nil {
		out.Moves = []delta.Move{o.claim.renewal()}
	}
	var added int64
	for i := range c.ready {
		r := &c.ready[i]
		out.Remove = append(out.Remove, r.group.removes()...)
		if r.add != nil {
			out.Add = append(out.Add, *r.add)
			added += r.add.Size
		}
	}
	out.OperationMetrics = map[string]string{"numAddedBytes": strconv.FormatInt(added, 10)}
	out.Metadata = func(current *delta.Metadata) (*delta.Metadata, error) {
		if current != p.md && (!current.Schema.Equal(p.md.Schema) || !slices.Equal(current.PartitionColumns, p.md.PartitionColumns) ||
			current.ColumnMapping() != p.md.ColumnMapping()) {
			return nil, errPlanAgain
		}
		if !current.Flag(vectorsProperty, false) && slices.ContainsFunc(out.Add, func(a delta.Add) bool { return a.DeletionVector != nil }) {
			return nil, errPlanAgain
		}
		return current, nil
	}
	return out
}

func (o *optimizer) landed(l delta.Landed, ready []rewritten) {
	r := &o.result
	r.Version = l.Version
	r.Commits++
	for i := range ready {
		g := &ready[i]
		r.Done++
		r.FilesRemoved += len(g.group.files)
		r.BytesRemoved += g.group.size
		if r.Rows += g.rows; g.gone != nil {
			r.Rows -= int64(g.gone.GetCardinality())
		}
		if g.add != nil {
			r.FilesAdded++
			r.BytesAdded += g.add.Size
		}
	}
	if o.claim != nil {
		o.claim.landed()
	}
	o.opts.Progress(*r)
}
