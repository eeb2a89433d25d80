package state

import (
	"errors"
	"fmt"
)

// Restore puts records of the store's changelog, in their order, and notes next as the offset to go on from, all in one atomic batch.
// Nothing uncommitted may be in the DB. Standby tasks and global tables are kept up to date by it.
func (db *DB) Restore(name string, records []RestoreRecord, next int64) error {
	s := db.byName[name]
	if s == nil {
		return &LookupError{Store: name, Want: "any kind"}
	}
	if db.pending.Load() || !s.open.empty() {
		return fmt.Errorf("restore store %q: %w", name, errors.New("there are uncommitted writes"))
	}
	s.restoring = true
	defer func() { s.restoring = false }()
	for i := range records {
		if err := s.impl.restore(&records[i]); err != nil {
			err = fmt.Errorf("restore store %q: record %d of %d before offset %d: %w", name, i, len(records), next, err)
			return errors.Join(err, s.abandonRestore())
		}
	}
	s.cur.offset = next
	err := db.apply([]*store{s}, func(s *store) (*overlay, *storeMeta) { return s.open, &s.cur }, nil)
	if err != nil {
		return errors.Join(err, s.abandonRestore())
	}
	s.discardOpen()
	return nil
}

func (s *store) abandonRestore() error {
	s.discardOpen()
	s.cur = s.baseMeta
	return s.impl.dropped()
}

// errChangelogKey says that a changelog record's key does not have the store's layout.
func errChangelogKey(key []byte, want string) error {
	return fmt.Errorf("the key of %d bytes is not that of a %s changelog", len(key), want)
}
