package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// memory is an object store.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	puts    int
}

func (m *memory) String() string { return "memory" }

func (m *memory) Put(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[name] = bytes.Clone(data)
	m.puts++
	return nil
}

func (m *memory) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[name]
	if !ok {
		return nil, errors.New("not found")
	}
	return data, nil
}

func (m *memory) Delete(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, name)
	return nil
}

// put writes files to a directory and puts that into the vault.
func put(t *testing.T, v *Vault, files map[string][]byte) (sent int64) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := &Manifest{Application: "app", Task: "1_2"}
	if err := m.Describe(dir); err != nil {
		t.Fatal(err)
	}
	sent, err := v.Put(t.Context(), m, dir)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func fetchFrom(t *testing.T, v *Vault) string {
	t.Helper()
	o := v.Origin("1_2")
	m, err := o.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "into")
	if err := Fetch(t.Context(), o, m, into, quick(new(atomic.Int64))); err != nil {
		t.Fatal(err)
	}
	return into
}

// Checkpoints of a task follow one another: what the last has is sent once, what only the last but one has is removed, and each can be had
// whole, also by another process.
func TestVaultKeepsTheLatest(t *testing.T) {
	store := &memory{objects: map[string][]byte{}}
	v := NewVault(store, "app")
	large := bytes.Repeat([]byte("0123456789"), partBytes/10+100) // two parts
	files := contents()
	files["000009.sst"] = large
	sent := put(t, v, files)
	check(t, fetchFrom(t, v))

	for round := range 3 { // the log changes, a table is compacted away, one is new
		files["000002.log"] = []byte(strings.Repeat("x", round+1))
		delete(files, "000004.sst")
		files["00001"+string(rune('0'+round))+".sst"] = []byte("new")
		again := put(t, v, files)
		if again > sent/100 {
			t.Errorf("round %d: %d bytes sent again of %d", round, again, sent)
		}
		into := fetchFrom(t, NewVault(store, "app"))
		for name, want := range files {
			if got, err := os.ReadFile(filepath.Join(into, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("round %d: %s: %d bytes, %v, want %d", round, name, len(got), err, len(want))
			}
		}
	}
	for name := range store.objects {
		if strings.Contains(name, "000004.sst") {
			t.Errorf("%s is still there", name)
		}
	}
	before := len(store.objects)
	other := NewVault(store, "app") // another process goes on: it can't know that tables of the same name are the same
	if again := put(t, other, files); again < sent/2 {
		t.Errorf("another process sent %d bytes only", again)
	}
	put(t, other, files)
	put(t, other, files)
	if after := len(store.objects); after > before {
		t.Errorf("%d objects, %d before: what the former process left isn't removed: %v", after, before, slices.Sorted(maps.Keys(store.objects)))
	}
}

func TestVaultIsReadFromTheMiddle(t *testing.T) {
	store := &memory{objects: map[string][]byte{}}
	v := NewVault(store, "app")
	data := bytes.Repeat([]byte("0123456789"), partBytes/10+100)
	put(t, v, map[string][]byte{"000009.sst": data})
	m, err := v.Origin("1_2").Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{1, partBytes - 1, partBytes, partBytes + 7} {
		r, err := v.Origin("1_2").Open(t.Context(), m, m.Files[0], from)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data[from:]) {
			t.Errorf("from %d: %d bytes, %v, want %d", from, len(got), err, len(data)-int(from))
		}
	}
}
