package state

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestANewDatabaseBeginsInTheNewestFormat makes a database, and one in a directory that is there already: the first has gone through no older format.
func TestANewDatabaseBeginsInTheNewestFormat(t *testing.T) {
	res := NewResources(ResourceOptions{})
	defer res.Close()
	there := t.TempDir()
	for _, dir := range []string{filepath.Join(there, "new", "database"), there} {
		for range 2 { // made, and opened again
			db, err := OpenPebble(dir, []Spec{{Name: "st", Kind: KeyValue}}, res, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := db.pebble.db.FormatMajorVersion(); got != pebble.FormatNewest {
				t.Errorf("%s has format %d", dir, got)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		markers, err := filepath.Glob(filepath.Join(dir, "marker.format-version.*"))
		if err != nil || len(markers) != 1 {
			t.Fatalf("markers %v, %v", markers, err)
		}
		if want := "marker.format-version.000001." + pebble.FormatNewest.String(); dir != there && filepath.Base(markers[0]) != want {
			t.Errorf("%s is marked with %s, want %s", dir, markers[0], want)
		}
	}
}

// TestAFullDiskIsNamedBeforePebblePanics: the log says which directory and what to do, however Pebble takes it.
func TestAFullDiskIsNamedBeforePebblePanics(t *testing.T) {
	res := NewResources(ResourceOptions{})
	defer res.Close()
	res.UseFS(fullFS{vfs.Default})
	var log bytes.Buffer
	dir := t.TempDir()
	_, err := OpenPebble(dir, []Spec{{Name: "st", Kind: KeyValue}}, res, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("opened with %v", err)
	}
	if got := log.String(); strings.Count(got, "free space on its disk") != 1 || !strings.Contains(got, dir) {
		t.Errorf("logged %q", got)
	}
}

// fullFS is a disk on which no file can be made.
type fullFS struct{ vfs.FS }

func (fullFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
}
