package fetched

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func fresh(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	old := pauses
	pauses = []time.Duration{time.Millisecond, time.Millisecond}
	t.Cleanup(func() { pauses = old })
}

// makeIt is a fetch that ends as it should.
func makeIt(dir, mark string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, mark), nil, 0o644)
}

var errBroken = errors.New("the connection broke")

func TestWhatBreaksOffIsTriedAgain(t *testing.T) {
	fresh(t)
	n := 0
	for range 2 {
		dir, err := Dir(t.Context(), "thing", "ready", func(_ context.Context, dir string) error {
			if n++; n < tries {
				return errBroken
			}
			return makeIt(dir, "ready")
		})
		if err != nil || filepath.Base(dir) != "thing" || n != tries {
			t.Errorf("%s after %d tries: %v", dir, n, err)
		}
	}
}

func TestWhatFailsRestsForAWhile(t *testing.T) {
	fresh(t)
	n := 0
	ask := func() error {
		_, err := Dir(t.Context(), "thing", "", func(context.Context, string) error {
			n++
			return errBroken
		})
		return err
	}
	if err := ask(); !errors.Is(err, errBroken) || n != tries {
		t.Fatalf("%d tries: %v", n, err)
	}
	if err := ask(); err == nil || !strings.Contains(err.Error(), errBroken.Error()) || n != tries {
		t.Errorf("%d tries: %v", n, err)
	}
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	failed := filepath.Join(root, "thing.failed")
	old := time.Now().Add(-restFor - time.Second)
	if err := os.Chtimes(failed, old, old); err != nil {
		t.Fatal(err)
	}
	if err := ask(); !errors.Is(err, errBroken) || n != 2*tries {
		t.Errorf("later: %d tries: %v", n, err)
	}
}

func TestOneFetchesForAll(t *testing.T) {
	fresh(t)
	var n atomic.Int32
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			_, err := Dir(t.Context(), "thing", "ready", func(_ context.Context, dir string) error {
				n.Add(1)
				return makeIt(dir, "ready")
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n.Load() != 1 {
		t.Errorf("fetched %d times", n.Load())
	}
}

// A process gives up in time where another one holds on to the lock.
func TestWaitingHasAnEnd(t *testing.T) {
	fresh(t)
	lock, err := Locked(t.Context(), "thing")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Locked(ctx, "thing"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
