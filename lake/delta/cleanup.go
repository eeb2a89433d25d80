package delta

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

// tempAge is how old a store's temporary file must be to count as left behind by a crash.
const tempAge = 24 * time.Hour

// cleanLog deletes the part of the log that delta.logRetentionDuration lets go (PROTOCOL.md, "Metadata Cleanup"): everything
// before the newest checkpoint that is not newer than the cut-off, which is the midnight (UTC) of the day that far back. That
// checkpoint and all commits from its version on stay. The checkpoint is read through before anything is deleted, and the
// oldest files go first, so that the log has no hole at any time.
func (t *Table) cleanLog(ctx context.Context, head *Head) error {
	if !head.Metadata.Flag(propLogCleanup, true) {
		return nil
	}
	cutoff := t.opts.Now().Add(-head.Metadata.Interval(propLogRetention, defaultLogRetention)).UTC().Truncate(24 * time.Hour)
	t.maintain.mu.Lock()
	done := t.maintain.cleaned.Equal(cutoff)
	t.maintain.mu.Unlock()
	if done {
		return nil
	}
	l, err := listLog(ctx, t.store, 0)
	if err != nil {
		return t.wrap(err)
	}
	if keep := l.cutOffCheckpoint(cutoff); keep != nil {
		if err := t.deleteBefore(ctx, l, keep); err != nil {
			return t.wrap(fmt.Errorf("log clean-up: %w", err))
		}
	}
	if head.wantsV2() {
		if err := t.sweepSidecars(ctx, false, func(object.Info) {}); err != nil {
			return t.wrap(fmt.Errorf("log clean-up: %w", err))
		}
	}
	t.sweepTemp()
	t.maintain.mu.Lock()
	t.maintain.cleaned = cutoff
	t.maintain.mu.Unlock()
	return nil
}

// cutOffCheckpoint finds the checkpoint before which everything may go, nil if nothing may. Commits are dated by the store's
// clock, made monotonic: a clock that went back makes a commit look younger, which only keeps it longer.
func (l *logListing) cutOffCheckpoint(cutoff time.Time) *checkpoint {
	last := int64(-1)
	for _, c := range l.commits {
		if c.modified.After(cutoff) {
			break
		}
		last = c.version
	}
	for i := len(l.checkpoints) - 1; i >= 0; i-- {
		if c := &l.checkpoints[i]; c.version <= last {
			return c
		}
	}
	return nil
}

func (t *Table) deleteBefore(ctx context.Context, l *logListing, keep *checkpoint) error {
	var old []logFile
	before := func(files []logFile, limit int64) {
		for _, f := range files {
			if f.version < limit {
				old = append(old, f)
			}
		}
	}
	before(l.commits, keep.version)
	before(l.checksums, keep.version)
	before(l.others, keep.version+1)
	for _, c := range l.checkpoints {
		before(c.files, keep.version)
	}
	if len(old) == 0 {
		return nil
	}
	if err := readCheckpoint(ctx, t.store, keep, headActions|fileActions, func(*action) error { return nil }); err != nil {
		return fmt.Errorf("nothing deleted, since the checkpoint that would be needed can't be read: %w", err)
	}
	slices.SortStableFunc(old, func(a, b logFile) int { return cmp.Compare(a.version, b.version) })
	for _, f := range old {
		if err := t.store.Delete(ctx, f.name); err != nil {
			return err
		}
	}
	t.opts.Logger.Info("cleaned the log", "table", t.store.String(), "deleted", len(old), "oldest", keep.version)
	return nil
}

// sweepTemp removes what crashes left behind, where the store has such things, and counts it.
func (t *Table) sweepTemp() (removed int) {
	s, ok := t.store.(interface {
		SweepTemp(dir string, before time.Time) (int, error)
	})
	if !ok {
		return 0
	}
	for _, dir := range []string{"", logDir[:len(logDir)-1]} {
		if n, err := s.SweepTemp(dir, t.opts.Now().Add(-tempAge)); err != nil {
			t.opts.Logger.Warn("can't remove temporary files of crashed writers", "table", t.store.String(), "error", err)
		} else if n > 0 {
			t.opts.Logger.Info("removed temporary files of crashed writers", "table", t.store.String(), "files", n)
			removed += n
		}
	}
	return removed
}
