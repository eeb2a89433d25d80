package delta

import (
	"context"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

// TestCommitIsNotStarved has another writer commit whenever this one waits after lost races: it lands all the same, since it looks after each wait.
func TestCommitIsNotStarved(t *testing.T) {
	store := &object.Faulty{Inner: object.NewMemory("t")}
	table := mustCreate(t, store, Spec{}, Options{})
	other := mustOpen(t, store.Inner, Options{})
	commit := func() {
		mustCommit(t, other, Commit{Moves: []Move{{AppID: "other", First: other.Head().Version == 0, From: other.Head().Version - 1, To: other.Head().Version}}})
	}
	puts := 0
	store.Plan = func(c object.Call) object.Fault {
		if c.Op == object.OpPutIfAbsent {
			if puts++; puts <= 2 {
				commit()
			}
		}
		return object.NoFault
	}
	waits := 0
	table.sleep = func(context.Context, time.Duration) error {
		if waits++; waits > 10 {
			return context.DeadlineExceeded
		}
		commit()
		commit()
		return nil
	}
	landed, err := table.Commit(t.Context(), Commit{Moves: []Move{move("mine", -1, 1)}})
	if err != nil || landed.Attempts != 3 || waits != 1 {
		t.Errorf("%+v after %d waits, %v", landed, waits, err)
	}
}
