package mavenjars

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/filelock"
)

// ErrUnavailable is wrapped where the machine lacks Java or Maven, or where Maven can't reach its repository.
var ErrUnavailable = errors.New("the jars can't be had here")

// fetchLimit bounds a first download.
const fetchLimit = 5 * time.Minute

// Dir returns the directory with the jars that the pom lists as dependencies, fetching them at the first time. name is the directory's
// and must change with the versions in the pom, as in "kafka-4.3.1".
func Dir(name string, pom []byte) (string, error) {
	if err := need("java"); err != nil {
		return "", err
	}
	return cached(name, func(ctx context.Context, tmp string) (string, error) {
		pomFile, lib := filepath.Join(tmp, "pom.xml"), filepath.Join(tmp, "lib")
		if err := os.WriteFile(pomFile, pom, 0o644); err != nil {
			return "", err
		}
		return lib, maven(ctx, "-f", pomFile, "dependency:copy-dependencies", "-DoutputDirectory="+lib)
	})
}

// Unpacked returns the directory with what is in an archive (tar.gz) that Maven's repository holds, fetching it at the first time.
// artifact is "group:artifact:version:type:classifier"; name is the directory's and must change with the version.
func Unpacked(name, artifact string) (string, error) {
	if err := need("tar"); err != nil {
		return "", err
	}
	return cached(name, func(ctx context.Context, tmp string) (string, error) {
		if err := maven(ctx, "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy", "-Dartifact="+artifact, "-DoutputDirectory="+tmp); err != nil {
			return "", err
		}
		archives, err := filepath.Glob(filepath.Join(tmp, "*.tar.gz"))
		if err != nil || len(archives) != 1 {
			return "", fmt.Errorf("%s: Maven left %d archives, want one: %w", artifact, len(archives), err)
		}
		unpacked := filepath.Join(tmp, "unpacked")
		if err := os.Mkdir(unpacked, 0o755); err != nil {
			return "", err
		}
		if out, err := exec.CommandContext(ctx, "tar", "-xzf", archives[0], "-C", unpacked).CombinedOutput(); err != nil {
			return "", fmt.Errorf("unpack %s: %w: %s", artifact, err, child.LastLines(string(out), 5))
		}
		return unpacked, nil
	})
}

func need(tool string) error {
	if _, err := exec.LookPath(tool); err != nil {
		return fmt.Errorf("%w: no %s in PATH", ErrUnavailable, tool)
	}
	return nil
}

// cached returns the directory of that name in the cache. If it isn't there, fetch fills a directory somewhere in tmp and returns it,
// which is then renamed: a directory of the final name is whole.
func cached(name string, fetch func(ctx context.Context, tmp string) (string, error)) (string, error) {
	if err := need("mvn"); err != nil {
		return "", err
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
	tmp, err := os.MkdirTemp(root, "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	ctx, cancel := context.WithTimeout(context.Background(), fetchLimit)
	defer cancel()
	made, err := fetch(ctx, tmp)
	if err != nil {
		return "", err
	}
	return dir, os.Rename(made, dir)
}

func maven(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "mvn", append([]string{"-q", "-B"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: Maven could not fetch it: %w: %s", ErrUnavailable, err, child.LastLines(string(out), 5))
	}
	return nil
}
