package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/internal/child"
)

// contestant is a program that runs workloads.
type contestant interface {
	name() string
	// takes tells whether it has the workload.
	takes(workload string) bool
	// run runs it once. A workload with variants, such as the harness's, gives several results, told apart by their "variant".
	run(ctx context.Context, workload string) ([]measure.Result, error)
}

// runLimit bounds one run.
const runLimit = 15 * time.Minute

// execute runs a program to its end and reads its results. killed says that it is to kill itself.
func (s *session) execute(ctx context.Context, killed bool, program string, args ...string) ([]measure.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), measure.BrokerEnv+"="+s.brokerPID())
	cmd.Dir = s.dir
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if killed && errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && ctx.Err() == nil {
		err = nil
	} else if killed && err == nil {
		err = errors.New("it should have killed itself in the middle")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", program, err, child.LastLines(complaints.String()+out.String(), 20))
	}
	return measure.Parse(out.String())
}

func one(all []measure.Result, err error) (measure.Result, error) {
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("it printed %d results, not one", len(all))
	}
	return all[0], nil
}
