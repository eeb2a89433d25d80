package gokacompat_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-io/tributary/internal/leaks"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lovoo/goka/storage"

	"github.com/tributary-io/tributary/gokacompat"
	"github.com/tributary-io/tributary/internal/child"
)

func TestMain(m *testing.M) {
	child.Main(map[string]child.Role{"write": child.As(writeUntilKilled)})
	leaks.Main(m)
}

// openStorage opens partition 0 of a table below dir.
func openStorage(t testing.TB, dir string) storage.Storage {
	t.Helper()
	s, err := gokacompat.Storage(dir)("t-table", 0)
	if err == nil {
		err = s.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pairs goes over an iterator.
func pairs(t testing.TB, it storage.Iterator, err error) (all []string) {
	t.Helper()
	ok(t, err)
	defer it.Release()
	for it.Next() {
		value, err := it.Value()
		ok(t, err)
		all = append(all, string(it.Key())+"="+string(value))
	}
	ok(t, it.Err())
	return all
}

func TestStorageKeepsPairsAndOffset(t *testing.T) {
	dir := t.TempDir()
	s := openStorage(t, dir)
	if at, err := s.GetOffset(-3); at != -3 || err != nil {
		t.Errorf("the offset of nothing is %d, %v", at, err)
	}
	ok(t, s.Set("a", []byte("1")))
	ok(t, s.Set("b", []byte{}))
	ok(t, s.Set("c", []byte("3")))
	ok(t, s.SetOffset(4)) // a recovery: what came before is in the topic
	ok(t, s.MarkRecovered())
	ok(t, s.Set("a", []byte("11")))
	ok(t, s.Delete("c"))
	for key, want := range map[string]any{"a": "11", "b": "", "c": nil, "d": nil} {
		value, err := s.Get(key)
		ok(t, err)
		has, err := s.Has(key)
		ok(t, err)
		if want == nil && (value != nil || has) || want != nil && (value == nil || string(value) != want || !has) {
			t.Errorf("%s is %q, has %v, want %v", key, value, has, want)
		}
	}
	ok(t, s.SetOffset(5)) // of a's second value; c's delete is not acknowledged
	ok(t, s.Close())

	s = openStorage(t, dir)
	if at, err := s.GetOffset(0); at != 5 || err != nil {
		t.Errorf("offset %d, %v", at, err)
	}
	it, err := s.Iterator()
	if diff := cmp.Diff([]string{"a=11", "b=", "c=3"}, pairs(t, it, err)); diff != "" {
		t.Errorf("after the start (-want +got):\n%s", diff)
	}
	ok(t, s.SetOffset(8)) // without a value, as goka's own tests do
	ok(t, s.Close())
	s = openStorage(t, dir)
	if at, err := s.GetOffset(0); at != 8 || err != nil {
		t.Errorf("offset %d, %v", at, err)
	}
}

func TestStorageRefuses(t *testing.T) {
	s, err := gokacompat.Storage(t.TempDir())("t", 0)
	ok(t, err)
	if s.Set("a", []byte("1")) == nil || s.SetOffset(1) == nil || s.MarkRecovered() == nil {
		t.Error("a storage that isn't open was written")
	}
	if _, err := s.Get("a"); err == nil {
		t.Error("a storage that isn't open was read")
	}
	if _, err := s.Iterator(); err == nil {
		t.Error("a storage that isn't open was iterated over")
	}
	ok(t, s.Open())
	if s.Open() == nil {
		t.Error("opened twice")
	}
	if s.Set("a", nil) == nil {
		t.Error("a nil value was set")
	}
	ok(t, s.Close())
	ok(t, s.Close())
}

// A damaged database is set aside: goka fills a new one.
func TestDamagedStorageIsSetAside(t *testing.T) {
	dir := t.TempDir()
	s := openStorage(t, dir)
	ok(t, s.Set("a", []byte("1")))
	ok(t, s.SetOffset(7))
	ok(t, s.Close())
	manifests, err := filepath.Glob(filepath.Join(dir, "t-table.0", "MANIFEST-*"))
	ok(t, err)
	for _, m := range manifests {
		ok(t, os.WriteFile(m, []byte("not a manifest at all"), 0o644))
	}
	s = openStorage(t, dir)
	if at, err := s.GetOffset(-3); at != -3 || err != nil {
		t.Errorf("offset %d, %v", at, err)
	}
	entries, err := os.ReadDir(dir)
	ok(t, err)
	if len(entries) != 2 {
		t.Errorf("%v: the damaged database is gone", entries)
	}
}

// Storages give what goka's own in memory gives, through random writes, offsets, iterators and starts.
func TestStorageAgainstGokas(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 3))
		dir := t.TempDir()
		ours, model := openStorage(t, dir), storage.NewMemory()
		offset := int64(-1)
		key := func() string { return fmt.Sprint("k", random.IntN(20)) }
		for range 400 {
			offset++
			k := key()
			if random.IntN(4) == 0 {
				ok(t, errors.Join(ours.Delete(k), model.Delete(k)))
			} else {
				v := []byte(fmt.Sprint("v", offset))
				ok(t, errors.Join(ours.Set(k, v), model.Set(k, v)))
			}
			ok(t, ours.SetOffset(offset))
			if random.IntN(50) == 0 {
				ok(t, ours.MarkRecovered())
			}
			if random.IntN(10) > 0 {
				continue
			}
			if random.IntN(3) == 0 { // all is acknowledged: nothing may be lost
				ok(t, ours.Close())
				ours = openStorage(t, dir)
			}
			a, b := key(), key()
			compareIterators(t, ours, model, a, max(a, b)+"x", key())
		}
	}
}

