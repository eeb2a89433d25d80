package object

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a store in memory, for tests and the harness. What is written with Create is visible at Close.
type Memory struct {
	name string
	now  func() time.Time

	mu      sync.RWMutex
	objects map[string]memoryObject
}

type memoryObject struct {
	data     []byte
	modified time.Time
}

// NewMemory makes an empty store with a name for people.
func NewMemory(name string) *Memory {
	return &Memory{name: "mem://" + name, now: time.Now, objects: map[string]memoryObject{}}
}

// SetClock sets the clock that stamps objects. Call it before the store is used.
func (m *Memory) SetClock(now func() time.Time) { m.now = now }

func (m *Memory) String() string { return m.name }

func (m *Memory) check(ctx context.Context, op, name string) error {
	if !validName(name) {
		return &Error{op, m.name, name, errors.New("not a valid object name")}
	}
	if err := ctx.Err(); err != nil {
		return &Error{op, m.name, name, err}
	}
	return nil
}

func (m *Memory) store(name string, data []byte) {
	m.objects[name] = memoryObject{bytes.Clone(data), m.now()}
}

// PutIfAbsent implements Store.
func (m *Memory) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if err := m.check(ctx, "put if absent", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[name]; ok {
		return &Error{"put if absent", m.name, name, ErrExists}
	}
	m.store(name, data)
	return nil
}

// Put implements Store.
func (m *Memory) Put(ctx context.Context, name string, data []byte) error {
	if err := m.check(ctx, "put", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(name, data)
	return nil
}

// Create implements Store.
func (m *Memory) Create(ctx context.Context, name string) (Writer, error) {
	if err := m.check(ctx, "create", name); err != nil {
		return nil, err
	}
	return &memoryWriter{store: m, name: name}, nil
}

type memoryWriter struct {
	bytes.Buffer
	store *Memory
	name  string
}

func (w *memoryWriter) Close() error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if _, ok := w.store.objects[w.name]; ok {
		return &Error{"close", w.store.name, w.name, ErrExists}
	}
	w.store.store(w.name, w.Bytes())
	return nil
}

func (w *memoryWriter) Abort() { w.Reset() }

// Sync implements Store. There is nothing to do but to see that the objects are there.
func (m *Memory) Sync(ctx context.Context, names ...string) error {
	for _, name := range names {
		if _, err := m.find(ctx, "sync", name); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) find(ctx context.Context, op, name string) (memoryObject, error) {
	if err := m.check(ctx, op, name); err != nil {
		return memoryObject{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	o, ok := m.objects[name]
	if !ok {
		return o, &Error{op, m.name, name, ErrNotFound}
	}
	return o, nil
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, name string) ([]byte, error) {
	o, err := m.find(ctx, "get", name)
	return bytes.Clone(o.data), err
}

// GetRange implements Store.
func (m *Memory) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	o, err := m.find(ctx, "get", name)
	if err != nil {
		return nil, err
	}
	off = min(off, int64(len(o.data)))
	return bytes.Clone(o.data[off:min(off+n, int64(len(o.data)))]), nil
}

// Stat implements Store.
func (m *Memory) Stat(ctx context.Context, name string) (Info, error) {
	o, err := m.find(ctx, "stat", name)
	return Info{name, int64(len(o.data)), o.modified}, err
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := m.check(ctx, "delete", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, name)
	return nil
}

// List implements Store.
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		m.mu.RLock()
		var found []Info
		for name, o := range m.objects {
			if strings.HasPrefix(name, prefix) && name > after {
				found = append(found, Info{name, int64(len(o.data)), o.modified})
			}
		}
		m.mu.RUnlock()
		slices.SortFunc(found, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
		for _, info := range found {
			if err := ctx.Err(); err != nil {
				yield(Info{}, err)
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}
