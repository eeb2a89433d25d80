package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// instanceRole is what the test binary is as a child: an instance of the application counts.
const instanceRole = "instance"

// instanceArgs are what an instance in a process of its own is told.
type instanceArgs struct {
	Brokers []string
	App     string
	State   string

	Standbys int
	Protocol Protocol
	Windows  bool  // the application windows instead
	Memory   int64 // its budget; 0: none
	Files    int   // that it may have open; 0: as many as the test
}

// runInstance is an instance in a process of its own, to be killed.
func runInstance(ctx context.Context, args instanceArgs) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if args.Files > 0 {
		if err := limitFiles(args.Files); err != nil {
			return err
		}
	}
	opts := []Option{Brokers(args.Brokers...), StateDir(args.State), ReplicationFactor(1), Logger(log), GroupProtocol(args.Protocol),
		SessionTimeout(6 * time.Second), CommitInterval(50 * time.Millisecond)}
	if args.Standbys > 0 {
		opts = append(opts, Standbys(args.Standbys), AcceptableLag(5))
	}
	plan := counts(args.App)
	if args.Windows {
		plan = windows(args.App)
	}
	if args.Memory > 0 {
		opts = append(opts, MemoryBudget(args.Memory))
	}
	e, err := New(plan, opts...)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

func (a *app) spawn(instance string) *child.Process {
	a.t.Helper()
	return a.spawnWith(instance, instanceArgs{})
}

// spawnWith starts an instance that is told more than where it is.
func (a *app) spawnWith(instance string, args instanceArgs) *child.Process {
	a.t.Helper()
	args.Brokers, args.App, args.State = a.c.Addrs, a.name, filepath.Join(a.dir, instance)
	p, err := child.Start(instanceRole, args, filepath.Join(a.dir, instance+".log"))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		p.Kill()
		if a.t.Failed() {
			a.t.Logf("%s:\n%s", instance, p.Log())
		}
	})
	return p
}

func says(p *child.Process, text string) bool { return strings.Contains(string(p.Log()), text) }

func restart(t *testing.T, p *child.Process) { // a kill -9 first, if it runs
	t.Helper()
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
}

func signal(t *testing.T, p *child.Process, sig syscall.Signal) {
	t.Helper()
	if err := p.Signal(sig); err != nil {
		t.Fatal(err)
	}
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
	children := map[string]*child.Process{}
	for _, name := range []string{"a", "b", "c"} {
		children[name] = a.spawn(name)
	}
	for _, ch := range children {
		eventually(t, "every instance has tasks", func() bool { return says(ch, "tasks assigned") })
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
			children["a"].Kill()
		case 5:
			restart(t, children["a"])
		case 8:
			signal(t, children["b"], syscall.SIGSTOP)
		case 12:
			restart(t, children["c"])
		case 16:
			if err := children["a"].Stop(time.Minute); err != nil {
				t.Errorf("ended by SIGTERM: %v", err)
			}
		}
	}
	eventually(t, "b's session is over: its tasks run elsewhere", func() bool { return total(out.lastCounts()) >= int64(produced) })
	feed()
	signal(t, children["b"], syscall.SIGCONT)
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
