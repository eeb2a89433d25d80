package realkafka

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tributary-io/tributary/internal/leaks"
)

func urlBase64(b []byte) string { return base64.URLEncoding.EncodeToString(b) }

// shared are the clusters of this test binary, by number of nodes. The outcome of a start is kept: a machine without java is
// asked once.
var shared = struct {
	sync.Mutex
	clusters map[int]*Cluster
	errs     map[int]error
}{clusters: map[int]*Cluster{}, errs: map[int]error{}}

// Main runs a package's tests, stops the shared clusters afterwards, and looks for goroutines that are left, as leaks.Main does with these options. Call it
// from TestMain, as its last line.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if err := StopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stop Kafka:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := leaks.Find(options...); err != nil {
			fmt.Fprintln(os.Stderr, "the tests passed, but leave goroutines:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// StopShared stops the shared clusters, for a TestMain that does more than Main.
func StopShared() error {
	shared.Lock()
	defer shared.Unlock()
	var errs []error
	for n, c := range shared.clusters {
		errs = append(errs, c.stop())
		delete(shared.clusters, n)
	}
	return errors.Join(errs...)
}

// Shared returns the test binary's cluster of that many nodes, starting it at the first call. Tests that use it choose topic,
// group and application names of their own, and leave its brokers alone.
func Shared(t testing.TB, nodes int) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if c := shared.clusters[nodes]; c != nil {
		return c
	}
	err := shared.errs[nodes]
	if err == nil {
		var c *Cluster
		if c, err = startCluster(nodes, smallJVM, nil); err == nil {
			shared.clusters[nodes] = c
			return c
		}
		shared.errs[nodes] = err
	}
	skipOrFail(t, err)
	return nil
}

// Start starts a cluster for one test, and stops it when the test ends.
func Start(t testing.TB, nodes int) *Cluster { return StartWith(t, nodes, nil) }

// StartWith is Start with broker settings over the package's own.
func StartWith(t testing.TB, nodes int, settings map[string]string) *Cluster {
	t.Helper()
	c, err := startCluster(nodes, smallJVM, settings)
	if err != nil {
		skipOrFail(t, err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Errorf("stop Kafka: %v", err)
		}
	})
	return c
}

func skipOrFail(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errUnavailable) && os.Getenv("TRIBUTARY_REQUIRE_KAFKA") == "" {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	t.Fatalf("start Kafka %s: %v", Version(), err)
}
