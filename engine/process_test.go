package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// childVariable makes the test binary run an instance instead of tests: "<brokers>|<name>|<state directory>".
const childVariable = "TRIBUTARY_ENGINE_TEST_CHILD"

// runChild is an instance in a process of its own, to be killed.
func runChild() int {
	args := strings.Split(os.Getenv(childVariable), "|")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	e, err := New(counts(args[1]), Brokers(strings.Split(args[0], ",")...), StateDir(args[2]), ReplicationFactor(1), Logger(log),
		SessionTimeout(6*time.Second), CommitInterval(50*time.Millisecond))
	if err == nil {
		err = e.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child is an instance in a process of its own.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	log string
}

func (a *app) spawn(instance string) *child {
	a.t.Helper()
	log := filepath.Join(a.dir, instance+".log")
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		a.t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%s", childVariable, strings.Join(a.c.Addrs, ","), a.name, filepath.Join(a.dir, instance)))
	cmd.Stderr, cmd.Stdout = f, f
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	c := &child{a.t, cmd, log}
	a.t.Cleanup(func() {
		c.end(syscall.SIGKILL)
		if a.t.Failed() {
			text, _ := os.ReadFile(log)
			a.t.Logf("%s:\n%s", instance, text)
		}
	})
	return c
}

// end signals the process and waits for its end.
func (c *child) end(sig syscall.Signal) {
	if c.cmd.ProcessState != nil {
		return
	}
	c.signal(sig)
	c.cmd.Wait()
}

func (c *child) signal(sig syscall.Signal) { c.cmd.Process.Signal(sig) }

func (c *child) says(text string) bool {
	log, _ := os.ReadFile(c.log)
	return strings.Contains(string(log), text)
}

// Three instances share the tasks of a stateful application on real Kafka. One is killed in the middle and started again, one is stopped
// for longer than its session and goes on as a zombie, one is closed in order. Every input counts once.
func TestKilledAndStoppedInstancesCountOnce(t *testing.T) {
	t.Parallel()
	c := &brokertest.Cluster{Addrs: realkafka.Shared(t, 1).Addrs()}
	a := newApp(t, c, "kill")
	a.create("in", 6)
	a.create("out", 3)
	out := a.read("out")
	children := map[string]*child{}
	for _, name := range []string{"a", "b", "c"} {
		children[name] = a.spawn(name)
	}
	for _, ch := range children {
		eventually(t, "every instance has tasks", func() bool { return ch.says("tasks assigned") })
	}
	const n, rounds = 3000, 20
	produced := 0
	feed := func() {
		a.produce("in", 6, numbered(n, 50)...)
		produced += n
		time.Sleep(150 * time.Millisecond)
	}
	for round := range rounds {
		feed()
		switch round {
		case 4:
			children["a"].end(syscall.SIGKILL)
		case 5:
			children["a"] = a.spawn("a")
		case 8:
			children["b"].signal(syscall.SIGSTOP)
		case 12:
			children["c"].end(syscall.SIGKILL)
			children["c"] = a.spawn("c")
		case 16:
			children["a"].end(syscall.SIGTERM)
		}
	}
	time.Sleep(7 * time.Second) // b's session is over: its tasks run elsewhere
	feed()
	children["b"].signal(syscall.SIGCONT)
	feed()
	eventually(t, fmt.Sprintf("all %d records counted", produced), func() bool { return total(out.lastCounts()) >= int64(produced) })
	time.Sleep(300 * time.Millisecond) // for what shouldn't come
	if got := total(out.lastCounts()); got != int64(produced) {
		t.Errorf("counted %d records, want %d", got, produced)
	}
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
}
