package identity

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tributary-io/tributary/internal/filelock"
)

func TestIdentityIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "app")
	first, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	id := first.InstanceID("app")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if got := second.InstanceID("app"); got != id {
		t.Fatalf("got %s after reopening, want %s", got, id)
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := Open(dir); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("got %v, want ErrHeld", err)
	}
}

func TestBrokenIdentityIsAnErrorAndReleasesTheLock(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, idFile), []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Fatal("a broken identity was taken")
	}
	os.Remove(filepath.Join(dir, idFile))
	i, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	i.Close()
}
