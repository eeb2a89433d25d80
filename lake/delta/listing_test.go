package delta

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
)

// gappyStore leaves a name out of its next listings, as a folder does that is read while two files are made.
type gappyStore struct {
	*object.Memory
	hide  string
	times int
}

func (s *gappyStore) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		hide := ""
		if s.times > 0 {
			s.times--
			hide = s.hide
		}
		for info, err := range s.Memory.List(ctx, prefix, after) {
			if info.Name != hide && !yield(info, err) {
				return
			}
		}
	}
}

// TestListingWithGap opens a table, and reads its files, although a listing lacks the last commit but one; a gap that stays is an error.
func TestListingWithGap(t *testing.T) {
	store := &gappyStore{Memory: object.NewMemory("t")}
	table := mustCreate(t, store, Spec{}, Options{})
	for range 4 {
		mustCommit(t, table, Commit{Add: []Add{mustFile(t, store, 1)}})
	}
	store.hide, store.times = commitName(3), 1
	if h := mustOpen(t, store, Options{}).Head(); h.Version != 4 || h.NumFiles != 4 {
		t.Errorf("opened at version %d with %d files", h.Version, h.NumFiles)
	}
	store.times = 1
	if files, _ := counts(t, mustSnapshot(t, table)); files != 4 {
		t.Errorf("a snapshot of %d files", files)
	}
	store.times = 1000
	for what, read := range map[string]func() error{
		"open":     func() error { _, err := Open(t.Context(), store, Options{}); return err },
		"snapshot": func() error { _, err := table.Snapshot(t.Context()); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "lacks version 3") {
			t.Errorf("%s with a gap that stays: %v", what, err)
		}
	}
}
