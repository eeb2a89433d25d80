package iceberg_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/icebergreaders"
	"github.com/tributary-io/tributary/lake/sink"
)

// childVariable names the folder that a child process of the test lands rows in.
const childVariable = "ICEBERG_TEST_LANDS_IN"

// landSome lands rows from the table's progress on, a random number at a time, until an offset.
func landSome(dir string, until int64) error {
	s := iceberg.Table("db.t", place{dir}.catalog(), iceberg.PartitionBy(iceberg.Bucket(2, "o")))
	if err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[numbered]()); err != nil {
		return err
	}
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
			if err := b.Append(nil, &numbered{O: o, S: "s"}, &sink.Meta{Offset: o}); err != nil {
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
	if err := landSome(dir, 1<<40); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestKill9 kills a landing process again and again, at any moment. Every offset up to the table's progress has its row, once.
func TestKill9(t *testing.T) {
	p := newPlace(t)
	for range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+p.dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(200+rand.IntN(400)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("the landing process ended by itself: %v", err)
		}
	}
	w := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog()))
	at := progress(t, w, 0)
	if at == sink.NoOffset {
		t.Skip("SKIPPED: the machine is so slow that no child landed a row before it was killed")
	}
	if err := landSome(p.dir, at+100); err != nil {
		t.Fatal(err)
	}
	wantOnce(t, icebergreaders.Open(t).Table(t, p.readers(), "db.t"), 1, at+100)
	o, err := iceberg.RemoveOrphansNow(ctx, "db.t", p.catalog())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows landed, and %d orphans of killed processes removed", at+100, o.Files)
	wantOnce(t, icebergreaders.Open(t).Table(t, p.readers(), "db.t"), 1, at+100)
}
