package promtool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/filelock"
)

const (
	fetchLimit = 2 * time.Minute
	member     = "./usr/bin/promtool" // in the package
)

// Check runs promtool with arguments, and with input, if there is any. Its complaints fail the test. Where it can't be had, the test is skipped with a
// line that says why.
func Check(t testing.TB, input io.Reader, args ...string) (said string) {
	t.Helper()
	program, err := find(t.Context())
	if err != nil {
		t.Skipf("SKIPPED, NOT TESTED by promtool: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = input
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// find returns the program, fetching it if it isn't there.
func find(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("promtool"); err == nil {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "tributary", "promtool")
	program := filepath.Join(dir, "promtool")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := filelock.Wait(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Release()
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	if err := fetch(ctx, dir, program); err != nil {
		return "", fmt.Errorf("it isn't in PATH, and can't be unpacked from the package prometheus: %w", err)
	}
	return program, nil
}

// fetch puts the program of Debian's package where it belongs.
func fetch(ctx context.Context, dir, program string) (err error) {
	work, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := run(ctx, work, "apt-get", "download", "prometheus"); err != nil { // perhaps no list of packages yet
		if err := errors.Join(run(ctx, work, "apt-get", "update"), run(ctx, work, "apt-get", "download", "prometheus")); err != nil {
			return err
		}
	}
	packages, err := filepath.Glob(filepath.Join(work, "prometheus_*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("downloaded %v: %w", packages, err)
	}
	if err := run(ctx, work, "dpkg-deb", "--extract", packages[0], work); err != nil {
		return err
	}
	return os.Rename(filepath.Join(work, member), program)
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, bytes.TrimSpace(out))
	}
	return nil
}
