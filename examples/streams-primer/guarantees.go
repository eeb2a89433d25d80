package primer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// orders of the lesson on guarantees.
const orders = 50

var guaranteesLesson = Lesson{
	Name: "guarantees",
	Idea: "An instance is killed after it has worked and before it has committed. Exactly once, each order has one invoice; at least once, two.",
	Topics: map[string]int32{
		"orders": 1, "out": 1,
	},
	Output: "out",
	Input:  manyOrders(),
	Build: func(app App) (*topology.Plan, error) {
		b := app.builder()
		b.Stream(app.Topic("orders"), serde.String, serde.String).
			MapValues(func(order string) string { return "invoice for " + order }).
			To(app.Topic("out"))
		return b.Build()
	},
	Play: func(s *Stage) (lines []string, err error) {
		for _, g := range []struct {
			name      string
			guarantee engine.Guarantee
		}{{"exactly once", engine.ExactlyOnce}, {"at least once", engine.AtLeastOnce}} {
			n, err := s.invoices(g.guarantee)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", g.name, err)
			}
			lines = append(lines, fmt.Sprintf("%-14s %d invoices for %d orders", g.name+":", n, orders))
		}
		return lines, nil
	},
	Result: []string{
		"exactly once:  50 invoices for 50 orders",
		"at least once: 100 invoices for 50 orders",
	},
}

func manyOrders() (all []Record) {
	for i := range orders {
		all = append(all, Record{"orders", fmt.Sprint("o", i), fmt.Sprint("order ", i), i})
	}
	return all
}

// invoices plays the crash with a guarantee, on topics of its own, and counts what readers of committed records see.
func (s *Stage) invoices(g engine.Guarantee) (int, error) {
	own := *s
	own.App = App(fmt.Sprintf("%s-%d", s.App, g))
	own.Dir = filepath.Join(s.Dir, fmt.Sprint(g))
	if err := own.set(); err != nil {
		return 0, err
	}
	if err := own.workAndDie(g); err != nil {
		return 0, err
	}
	i, err := own.Start("one", engine.Processing(g))
	if err != nil {
		return 0, err
	}
	err = own.until(i, "an end of the orders", func() (bool, error) {
		stats := i.Stats()
		return stats.State == engine.Running && stats.Processed >= orders && stats.Lag == 0, nil
	})
	if err = errors.Join(err, i.Stop()); err != nil {
		return 0, err
	}
	lines, err := own.output()
	_, _ = own.admin.DeleteGroup(s.ctx, string(own.App))
	return len(lines), err
}

// workAndDie runs an instance in a process of its own, which commits once in five minutes, and kills it with -9 when all invoices are written.
func (s *Stage) workAndDie(g engine.Guarantee) error {
	text, err := json.Marshal(victim{s.App, s.Brokers, s.Dir, g})
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its error is that it was killed
	}()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if n, err := s.written(); n >= orders || err != nil {
			return err
		}
		if s.ctx.Err() != nil || time.Now().After(deadline) {
			return errors.Join(s.ctx.Err(), errors.New("the instance that is to be killed has not written its invoices"))
		}
	}
}

// victimVariable makes this program the instance that is to be killed.
const victimVariable = "TRIBUTARY_PRIMER_VICTIM"

type victim struct {
	App       App
	Brokers   []string
	Dir       string
	Guarantee engine.Guarantee
}

// MaybeVictim runs the instance that is to be killed, if this process was started for that, and doesn't return then. A program that plays lessons
// calls it first.
func MaybeVictim() {
	text := os.Getenv(victimVariable)
	if text == "" {
		return
	}
	var v victim
	err := json.Unmarshal([]byte(text), &v)
	if err == nil {
		s := &Stage{App: v.App, Lesson: &guaranteesLesson, Brokers: v.Brokers, Dir: v.Dir, Out: io.Discard, Log: slog.New(slog.DiscardHandler), ctx: context.Background()}
		var i *Instance
		if i, err = s.Start("one", engine.Processing(v.Guarantee), engine.CommitInterval(5*time.Minute), engine.TransactionTimeout(12*time.Minute)); err == nil {
			err = <-i.ended
		}
	}
	fmt.Fprintln(os.Stderr, "the instance to be killed ended by itself:", err)
	os.Exit(1)
}
