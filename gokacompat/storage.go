package gokacompat

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lovoo/goka/storage"

	"github.com/tributary-io/tributary/state"
)

// Storage builds storages for goka's own processors and views (goka.WithStorageBuilder, WithViewStorageBuilder): one Pebble database for each
// topic and partition, below dir, with Tributary's state in it.
//
// What goka's LevelDB storage lacks: a value reaches the disk in one batch with the offset of its record in the table topic, so after a crash
// the database is what the topic was at that offset, and goka reads on from there. Until its record is acknowledged a value is kept in memory,
// where reads see it.
//
// The storages of one builder share a cache of 256 MB. They are safe for concurrent use.
func Storage(dir string) storage.Builder {
	b := &storages{dir: dir}
	return func(topic string, partition int32) (storage.Storage, error) {
		return &pebbleStorage{of: b, dir: filepath.Join(dir, fmt.Sprintf("%s.%d", topic, partition)), offset: state.NoOffset}, nil
	}
}

// storages are those of one builder; they share resources as long as one is open.
type storages struct {
	dir string

	mu        sync.Mutex
	resources *state.Resources
	open      int
}

func (b *storages) acquire() *state.Resources {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open++; b.open == 1 {
		b.resources = state.NewResources(state.ResourceOptions{})
	}
	return b.resources
}

func (b *storages) release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open--; b.open > 0 {
		return nil
	}
	return b.resources.Close()
}

const (
	storageName = "table"
	// ackedBatch is how many acknowledged writes become one batch. Those that a crash finds in memory are read from the topic again.
	ackedBatch = 512
	// unackedLimit bounds the writes that wait for their acknowledgement. goka never acknowledges deletes, so a callback that does nothing else
	// would fill the memory; beyond the limit they go to the disk ahead of the offset, as all do in goka's own storage.
	unackedLimit = 100_000
)

// pebbleStorage implements storage.Storage.
//
// goka writes a value first, sends its record, and calls SetOffset when that is acknowledged, in order. So the writes that are contained in the
// topic up to an offset are the oldest ones: between two offsets lie as many records as writes, or more if someone else writes, too. A
// delete is never acknowledged by itself; it counts with the next value.
type pebbleStorage struct {
	of  *storages
	dir string

	mu        sync.Mutex
	db        *state.DB
	rows      state.KeyValueBytes
	recovered bool
	offset    int64 // of the last acknowledged record; state.NoOffset before the first
	written   int64 // the offset on disk
	writes    []state.RestoreRecord
	acked     int                // of writes
	newest    map[string]pending // of the keys in writes
}

// pending is what a key's last write has made of it.
type pending struct {
	value []byte // nil: deleted
	count int    // of its writes
}

var errNotOpen = errors.New("the storage isn't open")

// Open implements storage.Storage. A damaged database is set aside: goka fills an empty one from the topic.
func (s *pebbleStorage) Open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		return fmt.Errorf("storage %s is open already", s.dir)
	}
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o755); err != nil {
		return fmt.Errorf("open storage: %w", err)
	}
	resources := s.of.acquire()
	db, err := openTable(s.dir, resources)
	if errors.Is(err, state.ErrCorruption) || errors.Is(err, state.ErrIncompatible) {
		aside := fmt.Sprintf("%s.damaged-%d", s.dir, time.Now().UnixNano())
		slog.Warn("a damaged storage is set aside, and filled anew from its topic", "storage", s.dir, "as", aside, "error", err)
		if err := os.Rename(s.dir, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("set damaged storage aside: %w", err), s.of.release())
		}
		db, err = openTable(s.dir, resources)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open storage: %w", err), s.of.release())
	}
	rows, err := db.KeyValueBytes(storageName)
	if err != nil {
		return errors.Join(err, db.Close(), s.of.release())
	}
	s.db, s.rows, s.newest = db, rows, map[string]pending{}
	if next, ok := db.Offset(storageName); ok {
		s.offset = next - 1
	}
	s.written = s.offset
	return nil
}

func openTable(dir string, resources *state.Resources) (*state.DB, error) {
	return state.OpenPebble(dir, []state.Spec{{Name: storageName, Kind: state.KeyValue, Logged: true}}, resources, state.Options{})
}

// Close implements storage.Storage. Writes that were not acknowledged are left out: if their records are in the topic, goka reads them again.
func (s *pebbleStorage) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	err := errors.Join(s.flush(), s.db.Close(), s.of.release())
	s.db, s.rows = nil, nil
	return err
}

// Has implements storage.Storage.
func (s *pebbleStorage) Has(key string) (bool, error) {
	value, err := s.Get(key)
	return value != nil, err
}

// Get implements storage.Storage: nil without a value.
func (s *pebbleStorage) Get(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil, errNotOpen
	}
	if p, ok := s.newest[key]; ok {
		return p.value, nil
	}
	value, _, ok, err := s.rows.Get([]byte(key), nil)
	if err != nil || !ok {
		return nil, err
	}
	return filled(value), nil
}

// Set implements storage.Storage. The value is the storage's own from then on.
func (s *pebbleStorage) Set(key string, value []byte) error {
	if value == nil {
		return fmt.Errorf("the value of key %q can't be nil", key)
	}
	return s.write(key, value)
}

// Delete implements storage.Storage.
func (s *pebbleStorage) Delete(key string) error { return s.write(key, nil) }

func (s *pebbleStorage) write(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return errNotOpen
	}
	s.writes = append(s.writes, state.RestoreRecord{Key: []byte(key), Value: value})
	s.newest[key] = pending{value, s.newest[key].count + 1}
	if len(s.writes)-s.acked >= unackedLimit {
		s.acked = len(s.writes)
		return s.flush()
	}
	return nil
}

// GetOffset implements storage.Storage.
func (s *pebbleStorage) GetOffset(def int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offset == state.NoOffset {
		return def, nil
	}
	return s.offset, nil
}

// SetOffset implements storage.Storage: the records up to the offset are in the topic.
func (s *pebbleStorage) SetOffset(offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return errNotOpen
	}
	if offset <= s.offset && s.recovered {
		return nil
	}
	if s.recovered {
		s.acked = int(min(int64(s.acked)+offset-s.offset, int64(len(s.writes))))
	} else {
		s.acked = len(s.writes) // of a recovery: each record is written, then its offset
	}
	s.offset = offset
	if s.acked >= ackedBatch {
		return s.flush()
	}
	return nil
}

// MarkRecovered implements storage.Storage.
func (s *pebbleStorage) MarkRecovered() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return errNotOpen
	}
	s.recovered = true
	return s.flush()
}

// flush writes what is acknowledged, and the offset that it reaches, in one batch.
func (s *pebbleStorage) flush() error {
	if s.acked == 0 && s.offset == s.written {
		return nil
	}
	if err := s.db.Restore(storageName, s.writes[:s.acked], s.offset+1); err != nil {
		return err
	}
	s.written = s.offset
	for _, w := range s.writes[:s.acked] {
		p := s.newest[string(w.Key)]
		if p.count--; p.count == 0 {
			delete(s.newest, string(w.Key))
		} else {
			s.newest[string(w.Key)] = p
		}
	}
	left := copy(s.writes, s.writes[s.acked:])
	clear(s.writes[left:])
	s.writes, s.acked = s.writes[:left], 0
	return nil
}
