package object

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Local is a store in a folder. Its put-if-absent is link(2) of a synced temporary file: it holds between processes, and on
// network file systems whose link is atomic. Temporary files start with tempPrefix and are never listed; one that a crash
// left behind is removed by SweepTemp.
type Local struct{ root string }

const tempPrefix = ".tmp-"

// NewLocal opens a folder as a store and makes it if it isn't there.
func NewLocal(dir string) (*Local, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", dir, err)
	}
	if err := makeDirs(root); err != nil {
		return nil, fmt.Errorf("open object store %s: %w", dir, err)
	}
	return &Local{root: root}, nil
}

func (l *Local) String() string { return l.root }

// path checks a name and returns its file.
func (l *Local) path(op, name string) (string, error) {
	if !validName(name) {
		return "", &Error{op, l.root, name, errors.New("not a valid object name")}
	}
	return filepath.Join(l.root, filepath.FromSlash(name)), nil
}

// PutIfAbsent implements Store.
func (l *Local) PutIfAbsent(_ context.Context, name string, data []byte) error {
	const op = "put if absent"
	path, err := l.path(op, name)
	if err != nil {
		return err
	}
	temp, err := l.writeTemp(path, data)
	if err != nil {
		return l.fail(op, name, err)
	}
	defer os.Remove(temp)
	if err := os.Link(temp, path); err != nil {
		return l.fail(op, name, linkError(err))
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		// The link is there, but a power cut may still take it away.
		return l.fail(op, name, fmt.Errorf("%w: %w", ErrUnknown, err))
	}
	return nil
}

// linkError sorts the errors of link(2): some say that nothing happened; any other (an I/O error, a server of a network file
// system that doesn't answer) leaves it open.
func linkError(err error) error {
	for _, clear := range []error{fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMLINK, syscall.ENOTDIR} {
		if errors.Is(err, clear) {
			return err
		}
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("the file system has no hard links, by which commits are made atomic: %w; use another one", err)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// Put implements Store.
func (l *Local) Put(_ context.Context, name string, data []byte) error {
	const op = "put"
	path, err := l.path(op, name)
	if err != nil {
		return err
	}
	temp, err := l.writeTemp(path, data)
	if err != nil {
		return l.fail(op, name, err)
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return l.fail(op, name, err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return l.fail(op, name, fmt.Errorf("%w: %w", ErrUnknown, err))
	}
	return nil
}

// writeTemp writes and syncs a temporary file beside path. On an error nothing is left behind.
func (l *Local) writeTemp(path string, data []byte) (temp string, err error) {
	temp = tempPath(path)
	f, err := create(temp)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(temp)
	}
	return temp, err
}

// tempPath returns a new name for a temporary file beside path.
func tempPath(path string) string {
	var id [12]byte
	_, _ = rand.Read(id[:]) // never fails
	return filepath.Join(filepath.Dir(path), tempPrefix+hex.EncodeToString(id[:]))
}

// create makes a new file, and its folders if they are missing.
func create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDirs(filepath.Dir(path)); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	}
	return f, err
}

