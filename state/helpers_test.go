package state_test

import (
	"flag"
	"io"
	"log/slog"
	"testing"

	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/state"
)

func TestMain(m *testing.M) {
	// Enough for a normal run; -rapid.checks=1000 looks harder.
	for name, value := range map[string]string{"rapid.checks": "20", "rapid.shrinktime": "5s"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	leaks.Main(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// backend opens a DB of one kind for a test.
type backend struct {
	name string
	open func(t testing.TB, specs []state.Spec, opt state.Options) *state.DB
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

var backends = []backend{
	{"memory", func(t testing.TB, specs []state.Spec, opt state.Options) *state.DB {
		opt.Log = quiet
		db, err := state.OpenMemory(specs, opt)
		must(t, err)
		return db
	}},
	{"pebble", func(t testing.TB, specs []state.Spec, opt state.Options) *state.DB {
		return openPebble(t, t.TempDir(), specs, opt)
	}},
}

// openPebble opens a database with resources of its own, which are checked for leaks at the end of the test.
func openPebble(t testing.TB, dir string, specs []state.Spec, opt state.Options) *state.DB {
	t.Helper()
	opt.Log = quiet
	res := state.NewResources(state.ResourceOptions{CacheBytes: 8 << 20, MaxMemtableBytes: 1 << 20})
	db, err := state.OpenPebble(dir, specs, res, opt)
	if err != nil {
		res.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := res.Close(); err != nil {
			t.Errorf("close resources: %v", err)
		}
	})
	return db
}
