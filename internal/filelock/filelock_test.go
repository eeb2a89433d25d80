package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestSecondHolderIsRefusedAndNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = TryLock(path)
	if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("got %v, want ErrHeld with the holder's pid", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := TryLock(path)
	if err != nil {
		t.Fatalf("after Release: %v", err)
	}
	again.Release()
}

func TestWaitGetsTheLockOnceItIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		l, err := Wait(path)
		if err == nil {
			err = l.Release()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("Wait returned (%v) while the lock was held", err)
	case <-time.After(20 * time.Millisecond):
	}
	first.Release()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}
