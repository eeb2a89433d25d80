package realregistry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-io/tributary/internal/filelock"
)

// Version is the Apicurio Registry release that is started.
const Version = "3.3.3"

// minJava is what the release's class files need.
const minJava = 21

// errUnavailable is wrapped where the machine lacks what a registry needs.
var errUnavailable = errors.New("a real schema registry can't be started here")

// fetchLimit bounds the first download (159 MB).
const fetchLimit = 5 * time.Minute

// distribution returns the directory with the registry's program, fetching it at the first time into the user's cache
// directory. Several test binaries may call it at once: one fetches, the others wait.
func distribution() (string, error) {
	for _, tool := range []string{"mvn", "tar"} {
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
	lock, err := filelock.Wait(filepath.Join(root, "registry.lock"))
	if err != nil {
		return "", err
	}
	defer lock.Release()
	dir := filepath.Join(root, "registry-"+Version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, fetch(root, dir)
}

// fetch unpacks into a temporary directory and renames it, so that a directory of the final name is whole.
func fetch(root, dir string) error {
	tmp, err := os.MkdirTemp(root, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	ctx, cancel := context.WithTimeout(context.Background(), fetchLimit)
	defer cancel()
	// The plain jar's dependencies don't resolve; the distribution holds them all.
	out, err := exec.CommandContext(ctx, "mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy",
		"-Dartifact=io.apicurio:apicurio-registry-app:"+Version+":tar.gz:all", "-DoutputDirectory="+tmp).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: Maven could not fetch it: %w: %s", errUnavailable, err, lastLines(string(out), 5))
	}
	unpacked := filepath.Join(tmp, "dist")
	if err := os.Mkdir(unpacked, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(tmp, "apicurio-registry-app-"+Version+"-all.tar.gz")
	if out, err := exec.CommandContext(ctx, "tar", "-xzf", archive, "-C", unpacked).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack the registry: %w: %s", err, lastLines(string(out), 5))
	}
	return os.Rename(unpacked, dir)
}

// java finds a Java that is new enough: in JAVA_HOME, in PATH, or among the JVMs installed beside the one in PATH.
func java() (string, error) {
	var candidates []string
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, "bin", "java"))
	}
	if path, err := exec.LookPath("java"); err == nil {
		candidates = append(candidates, path)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			beside, _ := filepath.Glob(filepath.Join(filepath.Dir(real), "..", "..", "*", "bin", "java"))
			candidates = append(candidates, beside...)
		}
	}
	for _, c := range candidates {
		if javaVersion(c) >= minJava {
			return c, nil
		}
	}
	return "", fmt.Errorf("%w: no Java %d or later in JAVA_HOME, in PATH or beside that one", errUnavailable, minJava)
}

var versionText = regexp.MustCompile(`version "(\d+)`)

// javaVersion is the major version of a java program, 0 if it doesn't say.
func javaVersion(program string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "-version").CombinedOutput()
	m := versionText.FindSubmatch(out)
	if err != nil || m == nil {
		return 0
	}
	major, _ := strconv.Atoi(string(m[1])) // only digits match
	return major
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
