package state

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// This file holds what a Pebble database keeps about itself: its format, the number of each store, the offsets, and the task's own
// bytes. It is durable: see docs/format/state-pebble.md.

// ErrIncompatible marks errors of opening a database that was written with other parameters or by a newer version. What to do: set
// the directory aside and restore from the changelogs.
var ErrIncompatible = errors.New("state: database does not fit the declared stores")

// KindError says that a database has a store of the same name and of another kind. It wraps ErrIncompatible.
type KindError struct {
	Store, Dir string
	Was, Is    Kind // Is: as declared
}

func (e *KindError) Error() string {
	return fmt.Sprintf("store %q in %s was written as kind %s, and is declared as kind %s: %v", e.Store, e.Dir, e.Was, e.Is, ErrIncompatible)
}

func (e *KindError) Unwrap() error { return ErrIncompatible }

const (
	formatVersion         = 1
	storeMetaVersion      = 1
	storeMetaLen          = 1 + 8 + 8 + 4 + 4 + 8 + 8
	registrationLen       = 2 + 1 + 1 + 8
	flagTimeOrdered       = 1
	flagRetainDups        = 2
	metaTagFormat         = 'f'
	metaTagStore          = 's'
	metaTagTask           = 't'
	storeMetaTag     byte = 0
	storeMarksTag    byte = 1
)

func metaKey(tag byte, name string) []byte {
	return append(append(appendPrefix(nil, metaStore, classMeta), tag), name...)
}

func storeMetaKey(dst []byte, id uint16) []byte {
	return append(appendPrefix(dst, id, classMeta), storeMetaTag)
}

func (m *storeMeta) encode(dst []byte) []byte {
	dst = append(dst, storeMetaVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.offset))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.streamTime))
	dst = binary.BigEndian.AppendUint32(dst, m.seq)
	dst = binary.BigEndian.AppendUint32(dst, m.logSeq)
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.records))
	return binary.BigEndian.AppendUint64(dst, uint64(m.bytes))
}

func decodeStoreMeta(b []byte) (storeMeta, error) {
	if len(b) < 1 || b[0] != storeMetaVersion {
		return storeMeta{}, fmt.Errorf("store entry of unknown version: %w", ErrIncompatible)
	}
	if len(b) != storeMetaLen {
		return storeMeta{}, fmt.Errorf("store entry of %d bytes, not %d: %w", len(b), storeMetaLen, ErrCorruption)
	}
	return storeMeta{
		offset:     int64(binary.BigEndian.Uint64(b[1:])),
		streamTime: int64(binary.BigEndian.Uint64(b[9:])),
		seq:        binary.BigEndian.Uint32(b[17:]),
		logSeq:     binary.BigEndian.Uint32(b[21:]),
		records:    int64(binary.BigEndian.Uint64(b[25:])),
		bytes:      int64(binary.BigEndian.Uint64(b[33:])),
	}, nil
}

// registration is the entry of a store in the database's list: its number, and what its rows' layout depends on.
type registration struct {
	id        uint16
	kind      Kind
	flags     byte
	segmentMs int64
}

func registrationOf(s *Spec, id uint16) registration {
	r := registration{id: id, kind: s.Kind}
	if s.TimeOrdered {
		r.flags |= flagTimeOrdered
	}
	if s.RetainDuplicates {
		r.flags |= flagRetainDups
	}
	if s.windowed() || s.Kind == Versioned {
		r.segmentMs = s.SegmentMs()
	}
	return r
}

func (r registration) encode() []byte {
	b := binary.BigEndian.AppendUint16(nil, r.id)
	b = append(b, byte(r.kind), r.flags)
	return binary.BigEndian.AppendUint64(b, uint64(r.segmentMs))
}

func decodeRegistration(b []byte) (registration, error) {
	if len(b) != registrationLen {
		return registration{}, fmt.Errorf("store registration of %d bytes, not %d: %w", len(b), registrationLen, ErrCorruption)
	}
	return registration{
		id:        binary.BigEndian.Uint16(b),
		kind:      Kind(b[2]),
		flags:     b[3],
		segmentMs: int64(binary.BigEndian.Uint64(b[4:])),
	}, nil
}

