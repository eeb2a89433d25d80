package object

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// SweepTemp removes temporary files in a folder of the store ("" for its root, not recursive) that were last written before a
// time: what crashes left behind. The time must lie further back than any put can take.
func (l *Local) SweepTemp(dir string, before time.Time) (removed int, err error) {
	folder := filepath.Join(l.root, filepath.FromSlash(dir))
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, l.fail("sweep", dir, err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(before) {
			continue
		}
		if os.Remove(filepath.Join(folder, e.Name())) == nil {
			removed++
		}
	}
	return removed, nil
}
