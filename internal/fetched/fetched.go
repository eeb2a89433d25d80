package fetched

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/filelock"
)

const (
	// budget is how long all fetches of a process may take. Spark alone is a download of 450 MB.
	budget = 9 * time.Minute
	tries  = 3
	// restFor is how long what has failed in all tries is left alone.
	restFor = 10 * time.Minute
)

// pauses are those between tries; a variable for tests.
var pauses = []time.Duration{3 * time.Second, 15 * time.Second}

// Dir returns the directory of that name in the cache. Where it has no entry called mark, or isn't there, if mark is empty, fetch has to make it, and the mark
// as the last thing, so that what is marked is whole. It may find what a fetch that failed has left.
func Dir(ctx context.Context, name, mark string, fetch func(ctx context.Context, dir string) error) (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	t := thing{dir: filepath.Join(root, name), mark: mark}
	if t.there() {
		return t.dir, nil
	}
	limited, done := spend(ctx)
	defer done()
	lock, err := Locked(limited, name)
	if err != nil {
		return "", err
	}
	defer lock.Release()
	if t.there() { // made by another process meanwhile
		return t.dir, nil
	}
	if err := t.failedBefore(); err != nil {
		return "", err
	}
	if err := limited.Err(); err != nil {
		return "", fmt.Errorf("this process has fetched other things for %v: %w", budget, err)
	}
	err = t.fetch(limited, fetch)
	if err != nil && ctx.Err() == nil { // nobody has just given up
		err = errors.Join(err, t.note(err))
	}
	return t.dir, err
}

// Locked waits for the lock of that name in the cache: fetches of different things hold one where the tool that fetches can't run twice at a time.
func Locked(ctx context.Context, name string) (*filelock.Lock, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	for {
		lock, err := filelock.TryLock(filepath.Join(root, name+".lock"))
		if !errors.Is(err, filelock.ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another process that fetches: %w: %w", err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func root() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "tributary")
	return root, os.MkdirAll(root, 0o755)
}

// thing is what is fetched.
type thing struct{ dir, mark string }

func (t thing) there() bool {
	_, err := os.Stat(filepath.Join(t.dir, t.mark))
	return err == nil
}

// failed is the file that says how the last fetch has failed.
func (t thing) failed() string { return t.dir + ".failed" }

// note is what failedBefore reads.
func (t thing) note(failure error) error {
	return os.WriteFile(t.failed(), fmt.Appendf(nil, "%s\n%v\n", time.Now().Format(time.RFC3339), failure), 0o644)
}

// failedBefore is what a fetch came to that has failed lately.
func (t thing) failedBefore() error {
	info, err := os.Stat(t.failed())
	if err != nil || time.Since(info.ModTime()) > restFor {
		return nil
	}
	said, err := os.ReadFile(t.failed())
	if err != nil {
		return nil
	}
	return fmt.Errorf("it has failed before, and is tried again %v later, or once %s is gone: %s", restFor, t.failed(), bytes.TrimSpace(said))
}

func (t thing) fetch(ctx context.Context, fetch func(ctx context.Context, dir string) error) error {
	for n := 1; ; n++ {
		err := fetch(ctx, t.dir)
		if err == nil || n == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pauses[n-1]):
		}
	}
}

// Run runs a program in a folder ("" for this one). Its error has what the program has said.
func Run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second // for children of a program that was killed
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, child.LastLines(string(out), 8))
	}
	return nil
}

var (
	spending sync.Mutex
	spent    time.Duration // by all fetches of this process
)

// spend gives what is left of the process's time for fetches. Fetches of a process take turns.
func spend(ctx context.Context) (context.Context, func()) {
	spending.Lock()
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, budget-spent)
	return ctx, func() {
		cancel()
		spent += time.Since(began)
		spending.Unlock()
	}
}
