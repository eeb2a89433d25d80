package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

type greeting struct{ Name string }

func TestMain(m *testing.M) {
	Main(map[string]Role{
		"greet": As(func(ctx context.Context, g greeting) error {
			fmt.Println("hello", g.Name)
			<-ctx.Done()
			fmt.Println("bye", g.Name)
			return nil
		}),
		"take": As(func(_ context.Context, ports []int) error {
			for _, port := range ports {
				got, err := take(port)
				if err != nil {
					return err
				}
				fmt.Println("took", port, got)
			}
			return nil
		}),
		"fail": As(func(context.Context, greeting) error { return errors.New("no such luck") }),
	})
	os.Exit(m.Run())
}

func start(t *testing.T, role string) *Process {
	t.Helper()
	p, err := Start(role, greeting{"you"}, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within four minutes: ", what)
		}
	}
}

func (p *Process) says(text string) func() bool {
	return func() bool { return strings.Contains(string(p.Log()), text) }
}

func TestChildEndsInOrder(t *testing.T) {
	p := start(t, "greet")
	await(t, "hello", p.says("hello you"))
	if err := p.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	if !p.says("bye you")() || p.Running() {
		t.Errorf("it runs: %t, it said %q", p.Running(), p.Log())
	}
}

// A child that is stopped at once after its start ends in order, too.
func TestChildThatWasJustStartedEndsInOrder(t *testing.T) {
	for range 10 {
		p := start(t, "greet")
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		if !p.says("bye you")() {
			t.Errorf("it said %q", p.Log())
		}
	}
}

func TestKilledChildLivesAgain(t *testing.T) {
	p := start(t, "greet")
	await(t, "hello", p.says("hello you"))
	p.Kill()
	if p.Running() || p.says("bye you")() {
		t.Fatalf("killed, but it runs: %t, and said %q", p.Running(), p.Log())
	}
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	await(t, "hello again", func() bool { return strings.Count(string(p.Log()), "hello you") == 2 })
}

func TestStoppedChildGoesOn(t *testing.T) {
	p := start(t, "greet")
	await(t, "hello", p.says("hello you"))
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := p.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Stop(time.Minute); err != nil {
		t.Error(err)
	}
}

func TestFailureOfAChildShows(t *testing.T) {
	p := start(t, "fail")
	await(t, "the end", func() bool { return !p.Running() })
	if err := p.Stop(time.Minute); err == nil || !p.says("no such luck")() {
		t.Errorf("Stop: %v, it said %q", err, p.Log())
	}
}

func TestUnknownRole(t *testing.T) {
	p := start(t, "sing")
	await(t, "the end", func() bool { return !p.Running() })
	if !p.says(`no role "sing"`)() {
		t.Errorf("it said %q", p.Log())
	}
}

// A port that a server has been told, which isn't up yet, is given to nobody else, neither in this process nor in another one.
func TestPortsAreGivenOnce(t *testing.T) {
	ports, err := FreePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		if got, err := take(port); got || err != nil {
			t.Errorf("this process took port %d twice: %v", port, err)
		}
	}
	p, err := Start("take", ports, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	await(t, "the end", func() bool { return !p.Running() })
	if said := string(p.Log()); strings.Count(said, "false") != len(ports) || strings.Contains(said, "true") {
		t.Errorf("another process took ports of this one:\n%s", said)
	}
}
