package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Restore puts records of the store's changelog, in their order, and notes next as the offset to go on from, all in one atomic batch.
// Nothing uncommitted may be in the DB. Standby tasks and global tables are kept up to date by it.
//
// After an error nothing of records is in the store, and Offset says where to go on.
func (db *DB) Restore(name string, records []RestoreRecord, next int64) error {
	s := db.byName[name]
	if s == nil {
		return &LookupError{Store: name, Want: "any kind"}
	}
	if db.pending.Load() || !s.open.empty() && !s.bulk {
		return fmt.Errorf("restore store %q: %w", name, errUncommitted)
	}
	if err := s.restoreAll(records, next); err != nil {
		return errors.Join(err, s.abandonRestore())
	}
	if s.bulk && s.open.size() < db.bulkBytes {
		return nil
	}
	return s.flushRestored()
}

var errUncommitted = errors.New("there are uncommitted writes")

func (s *store) restoreAll(records []RestoreRecord, next int64) error {
	s.restoring = true
	s.retire()
	defer func() { s.restoring = false }()
	for i := range records {
		if err := s.impl.restore(&records[i]); err != nil {
			return fmt.Errorf("restore store %q: record %d of %d before offset %d: %w", s.spec.Name, i, len(records), next, err)
		}
	}
	s.cur.offset = next
	return nil
}

// flushRestored makes restored records and their offset part of the base.
func (s *store) flushRestored() error {
	s.retire()
	var err error
	if s.bulk && s.open.size() >= s.db.bulkBytes/8 { // less is not worth a table of its own
		err = s.ingest()
	} else {
		err = s.db.apply([]*store{s}, openOf, nil)
	}
	if err != nil {
		return errors.Join(err, s.abandonRestore())
	}
	s.discardOpen()
	return nil
}

func openOf(s *store) (*overlay, *storeMeta) { return s.open, &s.cur }

func (s *store) abandonRestore() error {
	s.discardOpen()
	s.cur = s.baseMeta
	return s.impl.dropped()
}

// defaultBulkBytes is how much a bulk restore gathers before it writes a table. Each store that is restored at the same time gathers so much. Of 280,000 small
// rows a store, tables of 2 MB are merged within the restore, those of 4 MB aren't; of 6 MB more is live than a heap of 80 MB has room for.
const defaultBulkBytes = 4 << 20

// BeginRestore prepares for restoring much of a store's changelog: until EndRestore, what Restore is given is gathered and written as sorted
// tables of some 4 MB, past the WAL and the memtable. Each carries the offset that it reaches, so a crash costs at most one of them.
// Until then the store and Offset show what is gathered as well. There can be no Seal in between; an error of Restore loses what was
// gathered, and Offset says where to go on.
//
// It makes no difference to stores in memory, and little to small restores.
func (db *DB) BeginRestore(name string) error {
	s := db.byName[name]
	if s == nil {
		return &LookupError{Store: name, Want: "any kind"}
	}
	if db.pending.Load() || !s.open.empty() {
		return fmt.Errorf("restore store %q: %w", name, errUncommitted)
	}
	s.bulk = s.mem == nil
	return nil
}

// EndRestore writes what has been gathered since BeginRestore. Without a BeginRestore it does nothing.
func (db *DB) EndRestore(name string) error {
	s := db.byName[name]
	if s == nil {
		return &LookupError{Store: name, Want: "any kind"}
	}
	if !s.bulk {
		return nil
	}
	defer func() { s.bulk = false }()
	if s.open.empty() && s.cur == s.baseMeta {
		return nil
	}
	return s.flushRestored()
}

const ingestPrefix = "restore-"

// ingest writes the open generation as a table file and adds it to the database. The store's meta row lies in front of its rows, in the
// same table.
func (s *store) ingest() error {
	b := s.db.pebble
	path := b.fs.PathJoin(b.dir, fmt.Sprintf("%s%d.sst", ingestPrefix, s.id))
	if err := s.writeTable(path); err != nil {
		return errors.Join(b.wrap("write restored table", err), ignoreNotExist(b.fs.Remove(path)))
	}
	if err := b.db.Ingest(context.Background(), []string{path}); err != nil {
		return errors.Join(b.wrap("ingest restored table", err), ignoreNotExist(b.fs.Remove(path)))
	}
	s.tellFront(s.open)
	s.baseMeta = s.cur
	s.committed.Store(s.cur.streamTime)
	return nil
}

func (s *store) writeTable(path string) error {
	b := s.db.pebble
	f, err := b.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), b.options.MakeWriterOptions(0, b.db.TableFormat()))
	if err := s.writeRows(w); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close() // syncs
}

// writeRows writes the meta row and the rows in order. Rows of expired segments are left out; those that the base has are removed when the
// next segment expires.
func (s *store) writeRows(w *sstable.Writer) error {
	if err := w.Set(storeMetaKey(nil, s.id), s.cur.encode(nil)); err != nil {
		return err
	}
	if s.mark(&s.cur) {
		if err := w.Set(storeMarksKey(nil, s.id), encodeMarks(nil, s.marks)); err != nil {
			return err
		}
	}
	o := s.open
	for _, row := range o.sorted() {
		e := row.entry
		key := o.entryKey(e)
		if s.rowExpired(key) {
			continue
		}
		var err error
		if val := o.value(o.entries[e].last - 1); val != nil {
			err = w.Set(key, val)
		} else {
			err = w.Delete(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *store) rowExpired(row []byte) bool {
	return s.segmented() && row[2] != classPlain && ordered(row[prefixLen:]) < s.minLiveSegment(s.cur.streamTime)
}

// removeLeftovers removes table files that a crash left between writing and ingesting.
func (b *pebbleBase) removeLeftovers() error {
	names, err := b.fs.List(b.dir)
	if err != nil {
		return b.wrap("list files", err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, ingestPrefix) {
			if err := b.fs.Remove(b.fs.PathJoin(b.dir, name)); err != nil {
				return b.wrap("remove leftover table", err)
			}
		}
	}
	return nil
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ErrChangelogKey marks errors of restoring a record whose key doesn't have the layout of the store's changelog: a store of another kind, or
// another program, has written it.
var ErrChangelogKey = errors.New("state: not a key of this kind of changelog")

func errChangelogKey(key []byte, want string) error {
	return &changelogKeyError{len(key), want}
}

type changelogKeyError struct {
	bytes int
	want  string
}

func (e *changelogKeyError) Error() string {
	return fmt.Sprintf("the key of %d bytes is not that of a %s changelog", e.bytes, e.want)
}

func (e *changelogKeyError) Unwrap() error { return ErrChangelogKey }
