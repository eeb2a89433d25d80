package promtool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tributary-io/tributary/internal/fetched"
)

// inPackage is the program's place in Debian's package.
const inPackage = "./usr/bin/promtool"

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
	dir, err := fetched.Dir(ctx, "promtool", "promtool", fetch)
	if err != nil {
		return "", fmt.Errorf("it isn't in PATH, and can't be unpacked from the package prometheus: %w", err)
	}
	return filepath.Join(dir, "promtool"), nil
}

// fetch puts the program of Debian's package into the directory.
func fetch(ctx context.Context, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := fetched.Run(ctx, work, "apt-get", "download", "prometheus"); err != nil { // perhaps no list of packages yet
		if err := errors.Join(fetched.Run(ctx, work, "apt-get", "update"), fetched.Run(ctx, work, "apt-get", "download", "prometheus")); err != nil {
			return err
		}
	}
	packages, err := filepath.Glob(filepath.Join(work, "prometheus_*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("downloaded %v: %w", packages, err)
	}
	if err := fetched.Run(ctx, work, "dpkg-deb", "--extract", packages[0], work); err != nil {
		return err
	}
	return os.Rename(filepath.Join(work, inPackage), filepath.Join(dir, "promtool"))
}
