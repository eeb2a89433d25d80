package delta

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/object"
)

// loadAttempts bounds how often a load starts over because another process cleaned the log under it, or committed while it was listed.
const loadAttempts = 3

// load finds the newest version from scratch: hint, one listing, the newest usable base, the commits after it.
func (t *Table) load(ctx context.Context) (*Head, error) {
	var err error
	for range loadAttempts {
		var head *Head
		if head, err = t.loadOnce(ctx); err == nil || !errors.Is(err, object.ErrNotFound) && !errors.Is(err, errGap) {
			return head, err
		}
	}
	return nil, err
}

func (t *Table) loadOnce(ctx context.Context) (*Head, error) {
	hint := t.readLastCheckpoint(ctx)
	listing, err := listLog(ctx, t.store, max(hint, 0))
	if err != nil {
		return nil, t.wrap(err)
	}
	if hint > 0 && len(listing.checkpoints) == 0 {
		// The pointer is ahead of the log, or what it points to is gone.
		t.opts.Logger.Warn("_last_checkpoint points to nothing; listing the whole log", "table", t.store.String(), "version", hint)
		hint = 0
		if listing, err = listLog(ctx, t.store, 0); err != nil {
			return nil, t.wrap(err)
		}
	}
	head, err := t.loadFrom(ctx, listing)
	if err != nil && hint > 0 && ctx.Err() == nil && !errors.Is(err, object.ErrNotFound) {
		t.opts.Logger.Warn("can't open the table from its newest checkpoint; going further back", "table", t.store.String(), "error", err)
		if listing, err = listLog(ctx, t.store, 0); err != nil {
			return nil, t.wrap(err)
		}
		head, err = t.loadFrom(ctx, listing)
	}
	return head, err
}

// base is a version to start from: a version checksum, a checkpoint, or neither: before version 0.
type base struct {
	version    int64
	checksum   *logFile
	checkpoint *checkpoint
}

// bases returns the possible starting points up to a version, best first. Checksums cost less than checkpoints.
func (l *logListing) bases(upTo int64) []base {
	var out []base
	for i := range l.checksums {
		if l.checksums[i].version <= upTo {
			out = append(out, base{version: l.checksums[i].version, checksum: &l.checksums[i]})
		}
	}
	for i := range l.checkpoints {
		if l.checkpoints[i].version <= upTo {
			out = append(out, base{version: l.checkpoints[i].version, checkpoint: &l.checkpoints[i]})
		}
	}
	slices.SortStableFunc(out, func(a, b base) int {
		if c := cmp.Compare(b.version, a.version); c != 0 {
			return c
		}
		return cmp.Compare(a.checkpoint.order(), b.checkpoint.order())
	})
	return append(out, base{version: -1})
}

func (c *checkpoint) order() int {
	if c == nil {
		return 0
	}
	return 1
}

// maxBadBases bounds how many damaged starting points are tried.
const maxBadBases = 10

// loadFrom builds the newest version that a listing shows.
func (t *Table) loadFrom(ctx context.Context, l *logListing) (*Head, error) {
	newest := l.newest()
	if newest < 0 {
		return nil, fmt.Errorf("%s: %w", t.store, ErrNoTable)
	}
	var errs []error
	for _, b := range l.bases(newest) {
		if len(errs) > maxBadBases && b.version >= 0 {
			continue
		}
		head, err := t.loadBase(ctx, l, b, newest)
		if err == nil {
			t.state.noteListing(l)
			return head, head.checkRead()
		}
		if ctx.Err() != nil {
			return nil, t.wrap(err)
		}
		if b.version >= 0 {
			t.opts.Logger.Warn("can't start from here; going further back", "table", t.store.String(), "version", b.version, "error", err)
		}
		errs = append(errs, err)
	}
	return nil, t.wrap(errors.Join(errs...))
}

func (t *Table) loadBase(ctx context.Context, l *logListing, b base, newest int64) (*Head, error) {
	tail, err := l.tail(b.version+1, newest)
	if err != nil {
		return nil, err
	}
	builder := newHeadBuilder(t.store.String())
	switch {
	case b.checksum != nil:
		err = t.readChecksum(ctx, b.version, builder)
	case b.checkpoint != nil:
		builder.h.NumFiles, builder.h.SizeBytes = -1, -1
		err = readCheckpoint(ctx, t.store, b.checkpoint, headActions, func(a *action) error { builder.apply(a); return nil })
	}
	if err != nil {
		return nil, err
	}
	builder.h.Version = b.version
	if b.version >= 0 {
		if _, err := builder.head(); err != nil {
			return nil, err
		}
	}
	err = fetch(ctx, t.store, tail, func(f logFile, data []byte) error {
		_, err := builder.commit(f.version, data, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	if b.checkpoint != nil && len(tail) == 0 {
		t.findTimestamp(ctx, builder)
	}
	return builder.head()
}

// findTimestamp reads the in-commit timestamp of a version that was built from its checkpoint, which doesn't hold it.
func (t *Table) findTimestamp(ctx context.Context, b *headBuilder) {
	if b.h.Metadata == nil || !b.h.Metadata.Flag(propICT, false) {
		return
	}
	data, err := t.store.Get(ctx, commitName(b.h.Version))
	if err != nil {
		return // cleaned up; the clock alone then decides on the next timestamp
	}
	if facts, err := readFacts(data, func(action) {}); err == nil && facts.info != nil {
		b.h.InCommitTimestamp = facts.info.InCommitTimestamp
	}
}

// fetchAhead is how many log entries are requested at once.
const fetchAhead = 16

// fetch reads files of the log and calls fn for each, in their order.
func fetch(ctx context.Context, store object.Store, files []logFile, fn func(logFile, []byte) error) error {
	for chunk := range slices.Chunk(files, fetchAhead) {
		contents := make([][]byte, len(chunk))
		group, ctx := errgroup.WithContext(ctx)
		for i, f := range chunk {
			group.Go(func() (err error) { contents[i], err = store.Get(ctx, f.name); return err })
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		for i, f := range chunk {
			if err := fn(f, contents[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Table) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("table %s: %w", t.store, err)
}
