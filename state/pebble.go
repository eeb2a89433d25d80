package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"github.com/tributary-io/tributary/internal/filelimit"
)

// ErrCorruption marks errors of a database whose files are damaged. What to do: set the directory aside, open an empty one and
// restore it from the changelogs.
var ErrCorruption = errors.New("state: database is corrupt")

// ErrLocked marks errors of opening a database that is open already, in this process or another one.
var ErrLocked = errors.New("state: database is in use")

// pebbleBase is a task's Pebble database.
type pebbleBase struct {
	db      *pebble.DB
	res     *Resources
	dir     string
	fs      vfs.FS
	options *pebble.Options
}

func openPebbleBase(dir string, res *Resources, log *slog.Logger) (*pebbleBase, error) {
	memtable, err := res.acquire()
	if err != nil {
		return nil, err
	}
	disk := tellFullDisk(newFiles(res.fs, &res.limits, dir, log), dir, log)
	options := pebbleOptions(res, disk, memtable, log)
	var db *pebble.DB
	if err = markFormat(dir, disk); err == nil {
		db, err = openPebble(dir, options)
	}
	if err != nil {
		res.release(memtable)
		return nil, openError(dir, err)
	}
	b := &pebbleBase{db: db, res: res, dir: dir, fs: disk, options: options}
	if err := b.removeLeftovers(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// openPebble opens a database. What Pebble calls fatal while it does so has left nothing open, and is an error like any other.
func openPebble(dir string, options *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			fatal, ok := r.(*fatalError)
			if !ok {
				panic(r)
			}
			err = fatal
		}
	}()
	return pebble.Open(dir, options)
}

// markFormat notes the newest format version in a directory that isn't there yet. Pebble begins a new database in its oldest one else and goes
// through the versions since, each with a file and a sync of its own, which was half of the time of making one.
func markFormat(dir string, on vfs.FS) error {
	if _, err := on.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := on.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	marker, _, err := atomicfs.LocateMarker(on, dir, "format-version")
	if err != nil {
		return err
	}
	return errors.Join(marker.Move(pebble.FormatNewest.String()), marker.Close())
}

func pebbleOptions(res *Resources, disk vfs.FS, memtable int64, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		Cache:     res.cache,
		FileCache: res.files,
		Comparer:  comparer(),
		// The changelog is the durable log. The WAL only keeps a killed process from losing more than the last batches, so it is
		// never synced.
		WALBytesPerSync:             0,
		MemTableSize:                uint64(memtable),
		MemTableStopWritesThreshold: 3,
		// The front answers most gets, so tables may pile up before they are merged: with memtables of 2 MB a threshold of 16 costs two
		// thirds of the CPU that 4 costs. Scans and the gets that remain go through all of them.
		L0CompactionThreshold:      12,
		L0StopWritesThreshold:      24,
		FormatMajorVersion:         pebble.FormatNewest,
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		Logger:                     pebbleLogger{log},
		FS:                         disk,
		// Without a listener Pebble would take the process down. The read that needs the damaged file fails with the same finding.
		EventListener: &pebble.EventListener{DataCorruption: func(i pebble.DataCorruptionInfo) {
			log.Error("state database is damaged", "file", i.Path, "error", i.Details)
		}},
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].BlockSize = 16 << 10
	}
	o.EnsureDefaults()
	return o
}

func openError(dir string, err error) error {
	switch {
	case isCorruption(err):
		return fmt.Errorf("open state in %s: %w: %w", dir, ErrCorruption, err)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES), strings.Contains(err.Error(), "lock held by current process"):
		return fmt.Errorf("open state in %s: %w (another instance with the same state directory?): %w", dir, ErrLocked, err)
	}
	return fmt.Errorf("open state in %s: %w", dir, err)
}

func isCorruption(err error) bool { return pebble.IsCorruptionError(err) }

