package realkafka

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tributary-io/tributary/internal/filelock"
)

// Version is the Kafka release that is started. pom.xml names the same one.
const Version = "4.3.1"

//go:embed pom.xml
var pom []byte

// errUnavailable is wrapped where the machine lacks what a broker needs.
var errUnavailable = errors.New("a real Kafka can't be started here")

// fetchLimit bounds the first download (54 MB).
const fetchLimit = 5 * time.Minute

// jars returns the directory with the broker's jars, fetching them at the first time into the user's cache directory. Several
// test binaries may call it at once: one fetches, the others wait.
func jars() (string, error) {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%w: no %s in PATH", errUnavailable, tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnavailable, err)
	}
	root := filepath.Join(cache, "tributary")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("%w: %w", errUnavailable, err)
	}
	lock, err := filelock.Wait(filepath.Join(root, "kafka-jars.lock"))
	if err != nil {
		return "", err
	}
	defer lock.Release()
	dir := filepath.Join(root, "kafka-"+Version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, fetchJars(root, dir)
}

// fetchJars lets Maven fill a temporary directory and renames it, so that a directory of the final name is whole.
func fetchJars(root, dir string) error {
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
		return fmt.Errorf("%w: Maven could not fetch the jars: %w: %s", errUnavailable, err, lastLines(string(out), 5))
	}
	return os.Rename(lib, dir)
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
