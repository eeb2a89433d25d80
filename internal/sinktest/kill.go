package sinktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/sink"
)

// Advance commits offsets of a partition from the table's progress on, a random number up to most at a time, until one. add puts the record at an
// offset into the batch, if it makes a row.
func Advance(w sink.Writer, p sink.Partition, until, most int64, add func(b sink.Batch, offset int64) error) error {
	ctx := context.Background()
	progress, err := w.Progress(ctx, []sink.Partition{p})
	for at := progress[p]; err == nil && at < until; {
		next := max(at, 0)
		to := min(next+1+rand.Int64N(most), until)
		b := w.NewBatch()
		for o := next; o < to; o++ {
			if err := add(b, o); err != nil {
				return err
			}
		}
		_, err = w.Commit(ctx, b, []sink.Move{{Partition: p, From: at, To: to}})
		b.Release()
		at = to
	}
	return err
}

// ExitUnless ends a child process with an error, if there is one.
func ExitUnless(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mostKills bounds a KillLoop on a machine so slow that no child lands anything.
const mostKills = 60

// KillLoop starts the test's own binary, with a variable by which its TestMain knows what to do, and kills it after a random time between two bounds;
// and so again and again, the given number of times and until landed says that some child has landed rows, for which children get more and more time.
// That a child ends by itself is an error.
func KillLoop(t *testing.T, times int, variable, value string, least, most time.Duration, landed func() bool) {
	t.Helper()
	for n := 0; n < times || !landed(); n++ {
		if n == mostKills {
			t.Fatalf("no child has landed a row before it was killed, %d times", n)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), variable+"="+value)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(1+n/times) * (least + rand.N(most-least)))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("the landing process ended by itself: %v", err)
		}
	}
}
