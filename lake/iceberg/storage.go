package iceberg

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	icebergo "github.com/apache/iceberg-go/io"
)

// useDurableFiles makes iceberg-go's local files survive a loss of power, once for the process: its own are not synchronized, so
// that a catalog could point to metadata that never reached the disk.
var useDurableFiles = sync.OnceFunc(func() {
	open := func(context.Context, *url.URL, map[string]string) (icebergo.IO, error) { return durableFS{}, nil }
	for _, scheme := range []string{"file", ""} {
		icebergo.Unregister(scheme)
		icebergo.Register(scheme, open)
	}
})

// durableFS is a local disk on which a file that was closed, or written, is there after a loss of power.
type durableFS struct{ icebergo.LocalFS }

func (d durableFS) Create(name string) (icebergo.FileWriter, error) {
	w, err := d.LocalFS.Create(name)
	if f, ok := w.(*os.File); err == nil && ok {
		return &durableFile{File: f}, nil
	}
	return w, err
}

func (d durableFS) WriteFile(name string, content []byte) error {
	w, err := d.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		w.Close()
		return err
	}
	return w.Close()
}

type durableFile struct{ *os.File }

// Close synchronizes the file and its folder.
func (f *durableFile) Close() error {
	if err := errors.Join(f.Sync(), f.File.Close()); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // it knows no synchronization of folders
		return nil
	}
	dir, err := os.Open(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// recorder notes which files are written through it, so that those of a refused commit can be removed.
type recorder struct {
	icebergo.WriteFileIO
	mu    sync.Mutex
	names []string
}

func (r *recorder) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
}

func (r *recorder) Create(name string) (icebergo.FileWriter, error) {
	r.note(name)
	return r.WriteFileIO.Create(name)
}

func (r *recorder) WriteFile(name string, p []byte) error {
	r.note(name)
	return r.WriteFileIO.WriteFile(name, p)
}

// remove deletes what was written, as far as possible, and forgets it.
func (r *recorder) remove() (removed int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		switch e := r.WriteFileIO.Remove(name); {
		case e == nil:
			removed++
		case !errors.Is(e, fs.ErrNotExist):
			err = errors.Join(err, e)
		}
	}
	r.names = nil
	return removed, err
}
