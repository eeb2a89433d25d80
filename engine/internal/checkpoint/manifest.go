package checkpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// formatVersion of manifests. A reader refuses others.
const formatVersion = 1

// Manifest says what a checkpoint is.
type Manifest struct {
	Version int    `json:"version"`
	ID      string `json:"id"` // of this checkpoint, unique
	// What it is a checkpoint of.
	Application string `json:"application"`
	Task        string `json:"task"`
	Signature   string `json:"signature"` // of the sub-topology
	// Topics are the ids of the changelog topics: one that was made anew has another.
	Topics map[string]string `json:"topics"`
	// Offsets are the next offsets to read by store.
	Offsets map[string]int64 `json:"offsets"`
	Taken   time.Time        `json:"taken"`
	Files   []File           `json:"files"`
	// SumsLater says that the files' checksums aren't in it: Origin.Whole gives them.
	SumsLater bool `json:"sums_later,omitempty"`
	// PartBytes is the size of the parts that files are kept in, in a vault.
	PartBytes int64 `json:"part_bytes,omitempty"`
	// Garbage are files that only the checkpoint before this one in the vault has.
	Garbage []File `json:"garbage,omitempty"`
}

// File is a file of a checkpoint.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	CRC32C uint32 `json:"crc32c"`
	// Place is the id of the checkpoint that the file came to the vault with.
	Place string `json:"place,omitempty"`
}

// Bytes is the size of all files.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// fileName is what files may be called: nothing that leaves a directory.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Parse reads a manifest and checks its form.
func Parse(data []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("checkpoint manifest: %w", err)
	}
	if m.Version != formatVersion {
		return nil, fmt.Errorf("checkpoint manifest of version %d, this instance reads %d", m.Version, formatVersion)
	}
	if m.ID == "" || len(m.Files) == 0 {
		return nil, errors.New("checkpoint manifest without an id or files")
	}
	for _, f := range m.Garbage {
		if !fileName.MatchString(f.Name) || !fileName.MatchString(f.Place) {
			return nil, fmt.Errorf("checkpoint manifest: garbage %q in %q can't be", f.Name, f.Place)
		}
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		if !fileName.MatchString(f.Name) || f.Size < 0 || seen[f.Name] || f.Place != "" && !fileName.MatchString(f.Place) {
			return nil, fmt.Errorf("checkpoint manifest: file %q of %d bytes can't be", f.Name, f.Size)
		}
		seen[f.Name] = true
	}
	return m, nil
}

// Describe fills in the files of a checkpoint in dir with their checksums. It reads them all, some at a time.
func (m *Manifest) Describe(dir string) error {
	if err := m.list(dir); err != nil {
		return err
	}
	return m.sum(context.Background(), dir)
}

// list fills in the files of a checkpoint in dir, the largest first, without their checksums.
func (m *Manifest) list(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list checkpoint: %w", err)
	}
	m.Version, m.Files = formatVersion, nil
	for _, e := range entries {
		if e.Name() == "LOCK" { // of whoever has looked at it
			continue
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("list checkpoint: %w", err)
		}
		m.Files = append(m.Files, File{Name: e.Name(), Size: info.Size()})
	}
	slices.SortFunc(m.Files, func(a, b File) int { return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Name, b.Name)) })
	return nil
}

// sum fills in the checksums of the files that are listed.
func (m *Manifest) sum(ctx context.Context, dir string) error {
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(sumsAtOnce)
	for i := range m.Files {
		reading.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			f := &m.Files[i]
			size, crc, err := sum(filepath.Join(dir, f.Name))
			if err == nil && size != f.Size {
				err = fmt.Errorf("%s has %d bytes, and had %d", f.Name, size, f.Size)
			}
			f.CRC32C = crc
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	return nil
}

// sumsAtOnce is how many files are read at a time.
const sumsAtOnce = 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(path string) (size int64, crc uint32, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	size, err = io.CopyBuffer(h, struct{ io.Reader }{f}, make([]byte, 256<<10))
	return size, h.Sum32(), err
}
