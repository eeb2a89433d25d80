package delta

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
)

const (
	processWriters = 3
	processCommits = 40
)

// writerProcess is one of the processes of TestRacingProcesses.
func writerProcess() int {
	store, err := object.NewLocal(os.Getenv("DELTA_TEST_TABLE"))
	if err == nil {
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
	local := second(object.NewLocal(dir))
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