func compareIterators(t *testing.T, ours, model storage.Storage, from, to, at string) {
	t.Helper()
	i, err := ours.Iterator()
	j, err2 := model.Iterator()
	if diff := cmp.Diff(pairs(t, j, err2), pairs(t, i, err)); diff != "" {
		t.Fatalf("all (-goka +got):\n%s", diff)
	}
	i, err = ours.IteratorWithRange([]byte(from), []byte(to))
	j, err2 = model.IteratorWithRange([]byte(from), []byte(to))
	if diff := cmp.Diff(pairs(t, j, err2), pairs(t, i, err)); diff != "" {
		t.Fatalf("%s to %s (-goka +got):\n%s", from, to, diff)
	}
	i, err = ours.IteratorWithRange([]byte("k1"), nil)
	var begin []string
	all, err2 := model.Iterator()
	for _, p := range pairs(t, all, err2) {
		if strings.HasPrefix(p, "k1") {
			begin = append(begin, p)
		}
	}
	if diff := cmp.Diff(begin, pairs(t, i, err)); diff != "" {
		t.Fatalf("by prefix (-want +got):\n%s", diff)
	}
	seek(t, ours, model, at)
}

// seek compares where Seek leads; goka's in memory looks for a prefix, so only keys that are there are comparable.
func seek(t *testing.T, ours, model storage.Storage, at string) {
	t.Helper()
	if has, _ := model.Has(at); !has {
		return
	}
	i, err := ours.Iterator()
	ok(t, err)
	defer i.Release()
	if !i.Seek([]byte(at)) || string(i.Key()) != at {
		t.Fatalf("sought %s, found %q, %v", at, i.Key(), i.Err())
	}
	if i.Next() && string(i.Key()) <= at {
		t.Fatalf("behind %s comes %q", at, i.Key())
	}
}

// An iterator shows the storage as it was; readers go beside the writer.
func TestStorageIsReadBesideTheWriter(t *testing.T) {
	s := openStorage(t, t.TempDir())
	ok(t, s.MarkRecovered())
	ok(t, s.Set("a", []byte("1")))
	it, err := s.Iterator()
	ok(t, err)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if v, err := s.Get("a"); err != nil || v == nil {
					t.Errorf("%q, %v", v, err)
					return
				}
				it, err := s.Iterator()
				if err != nil {
					t.Error(err)
					return
				}
				it.Next()
				it.Release()
			}
		})
	}
	for i := range int64(3000) {
		ok(t, s.Set("a", []byte(fmt.Sprint(i))))
		ok(t, s.Set(fmt.Sprint("b", i), []byte("x")))
		ok(t, s.SetOffset(2*i+1))
	}
	close(stop)
	readers.Wait()
	if diff := cmp.Diff([]string{"a=1"}, pairs(t, it, nil)); diff != "" {
		t.Errorf("the picture has changed (-want +got):\n%s", diff)
	}
}

// written is what the nth write does: its key, and its value, nil for a delete.
func written(n int64) (key string, value []byte) {
	key = fmt.Sprint("k", n%37)
	if n%5 != 4 {
		value = []byte(fmt.Sprint(n))
	}
	return key, value
}

// writeUntilKilled does to a storage what goka's processor does: it writes, and tells offsets later, those of values only, and never offset 0.
func writeUntilKilled(ctx context.Context, dir string) error {
	s, err := gokacompat.Storage(dir)("t-table", 0)
	if err == nil {
		err = s.Open()
	}
	if err != nil {
		return err
	}
	at, err := s.GetOffset(-1)
	if err != nil {
		return err
	}
	if err := s.MarkRecovered(); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	acked := at + 1
	for n := at + 1; ctx.Err() == nil; n++ {
		key, value := written(n)
		if value == nil {
			err = s.Delete(key)
		} else {
			err = s.Set(key, value)
		}
		for ; err == nil && acked <= n && random.IntN(100) > 0 && n-acked > random.Int64N(50); acked++ {
			if _, value := written(acked); value != nil && acked > 0 {
				err = s.SetOffset(acked)
			}
		}
		if err != nil {
			return err
		}
		if n%1000 == 0 {
			fmt.Println("written", n)
		}
	}
	return nil
}

// After kill -9 the storage is what the topic was at the storage's offset.
func TestKilledStorageIsAPrefix(t *testing.T) {
	dir := t.TempDir()
	p, err := child.Start("write", dir, filepath.Join(t.TempDir(), "log"))
	ok(t, err)
	t.Cleanup(p.Kill)
	last := int64(-1)
	for round := range 4 {
		for end := time.Now().Add(2 * time.Minute); strings.Count(string(p.Log()), "written") < 40*(round+1); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) || !p.Running() {
				t.Fatalf("the writer doesn't write: %s", p.Log())
			}
		}
		p.Kill()
		s := openStorage(t, dir)
		at, err := s.GetOffset(-1)
		ok(t, err)
		if at < last {
			t.Errorf("round %d: the offset %d is before %d", round, at, last)
		}
		last = at
		model := storage.NewMemory()
		for n := range at + 1 {
			if key, value := written(n); value == nil {
				ok(t, model.Delete(key))
			} else {
				ok(t, model.Set(key, value))
			}
		}
		compareIterators(t, s, model, "k1", "k2x", "k5") // the limit of goka's in memory is inclusive
		ok(t, s.Close())
		ok(t, p.Restart())
	}
	if last < 0 {
		t.Error("nothing has ever reached the disk")
	}
}
