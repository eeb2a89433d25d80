package lake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/keyed"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// stateIndex knows where each key's row is in one version of a table. It belongs to one writer and is used by one goroutine.
//
// An entry names a slot and a row in it. A slot is a run of rows that came into the table together; when this writer writes a file anew without
// some of its rows, the slot moves to the new file and remembers the holes, so that no entry has to be touched. Files that others have written
// are read for their keys. An entry whose slot is gone, or whose row is deleted, is no entry: nobody cleans up behind rows that go.
type stateIndex struct {
	x     *keyed.Index
	state *state
	store object.Store
	log   *slog.Logger
	keep  bool // the index outlives the process: it needs its meta data

	tableID string
	emptied string   // the table's property of that name: an emptied table is another one
	columns []string // names in data files of the columns of key and order that it was read from
	version int64    // of the table that it has; -1: none
	listed  bool     // files have their actions; not so just after an index was taken up
	next    uint32
	files   map[string]*stateFile // by name in the store
	slots   map[uint32]*slot

	deletions deletions
	remember  int // how many deletions are kept; 0: all
}

// stateFile is a live data file.
type stateFile struct {
	name  string
	add   delta.Add
	rows  uint32          // in the file, deleted ones too
	gone  *roaring.Bitmap // by its deletion vector; never changed in place
	slots []*slot
}

// slot is a run of rows of a file: its rows from base on, but for the holes.
type slot struct {
	id    uint32
	file  *stateFile
	base  uint32
	holes *roaring.Bitmap // rows that are not in the file any more, as the entries number them; never changed in place
}

// place finds an entry's row in its file, ok=false if it isn't there any more.
func (x *stateIndex) place(e keyed.Entry) (f *stateFile, row uint32, ok bool) {
	s := x.slots[e.File]
	if s == nil || e.Deleted || s.holes.Contains(e.Row) {
		return nil, 0, false
	}
	row = s.base + e.Row
	if !s.holes.IsEmpty() {
		row -= uint32(s.holes.Rank(e.Row))
	}
	return s.file, row, !s.file.gone.Contains(row)
}

// indexMeta is what an index in a folder of its own says of itself.
type indexMeta struct {
	Format   int         `json:"format"`
	TableID  string      `json:"tableId"`
	Emptied  string      `json:"emptied,omitempty"`
	Keys     string      `json:"keys"`
	Order    string      `json:"order"`
	Columns  []string    `json:"columns"` // of key and order, as in data files
	Version  int64       `json:"version"`
	Next     uint32      `json:"next"`
	Slots    []indexSlot `json:"slots"`
	Segments []segment   `json:"segments"`
	Horizon  uint64      `json:"horizon"` // of the deletions
}

type indexSlot struct {
	ID    uint32 `json:"id"`
	File  string `json:"file"`
	Base  uint32 `json:"base"`
	Rows  uint32 `json:"rows"`            // of the file
	Holes []byte `json:"holes,omitempty"` // portable roaring bitmap
}

const indexFormat = 2

// openIndex opens the index in the sink's folder, or an empty one.
func (w *writer) openIndex() (*stateIndex, error) {
	s := w.sink.layout.state
	x := &stateIndex{state: s, store: w.table.Store(), log: w.log, keep: w.sink.opts.state.dir != "", remember: w.sink.opts.state.remember, version: -1,
		files: map[string]*stateFile{}, slots: map[uint32]*slot{}}
	var err error
	if x.x, err = keyed.Open(w.sink.opts.state.dir); err != nil {
		return nil, fmt.Errorf("table %s: %w", w.sink.place, err)
	}
	return x, nil
}

// close ends the index.
func (x *stateIndex) close() error { return x.x.Close() }

// sync brings the index to a version of the table: that of the head.
func (x *stateIndex) sync(ctx context.Context, t *delta.Table) error {
	head := t.Head()
	if x.version == head.Version {
		return nil
	}
	if err := x.checkEmptied(head.Metadata); err != nil {
		return err
	}
	if err := x.checkColumns(head.Metadata); err != nil {
		return err
	}
	if x.version < 0 {
		if err := x.resume(head); err != nil {
			return err
		}
	}
	live, version, err := x.liveFiles(ctx, t, head)
	if err != nil {
		return err
	}
	if version != head.Version { // the table went on while its files were listed
		if _, err := t.Refresh(ctx); err != nil {
			return err
		}
		return x.sync(ctx, t)
	}
	return x.adopt(ctx, head, live)
}