// wrap marks errors of reading and writing that come from damaged files.
func (b *pebbleBase) wrap(what string, err error) error {
	if isCorruption(err) {
		return fmt.Errorf("%s in %s: %w: %w", what, b.dir, ErrCorruption, err)
	}
	return fmt.Errorf("%s in %s: %w", what, b.dir, err)
}

func (b *pebbleBase) get(key, dst []byte) ([]byte, bool, error) {
	val, closer, err := b.db.Get(key)
	if err == pebble.ErrNotFound {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, b.wrap("read state", err)
	}
	dst = append(dst, val...)
	if err := closer.Close(); err != nil {
		return dst, false, b.wrap("read state", err)
	}
	return dst, true, nil
}

func (b *pebbleBase) close() error {
	err := b.db.Close()
	b.res.release(int64(b.options.MemTableSize))
	if err != nil {
		return b.wrap("close state", err)
	}
	return nil
}

func (b *pebbleBase) open(c *cursor) error {
	it, err := b.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return b.wrap("scan state", err)
	}
	c.onDisk = pebbleCursor{base: b, it: it}
	c.base = &c.onDisk
	return nil
}

type pebbleCursor struct {
	base    *pebbleBase
	it      *pebble.Iterator
	reverse bool
	valErr  error
}

func (c *pebbleCursor) seek(lower, upper []byte, reverse, prefix bool) bool {
	c.reverse = reverse
	c.it.SetBounds(lower, upper)
	switch {
	case reverse:
		return c.it.Last()
	case prefix:
		return c.it.SeekPrefixGE(lower)
	}
	return c.it.First()
}

func (c *pebbleCursor) next() bool {
	if c.reverse {
		return c.it.Prev()
	}
	return c.it.Next()
}

func (c *pebbleCursor) key() []byte { return c.it.Key() }

func (c *pebbleCursor) value() []byte {
	val, err := c.it.ValueAndErr()
	if err != nil {
		c.valErr = err
	}
	return val
}

func (c *pebbleCursor) err() error {
	if c.it == nil {
		return nil
	}
	if err := errors.Join(c.valErr, c.it.Error()); err != nil {
		return c.base.wrap("scan state", err)
	}
	return nil
}

func (c *pebbleCursor) close() error {
	if c.it == nil {
		return nil
	}
	err := errors.Join(c.valErr, c.it.Close())
	c.it = nil
	if err != nil {
		return c.base.wrap("scan state", err)
	}
	return nil
}

// pebbleLogger passes Pebble's own log on at debug level; what it calls fatal it also returns or panics with.
type pebbleLogger struct{ log *slog.Logger }

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble: " + fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

// stateUnwritable is what is said with the remedy in the middle.
const stateUnwritable = "the local state can't be written any more: %s and start again, nothing is lost"

// fatalError is what Pebble can't go on after, and panics with.
type fatalError struct {
	what  string
	cause error // nil if it isn't known
}

func (e *fatalError) Error() string { return "pebble: " + e.what }
func (e *fatalError) Unwrap() error { return e.cause }

// Fatalf ends the process: Pebble promises nothing once a write to its directory has failed, such as on a full disk. What is on disk is
// still a prefix of the changelog, so a start with space to write in goes on from there.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	fatal := &fatalError{what: fmt.Sprintf(format, args...)}
	remedy := "free space on its disk"
	for _, a := range args {
		if err, ok := a.(error); ok {
			fatal.cause = err
			if filelimit.Reached(err) {
				remedy = "raise the limit of open files"
			}
		}
	}
	l.log.Error(fmt.Sprintf(stateUnwritable, remedy), "error", fatal.Error())
	panic(fatal)
}

// tellFullDisk says what is wrong before Pebble panics: where it can't begin a new log file it does so with a lock in its hands, and all that the
// Go runtime then has to say is that a mutex was unlocked twice.
func tellFullDisk(on vfs.FS, dir string, log *slog.Logger) vfs.FS {
	return vfs.OnDiskFull(on, sync.OnceFunc(func() {
		log.Error(fmt.Sprintf(stateUnwritable, "free space on its disk"), "directory", dir, "error", syscall.ENOSPC)
	}))
}
