package state

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tributary-io/tributary/internal/filelimit"
)

// ResourceOptions sets the memory that all stores of a process share.
type ResourceOptions struct {
	// CacheBytes is the block cache, which memtables are charged to as well. Default 48 MB. What it doesn't hold is read through the
	// operating system's page cache.
	CacheBytes int64
	// MaxMemtableBytes and MinMemtableBytes bound the memtable of a task: it is MaxMemtableBytes until the open tasks'
	// memtables would take more than half of the cache. Defaults 8 MB and 1 MB.
	MaxMemtableBytes, MinMemtableBytes int64
	// RowBytes is what the stores' rows and the filters of their keys may take that are kept in memory in front of the databases, so
	// that most gets need not ask them. Filters take 2 to 8 bytes a key, and half of it at most: those that don't fit are given up, and
	// keys that aren't there cost a lookup then. A task's database has up to 1 GB of rows. Default 48 MB; below zero nothing is kept.
	RowBytes int64
	// MaxOpenFiles bounds the open table files of all tasks. Default 4096, and no more than a quarter of the files that the process may have open.
	// Each database has four others on top.
	MaxOpenFiles int
}

// Resources is what all the databases of a process share: one block cache and one cache of open files. Safe for concurrent use.
type Resources struct {
	opt    ResourceOptions
	cache  *pebble.Cache
	files  *pebble.FileCache
	fs     vfs.FS
	limits fileLimits

	overlays overlayPool

	mu     sync.Mutex
	open   int
	expect int // that many will be open
	fronts map[*front]bool
	closed bool
	share  atomic.Int64 // a database's of RowBytes
	rows   atomic.Int64 // bytes in use of RowBytes

	memtables atomic.Int64 // bytes that those of the open databases may take
}

// NewResources makes the shared resources. Close them after the last DB.
func NewResources(opt ResourceOptions) *Resources {
	setDefault(&opt.CacheBytes, 48<<20)
	setDefault(&opt.MaxMemtableBytes, 8<<20)
	setDefault(&opt.MinMemtableBytes, 1<<20)
	setDefault(&opt.RowBytes, 48<<20)
	setDefault(&opt.MaxOpenFiles, defaultOpenFiles(filelimit.Limit()))
	return &Resources{
		opt:    opt,
		limits: fileLimits{patience: openPatience},
		cache:  pebble.NewCache(opt.CacheBytes),
		files:  pebble.NewFileCache(4, opt.MaxOpenFiles),
		fronts: map[*front]bool{},
		// Pebble's own default watches for slow disks, with a goroutine that it leaves behind when opening fails.
		fs: vfs.Default,
	}
}

func setDefault[T int | int64](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// acquire counts a database in and gives the size of its memtable.
func (r *Resources) acquire() (memtable int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, errors.New("state: shared resources are closed")
	}
	r.open++
	r.divide()
	// A database can hold two memtables at a time, one being flushed.
	share := r.opt.CacheBytes / 2 / int64(2*max(r.open, r.expect))
	memtable = min(max(share, r.opt.MinMemtableBytes), r.opt.MaxMemtableBytes)
	r.memtables.Add(2 * memtable)
	return memtable, nil
}

// Expect says how many databases are about to be open, so that the first ones opened don't take the others' memory.
func (r *Resources) Expect(databases int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expect = databases
	r.divide()
}

// release counts a database out that acquire gave such a memtable.
func (r *Resources) release(memtable int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	r.memtables.Add(-2 * memtable)
	r.divide()
}

// divide gives each database the same part of RowBytes. Those that are open give up what is too much at once: one that only reads what it has
// wouldn't come to it. mu must be held.
func (r *Resources) divide() {
	share := r.opt.RowBytes / int64(max(1, r.open, r.expect))
	if r.share.Swap(share) <= share {
		return
	}
	for f := range r.fronts {
		f.fit()
	}
}

// addFront takes in a front that has its part of a database's share.
func (r *Resources) addFront(f *front) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fronts[f] = true
}

func (r *Resources) removeFront(f *front) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.fronts, f)
}

// rowShare is a database's part of RowBytes, as of now.
func (r *Resources) rowShare() int64 { return r.share.Load() }

// RowBytes is what rows and filters in front of the databases take.
func (r *Resources) RowBytes() int64 { return r.rows.Load() }

// MemtableBytes is what the memtables of the open databases take at most. They begin small, and the block cache makes room for them.
func (r *Resources) MemtableBytes() int64 { return r.memtables.Load() }

// OutsideBytes is what rows, filters, blocks and memtables take outside of the Go heap: without cgo, blocks and memtables lie in it.
func (r *Resources) OutsideBytes() (n int64) {
	if rowsOutside {
		n += r.RowBytes()
	}
	if pebbleOutside {
		n += r.CacheBytes() + r.MemtableBytes()
	}
	return n
}

// SpareBytes is what write buffers take that no store uses at the moment, which the next write takes. It lies in the Go heap.
func (r *Resources) SpareBytes() int64 { return r.overlays.size() }

// Trim gives up the write buffers that no store has taken since the last Trim.
func (r *Resources) Trim() { r.overlays.trim() }

// CacheBytes is what the blocks in the cache take. It is 0 once the resources are closed.
func (r *Resources) CacheBytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0
	}
	return r.cache.Metrics().Size
}

// OpenDatabases is the number of databases open.
func (r *Resources) OpenDatabases() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// Close releases the caches. It fails, and releases nothing, while databases are open.
func (r *Resources) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if r.open > 0 {
		return errors.New("state: shared resources closed while databases are open")
	}
	r.closed = true
	r.files.Unref()
	r.cache.Unref()
	return nil
}