// checkEmptied forgets everything where the table was emptied since.
func (x *stateIndex) checkEmptied(md *delta.Metadata) error {
	emptied := md.Configuration[stateEmptiedKey]
	if emptied != x.emptied && x.version >= 0 {
		x.log.Info("the table was emptied: building the index anew")
		x.version, x.listed, x.deletions = -1, false, deletions{}
		x.files, x.slots = map[string]*stateFile{}, map[uint32]*slot{}
		if err := x.x.Clear(); err != nil {
			return err
		}
	}
	x.emptied = emptied
	return nil
}

// checkColumns refuses a table whose columns of key and order aren't those any more that the index was read from.
func (x *stateIndex) checkColumns(md *delta.Metadata) error {
	columns, err := x.state.physicalColumns(md)
	if err != nil {
		return err
	}
	if x.version >= 0 && !slices.Equal(columns, x.columns) {
		return &sink.RefusedError{Reason: fmt.Sprintf("other columns have the names of those of key and order: in data files they were %v and are %v", x.columns, columns),
			Advice: "name them as they were, or start the sink again if the rows are right as they are"}
	}
	x.columns = columns
	return nil
}

// followLimit is how many versions are followed one by one before a snapshot is cheaper.
const followLimit = 200

// liveFiles lists the live files of the head's version by their names.
func (x *stateIndex) liveFiles(ctx context.Context, t *delta.Table, head *delta.Head) (map[string]delta.Add, int64, error) {
	if x.listed && head.Version > x.version && head.Version-x.version <= followLimit {
		live := make(map[string]delta.Add, len(x.files))
		for name, f := range x.files {
			live[name] = f.add
		}
		err := t.Changes(ctx, x.version, head.Version, func(c delta.FileChanges) error { return follow(live, &c) })
		if !errors.Is(err, object.ErrNotFound) {
			return live, head.Version, err
		}
	}
	snap, err := t.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	live := map[string]delta.Add{}
	for add, err := range snap.Files(ctx) {
		if err != nil {
			return nil, 0, err
		}
		name, err := add.Name()
		if err != nil {
			return nil, 0, err
		}
		live[name] = add
	}
	return live, snap.Head.Version, nil
}

// follow applies one commit to a list of live files. A file may be removed with one deletion vector and added with another in one commit.
func follow(live map[string]delta.Add, c *delta.FileChanges) error {
	for i := range c.Remove {
		r := &c.Remove[i]
		name, err := (&delta.Add{Path: r.Path}).Name()
		if err != nil {
			return err
		}
		if have, ok := live[name]; ok && have.DeletionVector.UniqueID() == r.DeletionVector.UniqueID() {
			delete(live, name)
		}
	}
	for i := range c.Add {
		name, err := c.Add[i].Name()
		if err != nil {
			return err
		}
		live[name] = c.Add[i]
	}
	return nil
}

// adopt makes the index that of a version with the given files.
func (x *stateIndex) adopt(ctx context.Context, head *delta.Head, live map[string]delta.Add) error {
	first := x.version < 0
	files, slots := map[string]*stateFile{}, map[uint32]*slot{}
	var fresh []*stateFile
	for _, name := range slices.Sorted(maps.Keys(live)) {
		f, isNew, err := x.adoptFile(ctx, name, live[name])
		if err != nil {
			return err
		}
		if files[name] = f; isNew {
			fresh = append(fresh, f)
		}
		for _, s := range f.slots {
			slots[s.id] = &slot{s.id, f, s.base, s.holes}
		}
	}
	for _, f := range files {
		f.slots = slices.Collect(func(yield func(*slot) bool) {
			for _, s := range f.slots {
				if !yield(slots[s.id]) {
					return
				}
			}
		})
	}
	// Numbers of slots are never given twice, even where the process dies before the index says what they stand for.
	x.next += uint32(len(fresh))
	if x.keep && len(fresh) > 0 {
		if err := x.save(x.version, x.slots, x.deletions); err != nil {
			return err
		}
	}
	next := x.next - uint32(len(fresh))
	for i, f := range fresh {
		s := &slot{next + uint32(i), f, 0, roaring.New()}
		f.slots, slots[s.id] = []*slot{s}, s
	}
	if err := x.scan(ctx, head.Metadata, fresh, slots); err != nil {
		return err
	}
	if err := x.loadDeletions(ctx, head, slots); err != nil {
		return err
	}
	if first {
		if err := x.checkUnique(files, slots); err != nil {
			return err
		}
	}
	if err := x.save(head.Version, slots, x.deletions); err != nil {
		return err
	}
	x.tableID, x.version, x.listed, x.files, x.slots = head.Metadata.ID, head.Version, true, files, slots
	return nil
}

