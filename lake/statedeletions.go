package lake

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/keyed"
)

// deletionsApp is the application id whose version names the newest segment of the orders of deleted rows. A txn action is the one thing in a
// table's log that every writer carries on, that needs no table feature, and that a commit can compare before it lands.
const deletionsApp = "tributary-deleted"

const (
	// sweepAge is how old a segment that doesn't count must be before it is deleted: it may be that of a commit on its way, and a process that
	// builds its index from an older version may be reading it.
	sweepAge = 24 * time.Hour
	// sweepEvery is how often that is looked for.
	sweepEvery = time.Hour
)

// sweeper deletes segments that don't count any more, now and then, beside the commits.
type sweeper struct {
	now  func() time.Time
	last time.Time
}

func (s *sweeper) round(ctx context.Context, t *delta.Table, log *slog.Logger) error {
	now := s.now()
	id, ok := t.Head().Txn(deletionsApp)
	if !ok || now.Sub(s.last) < sweepEvery {
		return nil
	}
	newest, err := keyed.ReadSegment(ctx, t.Store(), id)
	if err != nil {
		return err
	}
	n, err := keyed.SweepSegments(ctx, t.Store(), append(newest.Older, id), now.Add(-sweepAge))
	if err != nil {
		return fmt.Errorf("delete old orders of deleted rows: %w", err)
	}
	if n > 0 {
		log.Info("deleted files of the orders of deleted rows that others have taken up", "files", n)
	}
	s.last = now
	return nil
}

// segment is a file of deletions that counts.
type segment struct {
	ID   int64 `json:"id"`
	Size int   `json:"size"` // entries
}

// deletions are the segments that count in the index's version, oldest first.
type deletions struct {
	segments []segment
}

func (d *deletions) head() int64 {
	if n := len(d.segments); n > 0 {
		return d.segments[n-1].ID
	}
	return 0
}

func (d *deletions) ids() (out []int64) {
	for _, s := range d.segments {
		out = append(out, s.ID)
	}
	return out
}

// loadDeletions reads the segments that the head's version names and the index doesn't have.
func (x *stateIndex) loadDeletions(ctx context.Context, head *delta.Head, slots map[uint32]*slot) error {
	id, ok := head.Txn(deletionsApp)
	if !ok || id == x.deletions.head() {
		return nil
	}
	newest, err := keyed.ReadSegment(ctx, x.store, id)
	if err != nil {
		return err
	}
	known := x.deletions.ids()
	var all []segment
	for _, older := range newest.Older {
		if i := slices.Index(known, older); i >= 0 {
			all = append(all, x.deletions.segments[i])
			continue
		}
		s, err := keyed.ReadSegment(ctx, x.store, older)
		if err != nil {
			return err
		}
		if err := x.takeDeletions(s.Entries, slots); err != nil {
			return err
		}
		all = append(all, segment{older, len(s.Entries)})
	}
	if err := x.takeDeletions(newest.Entries, slots); err != nil {
		return err
	}
	x.deletions.segments = append(all, segment{id, len(newest.Entries)})
	return nil
}

// takeDeletions puts deletions into the index, but for keys of which something newer is known: a row, which came back later, or a later deletion.
func (x *stateIndex) takeDeletions(entries []keyed.Deletion, slots map[uint32]*slot) error {
	look := stateIndex{slots: slots}
	for chunk := range slices.Chunk(entries, scanBatch) {
		hashes := make([]keyed.Hash, len(chunk))
		for i := range chunk {
			hashes[i] = chunk[i].Hash
		}
		changes := make([]keyed.Change, 0, len(chunk))
		err := x.x.Find(hashes, func(i int, have keyed.Entry, ok bool) {
			d := &chunk[i]
			if _, _, live := look.place(have); ok && (live || have.Deleted) && have.Order >= d.Order {
				return
			}
			changes = append(changes, keyed.Change{Hash: d.Hash, Entry: keyed.Entry{Order: d.Order, Deleted: true}})
		})
		if err != nil {
			return err
		}
		if err := x.x.Apply(changes, nil); err != nil {
			return err
		}
	}
	return nil
}

// writeDeletions writes a segment with new deletions, and takes up older ones where there are many. It returns the segments that then count.
func (x *stateIndex) writeDeletions(ctx context.Context, fresh []keyed.Deletion) ([]segment, error) {
	id := uuid.New()
	s := &keyed.Segment{ID: int64(binary.BigEndian.Uint64(id[:])>>1 | 1), Entries: slices.Clone(fresh)}
	sizes := make([]int, len(x.deletions.segments))
	for i, old := range x.deletions.segments {
		sizes[i] = old.Size
	}
	from := keyed.Merge(sizes, len(fresh))
	for _, old := range x.deletions.segments[from:] {
		older, err := keyed.ReadSegment(ctx, x.store, old.ID)
		if err != nil {
			return nil, err
		}
		s.Entries = append(s.Entries, older.Entries...)
	}
	s.Older = x.deletions.ids()[:from]
	if err := keyed.WriteSegment(ctx, x.store, s); err != nil {
		return nil, err
	}
	return append(slices.Clone(x.deletions.segments[:from]), segment{s.ID, len(s.Entries)}), nil
}
