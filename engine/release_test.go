package engine

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/leaks"
)

// openFiles counts the files and connections that the process has.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// An instance that has ended leaves nothing behind in the process: no goroutine, no file, no connection, however often.
func TestEndedInstancesLeaveNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("open files are counted on Linux only")
	}
	c := brokertest.Embedded(t)
	live := func(round int) {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) { // its own clients end with it
			a := newApp(t, c, fmt.Sprint("releases", round))
			a.create("in", 4)
			a.create("out", 1)
			out := a.read("out")
			opts := []Option{Standbys(1), ShipCheckpoints(), Queries(), HTTP("127.0.0.1:0"), AcceptableLag(0)}
			one, two := a.start(counts(a.name), "i1", opts...), a.start(counts(a.name), "i2", opts...)
			a.produce("in", 4, numbered(100, 10)...)
			eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 100 })
			two.caughtUp(t, 2)
			two.stop(t)
			one.stop(t)
		})
	}
	live(1) // what the process keeps for ever is there by now
	ignore, files := goleak.IgnoreCurrent(), openFiles(t)
	for round := 2; round <= 4; round++ {
		live(round)
	}
	if err := leaks.Find(ignore); err != nil {
		t.Error(err)
	}
	// Connections of the broker in the process end a moment after the clients' own.
	for end := time.Now().Add(waitLimit); openFiles(t) > files; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d files and connections are open, %d were after the first round", openFiles(t), files)
		}
	}
}
