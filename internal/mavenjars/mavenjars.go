package mavenjars

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tributary-io/tributary/internal/filelock"
)

// ErrUnavailable is wrapped where the machine lacks Java or Maven, or where Maven can't reach its repository.
var ErrUnavailable = errors.New("the jars can't be had here")

// fetchLimit bounds a first download.
const fetchLimit = 5 * time.Minute

// Dir returns the directory with the jars that the pom lists as dependencies, fetching them at the first time. name is the directory's
// and must change with the versions in the pom, as in "kafka-4.3.1".
func Dir(name string, pom []byte) (string, error) {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%w: no %s in PATH", ErrUnavailable, tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	root := filepath.Join(cache, "tributary")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	dir := filepath.Join(root, name)
	lock, err := filelock.Wait(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Release()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, fetch(root, dir, pom)
}

// fetch lets Maven fill a temporary directory and renames it, so that a directory of the final name is whole.
func fetch(root, dir string, pom []byte) error {
	tmp, err := os.MkdirTemp(root, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	pomFile := filepath.Join(tmp, "pom.xml")
	if err := os.WriteFile(pomFile, pom, 0o644); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchLimit)
	defer cancel()
	lib := filepath.Join(tmp, "lib")
	out, err := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", pomFile, "dependency:copy-dependencies", "-DoutputDirectory="+lib).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: Maven could not fetch the jars: %w: %s", ErrUnavailable, err, lastLines(string(out), 5))
	}
	return os.Rename(lib, dir)
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
