package lake

import (
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// childVariable names the folder that a child process of the test lands rows in.
const childVariable = "LAKE_TEST_LANDS_IN"

// childStateVariable is the same for a child that changes a table of current state.
const childStateVariable = "LAKE_TEST_CHANGES_IN"

// landSome lands rows from the table's progress on, a random number at a time, until an offset.
func landSome(dir string, until int64) error {
	s := Delta(dir, Properties(map[string]string{"delta.checkpointInterval": "5"}))
	return advance[numbered](s, until, func(b sink.Batch, o int64) error { return b.Append(nil, &numbered{O: o, S: "s"}, meta(o)) })
}

// advance commits offsets of partition 0 from the table's progress on, a few at a time, until one.
func advance[V any](s sink.Sink, until int64, add func(b sink.Batch, o int64) error) error {
	w, err := tryOpen[string, V](s, testEnv())
	if err != nil {
		return err
	}
	defer w.Close()
	return sinktest.Advance(w, part(0), until, 20, add)
}

// landedIn is the table's progress for the one partition that children land; 0 if there is none, or no table yet.
func landedIn(dir string) int64 {
	info, err := Show(ctx, dir, 0)
	if err != nil {
		return 0
	}
	for _, p := range info.Progress {
		if p.Topic != "" {
			return p.Next
		}
	}
	return 0
}

// TestKill9 kills a landing process again and again, at any moment. Every offset up to the table's progress has its row, once.
func TestKill9(t *testing.T) {
	dir, store := localStore(t)
	sinktest.KillLoop(t, 10, childVariable, dir, 100*time.Millisecond, 300*time.Millisecond, func() bool { return landedIn(dir) > 0 })
	until := landedIn(dir) + 100
	if err := landSome(dir, until); err != nil {
		t.Fatal(err)
	}
	seen := make([]int, until)
	for _, row := range allRows(t, store) {
		seen[row["o"].(int64)]++
	}
	for o, n := range seen {
		if n != 1 {
			t.Fatalf("offset %d is in the table %d times", o, n)
		}
	}
	if d := readers.Open(t).DeltaRS(t, dir); d.Count != until {
		t.Errorf("delta-rs finds %d rows, want %d", d.Count, until)
	}
}
