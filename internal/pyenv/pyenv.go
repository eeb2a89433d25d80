package pyenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tributary-io/tributary/internal/fetched"
)

// ready marks an environment that is whole.
const ready = "ready"

// Python returns the interpreter of an environment with the given requirements (the text of a requirements.txt that pins versions),
// making the environment at the first time. name tells people what it is for; other requirements make another environment. The error
// says what is missing: Python, or the package index.
func Python(ctx context.Context, name, requirements string) (string, error) {
	sum := sha256.Sum256([]byte(requirements))
	dir, err := fetched.Dir(ctx, name+"-"+hex.EncodeToString(sum[:6]), ready, func(ctx context.Context, dir string) error {
		return install(ctx, dir, requirements)
	})
	if err != nil {
		return "", fmt.Errorf("python environment %s: %w", name, err)
	}
	return program(dir), nil
}

// program is the interpreter of an environment.
func program(dir string) string { return filepath.Join(dir, "bin", "python") }

func install(ctx context.Context, dir, requirements string) error {
	base, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("python is not installed: %w", err)
	}
	if err := fetched.Run(ctx, "", base, "-m", "venv", "--clear", dir); err != nil {
		return err
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, []byte(requirements), 0o644); err != nil {
		return err
	}
	if err := fetched.Run(ctx, "", program(dir), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", list); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ready), nil, 0o644)
}
