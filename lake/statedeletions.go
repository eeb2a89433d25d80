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
	// noSegment stands for none in a table that was emptied.
	noSegment = 0
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
	keep := []int64{id}
	if id != noSegment {
		newest, err := keyed.ReadSegment(ctx, t.Store(), id)
		if err != nil {
			return err
		}
		keep = append(keep, newest.Older...)
	}
	n, err := keyed.SweepSegments(ctx, t.Store(), keep, now.Add(-sweepAge))
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

// deletions are those that count in the index's version.
type deletions struct {
	segments []segment // oldest first
	horizon  uint64    // those of lower orders are forgotten, also where a segment or the index has them still
}

// count is the number of entries of all segments: a key may have several.
func (d *deletions) count() (n int) {
	for _, s := range d.segments {
		n += s.Size
	}
	return n
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
	risen := newest.Horizon > x.deletions.horizon
	x.deletions = deletions{append(all, segment{id, len(newest.Entries)}), newest.Horizon}
	if risen {
		return x.forget()
	}
	return nil
}

// forget takes deletions below the horizon out of the index.
func (x *stateIndex) forget() error {
	var changes []keyed.Change
	err := x.x.Each(func(h keyed.Hash, e keyed.Entry) bool {
		if e.Deleted && e.Order < x.deletions.horizon {
			changes = append(changes, keyed.Change{Hash: h, Forget: true})
		}
		return true
	})
	if err != nil {
		return err
	}
	return x.x.Apply(changes, nil)
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

// writeDeletions writes a segment with new deletions. It takes up older ones where there are many, and all where more are remembered than shall be. It
// returns what then counts.
func (x *stateIndex) writeDeletions(ctx context.Context, fresh []keyed.Deletion) (*deletions, error) {
	id := uuid.New()
	s := &keyed.Segment{ID: int64(binary.BigEndian.Uint64(id[:])>>1 | 1), Horizon: x.deletions.horizon, Entries: slices.Clone(fresh)}
	sizes := make([]int, len(x.deletions.segments))
	for i, old := range x.deletions.segments {
		sizes[i] = old.Size
	}
	from := keyed.Merge(sizes, len(fresh))
	tooMany := x.remember > 0 && x.deletions.count()+len(fresh) > x.remember+x.remember/4
	if tooMany {
		from = 0
	}
	var taken []keyed.Deletion
	for _, old := range x.deletions.segments[from:] {
		older, err := keyed.ReadSegment(ctx, x.store, old.ID)
		if err != nil {
			return nil, err
		}
		taken = append(taken, older.Entries...)
	}
	if tooMany {
		var err error
		if taken, err = x.stillDeleted(taken); err != nil {
			return nil, err
		}
	}
	s.Entries = append(s.Entries, taken...)
	if tooMany {
		var horizon uint64
		s.Entries, horizon = keyed.Newest(keyed.Distinct(s.Entries), x.remember)
		s.Horizon = max(s.Horizon, horizon)
	}
	s.Older = x.deletions.ids()[:from]
	if err := keyed.WriteSegment(ctx, x.store, s); err != nil {
		return nil, err
	}
	return &deletions{append(slices.Clone(x.deletions.segments[:from]), segment{s.ID, len(s.Entries)}), s.Horizon}, nil
}

// stillDeleted leaves out deletions that nobody needs: those of keys that came back, which the order of their row stands for, and those below the
// horizon. A row that goes in the same commit is among the new deletions.
func (x *stateIndex) stillDeleted(all []keyed.Deletion) (out []keyed.Deletion, err error) {
	for chunk := range slices.Chunk(all, scanBatch) {
		hashes := make([]keyed.Hash, len(chunk))
		for i := range chunk {
			hashes[i] = chunk[i].Hash
		}
		err = x.x.Find(hashes, func(i int, have keyed.Entry, ok bool) {
			_, _, live := x.place(have)
			if back := ok && live && have.Order >= chunk[i].Order; !back && chunk[i].Order >= x.deletions.horizon {
				out = append(out, chunk[i])
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
