package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Store is what a vault needs of an object store. Put is atomic and replaces; a Get of what isn't there is an error; a Delete of it isn't.
type Store interface {
	String() string
	Put(ctx context.Context, name string, data []byte) error
	Get(ctx context.Context, name string) ([]byte, error)
	Delete(ctx context.Context, name string) error
}

// Vault keeps the latest checkpoint of each task of an application in an object store:
//
//	<application>/checkpoints/<task>/manifest.json    the latest one
//	<application>/checkpoints/<task>/<id>/<file>.<n>  its files, in parts
//
// Tables don't change, so a checkpoint refers to those that the one before it has put there. Its methods may be called from any goroutine.
type Vault struct {
	store       Store
	application string

	mu   sync.Mutex
	last map[string]*Manifest // by task: what this process put last
}

// partBytes is the size of a part.
const partBytes = 16 << 20

// NewVault makes a vault of an application's checkpoints.
func NewVault(store Store, application string) *Vault {
	return &Vault{store: store, application: application, last: map[string]*Manifest{}}
}

func (v *Vault) String() string { return v.store.String() }

func (v *Vault) place(task, id string) string {
	return v.application + "/checkpoints/" + task + "/" + id
}

func (v *Vault) manifest(task string) string {
	return v.application + "/checkpoints/" + task + "/manifest.json"
}

// Put makes a checkpoint, which is in dir and described by m, the latest one of its task. What only the last one had is listed in it, and
// removed by the next Put, of whatever process: whoever is just reading the last one can go on. sent is in bytes.
func (v *Vault) Put(ctx context.Context, m *Manifest, dir string) (sent int64, err error) {
	m.ID, m.PartBytes = newID(), partBytes
	before, err := v.before(ctx, m.Task)
	if err != nil {
		return 0, err
	}
	for i := range m.Files {
		f := &m.Files[i]
		if f.Place = v.reuse(m.Task, *f); f.Place != "" {
			continue
		}
		f.Place = m.ID
		if err := v.putFile(ctx, m.Task, *f, filepath.Join(dir, f.Name)); err != nil {
			return sent, fmt.Errorf("keep checkpoint of task %s in %s: %w", m.Task, v.store, err)
		}
		sent += f.Size
	}
	m.Garbage = onlyIn(before, m)
	data, err := json.Marshal(m)
	if err != nil {
		return sent, err
	}
	if err := v.store.Put(ctx, v.manifest(m.Task), data); err != nil {
		return sent, fmt.Errorf("keep checkpoint of task %s in %s: %w", m.Task, v.store, err)
	}
	v.mu.Lock()
	v.last[m.Task] = m
	v.mu.Unlock()
	return sent, v.removeGarbage(ctx, before, m)
}

// before gives the checkpoint that is the latest one so far; nil if there is none.
func (v *Vault) before(ctx context.Context, task string) (*Manifest, error) {
	v.mu.Lock()
	last := v.last[task]
	v.mu.Unlock()
	if last != nil {
		return last, nil
	}
	data, err := v.store.Get(ctx, v.manifest(task))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // there is none yet, most likely; if not, the next Put fails, too
		return nil, nil
	}
	m, err := Parse(data)
	if err != nil || m.PartBytes <= 0 {
		return nil, nil // not ours, or of a later version: it is replaced
	}
	return m, nil
}

// reuse finds where this process has put a file already. Tables of the same name that others have put may be others.
func (v *Vault) reuse(task string, f File) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.last[task]
	if last == nil || !strings.HasSuffix(f.Name, ".sst") {
		return ""
	}
	for _, k := range last.Files {
		if k.Name == f.Name && k.Size == f.Size && k.CRC32C == f.CRC32C {
			return k.Place
		}
	}
	return ""
}

// Forget has the next checkpoint of a task refer to nothing: its database is another one from now on.
func (v *Vault) Forget(task string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.last, task)
}

func (v *Vault) putFile(ctx context.Context, task string, f File, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	for n, name := range partsOf(f) {
		part := make([]byte, min(partBytes, f.Size-int64(n)*partBytes))
		if _, err := io.ReadFull(in, part); err != nil {
			return fmt.Errorf("read %s: %w", f.Name, err)
		}
		if err := v.store.Put(ctx, v.place(task, f.Place)+"/"+name, part); err != nil {
			return err
		}
	}
	return nil
}

// partsOf names the parts of a file.
func partsOf(f File) []string {
	var names []string
	for n := int64(0); n*partBytes < f.Size; n++ {
		names = append(names, fmt.Sprintf("%s.%d", f.Name, n))
	}
	return names
}

// onlyIn lists the files of a checkpoint that the next one doesn't refer to.
func onlyIn(before, next *Manifest) (files []File) {
	if before == nil {
		return nil
	}
	needed := map[File]bool{}
	for _, f := range next.Files {
		needed[f] = true
	}
	for _, f := range before.Files {
		if !needed[f] {
			files = append(files, f)
		}
	}
	return files
}

// removeGarbage removes what the checkpoint before the latest one lists as garbage.
func (v *Vault) removeGarbage(ctx context.Context, before, latest *Manifest) error {
	if before == nil {
		return nil
	}
	var errs []error
	for _, f := range before.Garbage {
		for _, name := range partsOf(f) {
			errs = append(errs, v.store.Delete(ctx, v.place(latest.Task, f.Place)+"/"+name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove an old checkpoint of task %s from %s: %w", latest.Task, v.store, err)
	}
	return nil
}

// Origin is the latest checkpoint of a task in the vault.
func (v *Vault) Origin(task string) Origin { return vaultOrigin{v, task} }

type vaultOrigin struct {
	*Vault
	task string
}

// Manifest implements Origin.
func (o vaultOrigin) Manifest(ctx context.Context) (*Manifest, error) {
	data, err := o.store.Get(ctx, o.manifest(o.task))
	if err != nil {
		return nil, err
	}
	m, err := Parse(data)
	if err == nil && m.PartBytes != partBytes {
		err = fmt.Errorf("the checkpoint of task %s in %s has parts of %d bytes, this instance reads %d", o.task, o.store, m.PartBytes, partBytes)
	}
	return m, err
}

// Whole implements Origin: the checksums were put with it.
func (o vaultOrigin) Whole(_ context.Context, m *Manifest) (*Manifest, error) { return m, nil }

// Open implements Origin.
func (o vaultOrigin) Open(ctx context.Context, _ *Manifest, file File, from int64) (io.ReadCloser, error) {
	r := &partReader{ctx: ctx, store: o.store, place: o.place(o.task, file.Place), parts: partsOf(file)[from/partBytes:]}
	if skip := from % partBytes; skip > 0 {
		if _, err := io.CopyN(io.Discard, r, skip); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Done implements Origin: others may need it.
func (o vaultOrigin) Done(context.Context, *Manifest) {}

// partReader reads parts one after the other.
type partReader struct {
	ctx   context.Context
	store Store
	place string
	parts []string
	part  bytes.Reader
}

func (r *partReader) Read(p []byte) (int, error) {
	for r.part.Len() == 0 {
		if len(r.parts) == 0 {
			return 0, io.EOF
		}
		data, err := r.store.Get(r.ctx, r.place+"/"+r.parts[0])
		if err != nil {
			return 0, err
		}
		r.parts = r.parts[1:]
		r.part.Reset(data)
	}
	return r.part.Read(p)
}

func (r *partReader) Close() error { return nil }
