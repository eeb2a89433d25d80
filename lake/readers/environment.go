package readers

import (
	"context"
	_ "embed"
	"os"
	"sync"
	"testing"

	"github.com/tributary-io/tributary/internal/mavenjars"
	"github.com/tributary-io/tributary/internal/pyenv"
)

var (
	//go:embed clients.py
	clientsProgram string
	//go:embed spark.py
	sparkProgram string
	//go:embed requirements.txt
	requirements string
	//go:embed requirements-spark.txt
	sparkRequirements string
	//go:embed spark-pom.xml
	sparkPOM []byte
)

// sparkJars names the directory of Delta's jars for Spark; it changes with the version in spark-pom.xml.
const sparkJars = "delta-spark-4.1.0"

// environment makes or finds the virtual environment of delta-rs and DuckDB, once in this process, and returns its Python.
var environment = sync.OnceValues(func() (python string, err error) {
	return pyenv.Python(context.Background(), "delta-readers", requirements)
})

type sparkHome struct{ python, jars string }

// sparkEnvironment is the same for Spark.
var sparkEnvironment = sync.OnceValues(func() (h sparkHome, err error) {
	if h.jars, err = mavenjars.Dir(sparkJars, sparkPOM); err != nil {
		return h, err
	}
	h.python, err = pyenv.Python(context.Background(), "delta-spark", sparkRequirements)
	return h, err
})

// unavailable skips the test, or fails it where the readers are required.
func unavailable(t testing.TB, who string, err error) {
	t.Helper()
	if os.Getenv("TRIBUTARY_REQUIRE_READERS") != "" {
		t.Fatalf("%s: required (TRIBUTARY_REQUIRE_READERS), but can't be had: %v", who, err)
	}
	t.Skipf("SKIPPED, NOT TESTED: %s can't be had, so it doesn't read what this test writes: %v", who, err)
}
