package state

import (
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// UseMemFS makes the databases opened with r live in memory, so that tests that open many of them don't wait for the disk.
func (r *Resources) UseMemFS() { r.fs = vfs.NewMem() }

// SetBulkBytes sets how much a bulk restore gathers.
func (db *DB) SetBulkBytes(n int64) { db.bulkBytes = n }

// UseFS makes the databases opened with r live in fs.
func (r *Resources) UseFS(fs vfs.FS) { r.fs = fs }

// UseCrashableFS is UseMemFS with a function that gives what a power loss would leave now: what was synced, and of the rest so many
// percent of the blocks.
func (r *Resources) UseCrashableFS() (crash func(rnd *rand.Rand, percent int) vfs.FS) {
	fs := vfs.NewCrashableMem()
	r.fs = fs
	return func(rnd *rand.Rand, percent int) vfs.FS {
		return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rnd})
	}
}

// AwaitFill waits until the keys that were in the database when it was opened are known.
func (db *DB) AwaitFill() { db.filling.done.Wait() }

// AskedBase tells whether a get of a key that isn't in the write buffer would ask the database.
func (db *DB) AskedBase(store, key string) bool {
	s := db.byName[store]
	row := append(appendPrefix(nil, s.id, classPlain), key...)
	_, _, known := s.front.get(hashRow(row), row, nil)
	return !known
}

// OnDisk tells that the DB has a database.
func (db *DB) OnDisk() bool { return db.pebble != nil }
