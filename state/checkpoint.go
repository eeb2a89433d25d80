package state

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
)

// ErrNoDatabase says that a DB has nothing on disk: all of its stores are in memory.
var ErrNoDatabase = errors.New("state: everything is in memory, there is no database")

// Checkpoint makes a copy of what is committed in dir, which must not exist and must be on the same disk: a database of its own, consistent
// and with its offsets, whose tables are hard links. Stores in memory aren't in it. It may run beside everything, and costs about as much as
// syncing the log; while it exists its tables take room on the disk that compactions would free.
func (v *View) Checkpoint(dir string) error {
	b := v.db.pebble
	if b == nil {
		return ErrNoDatabase
	}
	if err := b.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return b.wrap("make checkpoint "+dir+" of state", err)
	}
	return nil
}

// InspectCheckpoint opens the database in dir without changing it, checks what it says of itself, and gives by store the next offset of
// its changelog, or NoOffset. Errors: ErrCorruption, ErrIncompatible for one of another format.
func InspectCheckpoint(dir string, res *Resources) (offsets map[string]int64, err error) {
	memtable, err := res.acquire()
	if err != nil {
		return nil, err
	}
	defer res.release(memtable)
	disk := newFiles(res.fs, &res.limits, dir, slog.Default())
	options := pebbleOptions(res, disk, memtable, slog.Default())
	options.ReadOnly, options.ErrorIfNotExists = true, true
	db, err := pebble.Open(dir, options)
	if err != nil {
		return nil, openError(dir, err)
	}
	b := &pebbleBase{db: db, res: res, dir: dir, fs: disk, options: options}
	defer func() { err = errors.Join(err, db.Close()) }()
	if fresh, err := (&DB{pebble: b}).checkFormat(); err != nil || fresh {
		return nil, errors.Join(err, notFresh(dir, fresh))
	}
	known, _, err := readRegistrations(b)
	if err != nil {
		return nil, err
	}
	offsets = map[string]int64{}
	for name, r := range known {
		offsets[name] = NoOffset
		val, ok, err := b.get(storeMetaKey(nil, r.id), nil)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		m, err := decodeStoreMeta(val)
		if err != nil {
			return nil, fmt.Errorf("store %q in %s: %w", name, dir, err)
		}
		offsets[name] = m.offset
	}
	return offsets, nil
}

func notFresh(dir string, fresh bool) error {
	if fresh {
		return fmt.Errorf("state in %s says nothing of its format: %w", dir, ErrIncompatible)
	}
	return nil
}