// adoptFile returns what is known of a file, with its newest deletion vector.
func (x *stateIndex) adoptFile(ctx context.Context, name string, add delta.Add) (f *stateFile, isNew bool, err error) {
	known := x.files[name]
	f = &stateFile{name: name, add: add}
	if known != nil {
		f.rows, f.slots, f.gone = known.rows, known.slots, known.gone
		if add.DeletionVector.UniqueID() == known.add.DeletionVector.UniqueID() {
			return f, false, nil
		}
	}
	f.gone, err = delta.DeletedRows(ctx, x.store, add.DeletionVector)
	return f, known == nil, err
}

// save remembers in the index what it is an index of.
func (x *stateIndex) save(version int64, slots map[uint32]*slot, d deletions) error {
	meta, err := x.meta(version, slots, d)
	if err != nil || meta == nil {
		return err
	}
	return x.x.Apply(nil, meta)
}

// meta says what the index is an index of. Without a folder of its own nobody will ask: nil.
func (x *stateIndex) meta(version int64, slots map[uint32]*slot, d deletions) ([]byte, error) {
	if !x.keep {
		return nil, nil
	}
	m := indexMeta{Format: indexFormat, TableID: x.tableID, Emptied: x.emptied, Keys: x.state.keyNames(), Order: x.state.order.name, Columns: x.columns, Version: version, Next: x.next,
		Segments: d.segments, Horizon: d.horizon}
	for _, s := range slots {
		out := indexSlot{ID: s.id, File: s.file.name, Base: s.base, Rows: s.file.rows}
		if !s.holes.IsEmpty() {
			var err error
			if out.Holes, err = s.holes.ToBytes(); err != nil {
				return nil, err
			}
		}
		m.Slots = append(m.Slots, out)
	}
	slices.SortFunc(m.Slots, func(a, b indexSlot) int { return cmp.Compare(a.ID, b.ID) })
	return json.Marshal(m)
}

// isOf reports whether the index is one of the same keys in the same table.
func (m *indexMeta) isOf(x *stateIndex) bool {
	return m.TableID == x.tableID && m.Emptied == x.emptied && m.Keys == x.state.keyNames() && m.Order == x.state.order.name && slices.Equal(m.Columns, x.columns)
}

// resume takes up what an earlier process left in the index's folder, if it is of this table and these keys; else the index is emptied.
func (x *stateIndex) resume(head *delta.Head) error {
	x.tableID = head.Metadata.ID
	data := x.x.Meta()
	if data == nil { // what there is comes from a building that an error has ended
		return x.x.Clear()
	}
	var m indexMeta
	err := json.Unmarshal(data, &m)
	if err != nil || m.Format != indexFormat || !m.isOf(x) || m.Version > head.Version {
		x.log.Info("the index in the sink's folder is of another table, key or version: building it anew")
		return x.x.Clear()
	}
	x.next = m.Next
	if m.Version < 0 {
		return nil
	}
	for _, in := range m.Slots {
		f := x.files[in.File]
		if f == nil {
			f = &stateFile{name: in.File, rows: in.Rows, gone: roaring.New()}
			// Its action isn't kept: one that no deletion vector can have makes the first look at the table take it over.
			f.add.DeletionVector = &delta.DeletionVector{StorageType: "unknown"}
			x.files[in.File] = f
		}
		s := &slot{in.ID, f, in.Base, roaring.New()}
		if len(in.Holes) > 0 {
			if _, err := s.holes.FromBuffer(slices.Clone(in.Holes)); err != nil {
				return fmt.Errorf("the index's folder is damaged; delete it, it is built anew: %w", err)
			}
		}
		f.slots = append(f.slots, s)
		x.slots[in.ID] = s
	}
	x.deletions.segments, x.deletions.horizon = m.Segments, m.Horizon
	x.version = m.Version
	x.log.Info("took up the index of an earlier process", "version", x.version)
	return nil
}
