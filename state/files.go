package state

import (
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tributary-io/tributary/internal/filelimit"
)

// filesPerDatabase is what a database keeps open beside its tables: the lock, the log, the manifest and its directory.
const filesPerDatabase = 4

// filesWhileWriting is what a database has open on top of that for moments: the next log, tables that it writes, those that it merges.
const filesWhileWriting = 6

// databasesWriting is how many databases are thought to write tables at the same time.
const databasesWriting = 20

// defaultOpenFiles bounds the open table files of all tasks where the process may have so many files open (0: no bound): a quarter is for them,
// since a table that isn't open only has to be opened once more.
func defaultOpenFiles(limit int) int {
	const most, least = 4096, 64
	if limit == 0 {
		return most
	}
	return min(max(limit/4, least), most)
}

// FilesFor is how many files so many databases have open at most, all of their tables that may be open at a time included.
func (r *Resources) FilesFor(databases int) int {
	if databases == 0 {
		return 0
	}
	return databases*filesPerDatabase + min(databases, databasesWriting)*filesWhileWriting + min(databases*tablesPerDatabase, r.opt.MaxOpenFiles)
}

// tablesPerDatabase is how many tables a database has at most that its tasks fill evenly: level 0 up to its threshold, and some below.
const tablesPerDatabase = 24

// openPatience is how long a database waits for a file that can't be opened since the process has too many. Others are closed meanwhile, such as
// connections that were only needed for a moment; and Pebble takes the process down where it can't begin a log file.
const openPatience = 3 * time.Second

// fileLimits is what the databases of a process know about its limit of open files.
type fileLimits struct {
	patience time.Duration
	told     filelimit.Notice
}

// files is the file system as one database sees it. Of each directory, of which Pebble has five handles, it has one, and what can't be opened since the
// process has too many files is tried for a while. Safe for concurrent use.
type files struct {
	vfs.FS
	limits *fileLimits
	dir    string
	log    *slog.Logger

	mu   sync.Mutex
	dirs map[string]*directory
}

func newFiles(on vfs.FS, limits *fileLimits, dir string, log *slog.Logger) *files {
	return &files{FS: on, limits: limits, dir: dir, log: log, dirs: map[string]*directory{}}
}

// Unwrap implements vfs.FS.
func (f *files) Unwrap() vfs.FS { return f.FS }

// patiently opens something. Errors say what to do about the limit.
func patiently[T any](f *files, open func() (T, error)) (T, error) {
	until := time.Now().Add(f.limits.patience)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		v, err := open()
		if !filelimit.Reached(err) {
			return v, err
		}
		err = filelimit.Explain(err)
		f.tell(err)
		if time.Now().After(until) {
			return v, err
		}
		time.Sleep(pause)
	}
}

// tell says that the limit is reached, for all databases together once in a while.
func (f *files) tell(err error) {
	if !f.limits.told.Due() {
		return
	}
	f.log.Error("a file of the local state can't be opened, which is tried for a while; if that fails the instance ends, and nothing is lost", "directory", f.dir, "error", err)
}

// Create implements vfs.FS.
func (f *files) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return patiently(f, func() (vfs.File, error) { return f.FS.Create(name, category) })
}

// Open implements vfs.FS.
func (f *files) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return patiently(f, func() (vfs.File, error) { return f.FS.Open(name, opts...) })
}

// OpenReadWrite implements vfs.FS.
func (f *files) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return patiently(f, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS. Pebble's own renames the file and then opens it, so one that couldn't be opened has its new name already.
func (f *files) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	reuse := func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, category) }
	return patiently(f, func() (vfs.File, error) {
		file, err := reuse()
		if filelimit.Reached(err) {
			reuse = func() (vfs.File, error) { return f.FS.OpenReadWrite(newname, category) }
		}
		return file, err
	})
}

// Lock implements vfs.FS.
func (f *files) Lock(name string) (io.Closer, error) {
	return patiently(f, func() (io.Closer, error) { return f.FS.Lock(name) })
}

// List implements vfs.FS.
func (f *files) List(dir string) ([]string, error) {
	return patiently(f, func() ([]string, error) { return f.FS.List(dir) })
}

// directory is an open directory that several have. Pebble only syncs it, which they may do at the same time.
type directory struct {
	vfs.File
	name string
	of   *files
	refs int // under of.mu
}

// OpenDir implements vfs.FS.
func (f *files) OpenDir(name string) (vfs.File, error) {
	key := filepath.Clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.dirs[key]
	if d == nil {
		file, err := patiently(f, func() (vfs.File, error) { return f.FS.OpenDir(name) })
		if err != nil {
			return nil, err
		}
		d = &directory{File: file, name: key, of: f}
		f.dirs[key] = d
	}
	d.refs++
	return &directoryHandle{directory: d}, nil
}

// directoryHandle is one user's hold on a directory.
type directoryHandle struct {
	*directory
	closed atomic.Bool
}

// Close implements vfs.File: the last one closes the directory.
func (h *directoryHandle) Close() error {
	if h.closed.Swap(true) {
		return nil
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.refs--; h.refs > 0 {
		return nil
	}
	delete(h.of.dirs, h.name)
	return h.File.Close()
}
