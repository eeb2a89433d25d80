package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestADatabaseKeepsFewFilesOpen: tasks come by the thousand, and many processes may open 1024 files.
func TestADatabaseKeepsFewFilesOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("open files are counted on Linux only")
	}
	root := t.TempDir()
	open := func() (names []string) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(name, root) {
				names = append(names, name)
			}
		}
		return names
	}
	res := NewResources(ResourceOptions{})
	defer res.Close()
	const databases = 5
	for round := range 2 { // made, and opened again
		var all []*DB
		for i := range databases {
			db, err := OpenPebble(filepath.Join(root, fmt.Sprint("task-", i)), []Spec{{Name: "st", Kind: KeyValue}}, res, Options{})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, db)
		}
		if names := open(); round == 0 && len(names) != databases*filesPerDatabase || len(names) > res.FilesFor(databases) {
			t.Errorf("%d files are open in %d databases: %v", len(names), databases, names)
		}
		for _, db := range all {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if names := open(); len(names) > 0 {
			t.Errorf("closed databases keep %v", names)
		}
	}
}

// crowded is the file system of a process that has as many files open as it may: after so many others, so many can't be opened.
type crowded struct {
	vfs.FS
	after, refuse atomic.Int64
}

func (c *crowded) refused(op, name string) error {
	if c.refuse.Load() > 0 && c.after.Add(-1) < 0 {
		c.refuse.Add(-1)
		return &fs.PathError{Op: op, Path: name, Err: syscall.EMFILE}
	}
	return nil
}

func (c *crowded) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.refused("create", name); err != nil {
		return nil, err
	}
	return c.FS.Create(name, category)
}

// ReuseForWrite fails as that of Pebble does: behind the renaming.
func (c *crowded) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.refused("open", newname); err != nil {
		return nil, errors.Join(err, c.Rename(oldname, newname))
	}
	return c.FS.ReuseForWrite(oldname, newname, category)
}

func (c *crowded) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := c.refused("open", name); err != nil {
		return nil, err
	}
	return c.FS.OpenReadWrite(name, category, opts...)
}

func (c *crowded) OpenDir(name string) (vfs.File, error) {
	if err := c.refused("open", name); err != nil {
		return nil, err
	}
	return c.FS.OpenDir(name)
}

// TestFilesThatCantBeOpenedAreWaitedFor: as Pebble has it, a log file that can't be begun takes the process down, with a mutex that is unlocked twice as the
// reason.
func TestFilesThatCantBeOpenedAreWaitedFor(t *testing.T) {
	res := NewResources(ResourceOptions{})
	defer res.Close()
	disk := &crowded{FS: vfs.Default}
	res.UseFS(disk)
	disk.refuse.Store(3)
	var log bytes.Buffer
	dir := filepath.Join(t.TempDir(), "task")
	db, err := OpenPebble(dir, []Spec{{Name: "st", Kind: KeyValue}}, res, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	disk.refuse.Store(4) // a new log, and a table
	if err := db.pebble.db.Set([]byte("key"), []byte("value"), nil); err != nil {
		t.Fatal(err)
	}
	if err := db.pebble.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if left := disk.refuse.Load(); left > 0 {
		t.Errorf("%d files were not asked for", left)
	}
	if got := log.String(); strings.Count(got, "LimitNOFILE=") != 1 || !strings.Contains(got, dir) {
		t.Errorf("logged %q", got)
	}
}

// TestAFileThatIsUsedAgainIsWaitedFor: Pebble writes its logs into the files of former ones.
func TestAFileThatIsUsedAgainIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	old, log := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	if err := os.WriteFile(old, []byte("log"), 0o644); err != nil {
		t.Fatal(err)
	}
	disk := &crowded{FS: vfs.Default}
	disk.refuse.Store(3)
	f, err := newFiles(disk, &fileLimits{patience: openPatience}, dir, slog.New(slog.DiscardHandler)).ReuseForWrite(old, log, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(log); err != nil || string(got) != "log" {
		t.Errorf("the file has %q, %v", got, err)
	}
}

// TestADatabaseThatCantBeOpenedSaysHowTheLimitIsRaised where it was waited for in vain: whichever file it is that can't be opened, it is an error, and
// the database can be opened afterwards.
func TestADatabaseThatCantBeOpenedSaysHowTheLimitIsRaised(t *testing.T) {
	res := NewResources(ResourceOptions{})
	defer res.Close()
	res.limits.patience = time.Millisecond
	disk := &crowded{FS: vfs.Default}
	res.UseFS(disk)
	open := func(dir string) (*DB, error) {
		return OpenPebble(dir, []Spec{{Name: "st", Kind: KeyValue}}, res, Options{Log: slog.New(slog.DiscardHandler)})
	}
	for file := range int64(7) { // without one that Pebble opens later than these it leaves a goroutine behind
		dir := filepath.Join(t.TempDir(), "task")
		disk.after.Store(file)
		disk.refuse.Store(1 << 40)
		_, err := open(dir)
		disk.refuse.Store(0)
		if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "LimitNOFILE=") {
			t.Errorf("without file %d it is opened with %v", file, err)
		}
		db, err := open(dir)
		if err != nil {
			t.Fatalf("after having failed for file %d it is opened with %v", file, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenTablesKeepWithinTheLimit of the process.
func TestOpenTablesKeepWithinTheLimit(t *testing.T) {
	for limit, want := range map[int]int{0: 4096, 100: 64, 1024: 256, 20000: 4096} {
		if got := defaultOpenFiles(limit); got != want {
			t.Errorf("with a limit of %d files %d tables may be open, want %d", limit, got, want)
		}
	}
}

// TestFilesFor: what docs/operations/open-files.md says of 1,024 files, with three brokers and an HTTP server beside the databases.
func TestFilesFor(t *testing.T) {
	res := NewResources(ResourceOptions{MaxOpenFiles: defaultOpenFiles(1024)})
	defer res.Close()
	const others = 60 + 3*12
	if n := res.FilesFor(138) + others; n > 1024 {
		t.Errorf("138 databases need %d files", n)
	}
	if n := res.FilesFor(139) + others; n <= 1024 {
		t.Errorf("139 databases need %d files", n)
	}
	if n := res.FilesFor(0); n != 0 {
		t.Errorf("no database needs %d files", n)
	}
}