// makeDirs makes a folder and its parents, durably: a folder lost in a power cut takes synced files with it.
func makeDirs(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDirs(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// Create implements Store. The file gets its name at Close, so that nobody ever sees half of it; it isn't synced.
func (l *Local) Create(_ context.Context, name string) (Writer, error) {
	path, err := l.path("create", name)
	if err != nil {
		return nil, err
	}
	f, err := create(tempPath(path))
	if err != nil {
		return nil, l.fail("create", name, err)
	}
	return &localWriter{store: l, name: name, path: path, file: f}, nil
}

type localWriter struct {
	store  *Local
	name   string
	path   string
	file   *os.File
	closed bool
}

func (w *localWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	if err != nil {
		return n, w.store.fail("write", w.name, err)
	}
	return n, nil
}

func (w *localWriter) Close() error {
	w.closed = true
	defer os.Remove(w.file.Name())
	err := w.file.Close()
	if err == nil {
		err = os.Link(w.file.Name(), w.path)
	}
	return w.store.fail("close", w.name, err)
}

func (w *localWriter) Abort() {
	if w.closed {
		return
	}
	w.closed = true
	w.file.Close()
	os.Remove(w.file.Name())
}

// syncParallel bounds the syncs in flight at once: the file system groups concurrent ones into few flushes.
const syncParallel = 8

// Sync implements Store: all files and their folders at once. No order is needed among them.
func (l *Local) Sync(_ context.Context, names ...string) error {
	var group errgroup.Group
	group.SetLimit(syncParallel)
	var dirs []string
	for _, name := range names {
		group.Go(func() error {
			path, err := l.path("sync", name)
			if err != nil {
				return err
			}
			return l.fail("sync", name, syncFile(path))
		})
		if dir := filepath.Dir(filepath.Join(l.root, filepath.FromSlash(name))); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
			group.Go(func() error { return l.fail("sync", name, syncDir(dir)) })
		}
	}
	return group.Wait()
}

// syncFile flushes a file that may have been written through another handle: fsync works on the inode.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Get implements Store.
func (l *Local) Get(_ context.Context, name string) ([]byte, error) {
	path, err := l.path("get", name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	return data, l.fail("get", name, err)
}

// GetRange implements Store.
func (l *Local) GetRange(_ context.Context, name string, off, n int64) ([]byte, error) {
	path, err := l.path("get", name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, l.fail("get", name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, off, n))
	return data, l.fail("get", name, err)
}

// Stat implements Store.
func (l *Local) Stat(_ context.Context, name string) (Info, error) {
	path, err := l.path("stat", name)
	if err != nil {
		return Info{}, err
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return Info{}, l.fail("stat", name, err)
	}
	return Info{name, info.Size(), info.ModTime()}, nil
}

// Delete implements Store.
func (l *Local) Delete(_ context.Context, name string) error {
	path, err := l.path("delete", name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l.fail("delete", name, err)
	}
	return nil
}

// List implements Store.
func (l *Local) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
		l.list(ctx, dir, prefix, after, yield)
	}
}

// list yields the objects in a folder ("" or ending in a slash) and below. It returns false to stop.
func (l *Local) list(ctx context.Context, dir, prefix, after string, yield func(Info, error) bool) bool {
	names, err := l.readDir(dir, prefix, after)
	if err != nil {
		yield(Info{}, l.fail("list", dir, err))
		return false
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			yield(Info{}, err)
			return false
		}
		if strings.HasSuffix(name, "/") {
			if !l.list(ctx, name, prefix, after, yield) {
				return false
			}
			continue
		}
		info, err := os.Lstat(filepath.Join(l.root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since
		}
		if err != nil {
			yield(Info{}, l.fail("list", name, err))
			return false
		}
		if !yield(Info{name, info.Size(), info.ModTime()}, nil) {
			return false
		}
	}
	return true
}

// readDir returns the names in a folder that can lead to results, sorted; folders end in a slash, which also sorts them where
// the names below them belong.
func (l *Local) readDir(dir, prefix, after string) ([]string, error) {
	f, err := os.Open(filepath.Join(l.root, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var names []string
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			name := dir + e.Name()
			if e.IsDir() {
				name += "/"
				if strings.HasPrefix(name, prefix) || strings.HasPrefix(prefix, name) {
					if name > after || strings.HasPrefix(after, name) {
						names = append(names, name)
					}
				}
				continue
			}
			if name > after && strings.HasPrefix(name, prefix) && !strings.HasPrefix(e.Name(), tempPrefix) {
				names = append(names, name)
			}
		}
		if err == io.EOF || errors.Is(err, syscall.ENOTDIR) {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// fail wraps err with what was tried, and with the error that callers test for. A nil err stays nil.
func (l *Local) fail(op, name string, err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		err = ErrNotFound
	case errors.Is(err, fs.ErrExist):
		err = ErrExists
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		err = fmt.Errorf("%w: %w; free space on the disk, nothing is lost", ErrNoSpace, err)
	}
	return &Error{op, l.root, name, err}
}

// validName says whether a name is one that Store allows.
func validName(name string) bool {
	if name == "" {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\x00\\") {
			return false
		}
	}
	return true
}
