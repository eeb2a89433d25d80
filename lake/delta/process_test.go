package delta

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

const (
	processWriters = 3
	processCommits = 40
)

// writerProcess is one of the processes of TestRacingProcesses.
func writerProcess() int {
	store, err := object.NewLocal(os.Getenv("DELTA_TEST_TABLE"))
	if err == nil && os.Getenv("DELTA_TEST_GOAL") != "" {
		err = writeToGoal(store)
	} else if err == nil {
		err = writeCommits(context.Background(), store, os.Getenv("DELTA_TEST_WRITER"), processCommits)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestRacingProcesses(t *testing.T) {
	dir := t.TempDir()
	local := must(object.NewLocal(dir))
	mustCreate(t, local, Spec{Configuration: map[string]string{"delta.checkpointInterval": "10"}}, Options{})
	said := make([]bytes.Buffer, processWriters)
	cmds := make([]*exec.Cmd, processWriters)
	for i := range cmds {
		cmds[i] = exec.CommandContext(t.Context(), os.Args[0])
		cmds[i].Env = append(os.Environ(), "DELTA_TEST_TABLE="+dir, fmt.Sprint("DELTA_TEST_WRITER=w", i))
		cmds[i].Stderr = &said[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("writer %d: %v: %s", i, err, said[i].String())
		}
	}
	checkRace(t, local, processWriters, processCommits)
}

// killedGoal is where the process of TestKilledWriter is to get: numbers landed, ten by ten.
const killedGoal = 400

// writeToGoal goes on from the table's progress.
func writeToGoal(s object.Store) error {
	ctx := context.Background()
	table, _, err := OpenOrCreate(ctx, s, Spec{Schema: plain(), Configuration: map[string]string{"delta.checkpointInterval": "5"}}, Options{})
	if err != nil {
		return err
	}
	for {
		from, ok := table.Head().Txn("p")
		if from >= killedGoal {
			return nil
		}
		a, err := fakeFile(ctx, s, 10)
		if err != nil {
			return err
		}
		if _, err := table.Commit(ctx, Commit{Add: []Add{a}, Moves: []Move{{AppID: "p", First: !ok, From: from, To: from + 10}}}); err != nil {
			return err
		}
		if err := table.Maintain(ctx); err != nil {
			return err
		}
	}
}

// TestKilledWriter kills the writer again and again wherever it happens to be. It gets more and more time, so that it ends on any machine.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	kills := 0
	for {
		var said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "DELTA_TEST_TABLE="+dir, "DELTA_TEST_WRITER=w", "DELTA_TEST_GOAL=1")
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		var err error
		select {
		case err = <-done:
		case <-time.After(time.Duration(1+kills/20) * time.Duration(30+rand.IntN(120)) * time.Millisecond):
			_ = cmd.Process.Kill()
			err = <-done
			kills++
			if said.Len() == 0 {
				continue
			}
		}
		if err != nil {
			t.Fatalf("after %d kills: %v: %s", kills, err, said.String())
		}
		break
	}
	t.Logf("killed %d times", kills)
	local := must(object.NewLocal(dir))
	checkRows(t, local, killedGoal, "killed writer")
	if v := mustOpen(t, local, Options{}).Head().Version; v != killedGoal/10 {
		t.Errorf("version %d, want %d", v, killedGoal/10)
	}
}
