package readers

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

//go:embed requirements.txt
var requirements []byte

//go:embed serve.py
var program string

// installTimeout bounds the making of the environment: some 150 MB are downloaded.
const installTimeout = 10 * time.Minute

// environment makes or finds the virtual environment, once in this process, and returns its Python.
var environment = sync.OnceValues(func() (python string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(requirements)
	dir := filepath.Join(cache, "tributary", "delta-readers-"+hex.EncodeToString(sum[:6]))
	python = pythonIn(dir)
	ready := filepath.Join(dir, "ready")
	if exists(ready) {
		return python, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", dir, err)
	}
	defer unlock()
	if exists(ready) { // made by another test binary meanwhile
		return python, nil
	}
	if err := install(dir, python); err != nil {
		return "", err
	}
	return python, os.WriteFile(ready, nil, 0o644)
})

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func pythonIn(dir string) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(dir, "Scripts", "python.exe")
	}
	return filepath.Join(dir, "bin", "python")
}

func install(dir, python string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	base, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("Python is not installed: %w", err)
	}
	if err := run(ctx, base, "-m", "venv", "--clear", dir); err != nil {
		return err
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o644); err != nil {
		return err
	}
	return run(ctx, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", list)
}

func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, bytes.TrimSpace(out))
	}
	return nil
}

// unavailable skips the test, or fails it where the readers are required.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("TRIBUTARY_REQUIRE_READERS") != "" {
		t.Fatalf("the independent Delta readers are required (TRIBUTARY_REQUIRE_READERS), but can't be had: %v", err)
	}
	t.Skipf("SKIPPED: the independent Delta readers can't be had, so nobody else reads what this test writes: %v", err)
}

var errEnded = errors.New("the helper process ended")