// loadCatalog checks the format, numbers the stores and reads what is kept of them.
func (db *DB) loadCatalog() error {
	b := db.pebble
	fresh, err := db.checkFormat()
	if err != nil {
		return err
	}
	known, maxID, err := readRegistrations(b)
	if err != nil {
		return err
	}
	batch := b.db.NewBatch()
	defer batch.Close()
	if fresh {
		if err := batch.Set(metaKey(metaTagFormat, ""), []byte{formatVersion}, nil); err != nil {
			return b.wrap("write format", err)
		}
	}
	for _, s := range db.stores {
		if err := db.register(s, known, &maxID, batch); err != nil {
			return err
		}
	}
	if !batch.Empty() {
		if err := batch.Commit(pebble.NoSync); err != nil {
			return b.wrap("register stores", err)
		}
	}
	return db.loadMeta()
}

func (db *DB) checkFormat() (fresh bool, err error) {
	val, ok, err := db.pebble.get(metaKey(metaTagFormat, ""), nil)
	if err != nil {
		return false, err
	}
	if !ok {
		return true, nil
	}
	if len(val) != 1 || val[0] != formatVersion {
		return false, fmt.Errorf("state in %s has format %v, this version reads %d: %w", db.pebble.dir, val, formatVersion, ErrIncompatible)
	}
	return false, nil
}

func readRegistrations(b *pebbleBase) (known map[string]registration, maxID uint16, err error) {
	lower := metaKey(metaTagStore, "")
	upper := metaKey(metaTagStore+1, "")
	it, err := b.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, 0, b.wrap("read stores", err)
	}
	defer it.Close()
	known = map[string]registration{}
	for ok := it.First(); ok; ok = it.Next() {
		r, err := decodeRegistration(it.Value())
		if err != nil {
			return nil, 0, err
		}
		known[string(it.Key()[len(lower):])] = r
		maxID = max(maxID, r.id)
	}
	if err := it.Error(); err != nil {
		return nil, 0, b.wrap("read stores", err)
	}
	return known, maxID, nil
}

// register gives a store the number it had, or a new one.
func (db *DB) register(s *store, known map[string]registration, maxID *uint16, batch *pebble.Batch) error {
	if r, ok := known[s.spec.Name]; ok {
		s.id = r.id
		if r.kind != s.spec.Kind && s.mem == nil {
			return &KindError{Store: s.spec.Name, Dir: db.pebble.dir, Was: r.kind, Is: s.spec.Kind}
		}
		if want := registrationOf(&s.spec, r.id); want != r && s.mem == nil {
			return fmt.Errorf("store %q in %s was written as kind %s with segments of %d ms (flags %d), and is declared as kind %s with segments of %d ms (flags %d): %w",
				s.spec.Name, db.pebble.dir, r.kind, r.segmentMs, r.flags, want.kind, want.segmentMs, want.flags, ErrIncompatible)
		}
		return nil
	}
	if *maxID >= maxStoreID {
		return fmt.Errorf("state in %s has had %d stores, there is no number left: %w", db.pebble.dir, *maxID, ErrIncompatible)
	}
	*maxID++
	s.id = *maxID
	if err := batch.Set(metaKey(metaTagStore, s.spec.Name), registrationOf(&s.spec, s.id).encode(), nil); err != nil {
		return db.pebble.wrap("register store", err)
	}
	return nil
}

// loadMeta reads offsets and the task's bytes.
func (db *DB) loadMeta() error {
	for _, s := range db.stores {
		if s.mem != nil {
			continue
		}
		val, ok, err := db.pebble.get(storeMetaKey(nil, s.id), nil)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		m, err := decodeStoreMeta(val)
		if err != nil {
			return fmt.Errorf("store %q in %s: %w", s.spec.Name, db.pebble.dir, err)
		}
		s.baseMeta, s.cur = m, m
		s.committed.Store(m.streamTime)
		if err := s.loadMarks(); err != nil {
			return err
		}
	}
	val, ok, err := db.pebble.get(metaKey(metaTagTask, ""), nil)
	if err != nil {
		return err
	}
	if ok {
		db.taskMeta = val
	}
	return nil
}
