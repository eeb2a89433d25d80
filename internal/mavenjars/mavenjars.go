package mavenjars

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tributary-io/tributary/internal/fetched"
)

// ErrUnavailable is wrapped where the machine lacks Java or Maven, or where Maven can't reach its repository.
var ErrUnavailable = errors.New("the jars can't be had here")

// mavenLock is held by who runs Maven, which fills its own repository: two that fetch the same at once get in each other's way.
const mavenLock = "maven"

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
		return unpacked, fetched.Run(ctx, "", "tar", "-xzf", archives[0], "-C", unpacked)
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
	dir, err := fetched.Dir(context.Background(), name, "", func(ctx context.Context, dir string) error {
		tmp, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		made, err := fetch(ctx, tmp)
		if err != nil {
			return err
		}
		return os.Rename(made, dir)
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return dir, nil
}

func maven(ctx context.Context, args ...string) error {
	lock, err := fetched.Locked(ctx, mavenLock)
	if err != nil {
		return err
	}
	defer lock.Release()
	return fetched.Run(ctx, "", "mvn", append([]string{"-q", "-B"}, args...)...)
}
