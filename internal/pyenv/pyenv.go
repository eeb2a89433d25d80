package pyenv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tributary-io/tributary/internal/filelock"
)

// installLimit bounds the making of an environment: Spark alone is a download of 450 MB.
const installLimit = 15 * time.Minute

// Python returns the interpreter of an environment with the given requirements (the text of a requirements.txt that pins versions),
// making the environment at the first time. name tells people what it is for; other requirements make another environment. The error
// says what is missing: Python, or the package index.
func Python(ctx context.Context, name, requirements string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("python environment %s: %w", name, err)
	}
	sum := sha256.Sum256([]byte(requirements))
	dir := filepath.Join(cache, "tributary", name+"-"+hex.EncodeToString(sum[:6]))
	python, ready := filepath.Join(dir, "bin", "python"), filepath.Join(dir, "ready")
	if exists(ready) {
		return python, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("python environment %s: %w", name, err)
	}
	lock, err := filelock.Wait(dir + ".lock")
	if err != nil {
		return "", fmt.Errorf("python environment %s: %w", name, err)
	}
	defer lock.Release()
	if exists(ready) { // made by another process meanwhile
		return python, nil
	}
	if err := install(ctx, dir, python, requirements); err != nil {
		return "", fmt.Errorf("python environment %s: %w", name, err)
	}
	return python, os.WriteFile(ready, nil, 0o644)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func install(ctx context.Context, dir, python, requirements string) error {
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	base, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("python is not installed: %w", err)
	}
	if err := run(ctx, base, "-m", "venv", "--clear", dir); err != nil {
		return err
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, []byte(requirements), 0o644); err != nil {
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
