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
	"time"

	"github.com/tributary-io/tributary/internal/mavenjars"
)

// Version is the Apicurio Registry release that is started.
const Version = "3.3.3"

// minJava is what the release's class files need.
const minJava = 21

// errUnavailable is wrapped where the machine lacks what a registry needs.
var errUnavailable = errors.New("a real schema registry can't be started here")

// distribution returns the directory with the registry's program, fetching its 159 MB at the first time. The plain jar's dependencies
// don't resolve; the distribution holds them all.
func distribution() (string, error) {
	dir, err := mavenjars.Unpacked("registry-"+Version, "io.apicurio:apicurio-registry-app:"+Version+":tar.gz:all")
	if errors.Is(err, mavenjars.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", errUnavailable, err)
	}
	return dir, err
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
