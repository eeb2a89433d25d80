package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/task"
)

// Old state of tasks that run elsewhere goes, and what is left of a removal that was interrupted; what an opener still has stays.
func TestCleaningLeavesWhatIsInUse(t *testing.T) {
	now := time.Now().Add(time.Hour)
	e, err := New(counts("cleans"), Brokers("nowhere:1"), StateDir(t.TempDir()), Logger(testLog(t, "e")), Clock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"0_0", "0_1", "0_2", "0_3" + removedSuffix, "instance.id"} {
		if err := os.MkdirAll(filepath.Join(e.appDir(), name, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	id := func(part int32) *taskSpec { return &taskSpec{id: task.ID{Partition: part}} }
	e.runners[id(1).id] = e.newRunner(id(1), 0)
	gone := e.newRunner(id(2), 0)
	gone.opening = true
	e.parts(gone)
	left := func() (names []string) {
		entries, err := os.ReadDir(e.appDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
	e.cleanStale()
	if got := left(); len(got) != 3 || got[0] != "0_1" || got[1] != "0_2" || got[2] != "instance.id" {
		t.Errorf("left: %v", got)
	}
	e.parted(gone)
	e.cleanStale()
	if got := left(); len(got) != 2 || got[0] != "0_1" {
		t.Errorf("left when the opener is done: %v", got)
	}
}
