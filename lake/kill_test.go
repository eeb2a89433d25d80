package lake

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"testing"
	"time"

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
	if err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[numbered]()); err != nil {
		return err
	}
	return advance(s, until, func(b sink.Batch, o int64) error { return b.Append(nil, &numbered{O: o, S: "s"}, meta(o)) })
}

// advance commits offsets from the table's progress on, a random number at a time, until one.
func advance(s sink.Sink, until int64, add func(b sink.Batch, o int64) error) error {
	w, err := s.Open(ctx, testEnv())
	if err != nil {
		return err
	}
	defer w.Close()
	progress, err := w.Progress(ctx, []sink.Partition{part(0)})
	for at := progress[part(0)]; err == nil && at < until; {
		next := max(at, 0)
		to := min(next+1+rand.Int64N(20), until)
		b := w.NewBatch()
		for o := next; o < to; o++ {
			if err := add(b, o); err != nil {
				return err
			}
		}
		_, err = w.Commit(ctx, b, []sink.Move{move(0, at, to)})
		b.Release()
		at = to
	}
	return err
}

func landUntilKilled(dir string) {
	exitUnless(landSome(dir, 1<<40))
}

func exitUnless(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestKill9 kills a landing process again and again, at any moment. Every offset up to the table's progress has its row, once.
func TestKill9(t *testing.T) {
	dir, store := localStore(t)
	for range 10 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(100+rand.IntN(200)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("the landing process ended by itself: %v", err)
		}
	}
	info, err := Show(ctx, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Progress) == 0 {
		t.Skip("SKIPPED: the machine is so slow that no child landed a row before it was killed")
	}
	until := info.Progress[0].Next + 100
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
