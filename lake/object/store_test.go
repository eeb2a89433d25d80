package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/internal/leaks"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("OBJECT_TEST_RACER"); dir != "" {
		os.Exit(race(dir))
	}
	leaks.Main(m)
}

// stores are the implementations that must behave alike.
func stores(t testing.TB) map[string]Store {
	local, err := NewLocal(filepath.Join(t.TempDir(), "deep", "er"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Store{"local": local, "memory": NewMemory("test"), "faulty": &Faulty{Inner: NewMemory("inner")}}
}

func TestStoreContract(t *testing.T) {
	ctx := t.Context()
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			if err := s.PutIfAbsent(ctx, "a/b", []byte("one")); err != nil {
				t.Fatal(err)
			}
			if err := s.PutIfAbsent(ctx, "a/b", []byte("two")); !errors.Is(err, ErrExists) {
				t.Fatalf("second put if absent: %v", err)
			}
			expect(t, s, "a/b", "one")
			if err := s.Put(ctx, "a/b", []byte("three")); err != nil {
				t.Fatal(err)
			}
			expect(t, s, "a/b", "three")
			part, err := s.GetRange(ctx, "a/b", 1, 3)
			if err != nil || string(part) != "hre" {
				t.Fatalf("range: %q, %v", part, err)
			}
			if part, err = s.GetRange(ctx, "a/b", 3, 100); err != nil || string(part) != "ee" {
				t.Fatalf("range over the end: %q, %v", part, err)
			}
			info, err := s.Stat(ctx, "a/b")
			if err != nil || info.Size != 5 || info.Name != "a/b" || time.Since(info.Modified).Abs() > time.Hour {
				t.Fatalf("stat: %+v, %v", info, err)
			}
			for range 2 {
				if err := s.Delete(ctx, "a/b"); err != nil {
					t.Fatal(err)
				}
			}
			for op, err := range map[string]error{
				"get": second(s.Get(ctx, "a/b")), "range": second(s.GetRange(ctx, "a/b", 0, 1)), "stat": second(s.Stat(ctx, "a/b")),
				"stat of a folder": second(s.Stat(ctx, "a")), "sync": s.Sync(ctx, "a/b"),
			} {
				if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), s.String()) {
					t.Errorf("%s of what isn't there: %v", op, err)
				}
			}
			for _, bad := range []string{"", "/a", "a/", "a//b", "../a", "a/./b", "a\x00"} {
				if err := s.PutIfAbsent(ctx, bad, nil); err == nil {
					t.Errorf("name %q was accepted", bad)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func expect(t testing.TB, s Store, name, want string) {
	t.Helper()
	got, err := s.Get(t.Context(), name)
	if err != nil || string(got) != want {
		t.Fatalf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

func TestCreate(t *testing.T) {
	ctx := t.Context()
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w, err := s.Create(ctx, "x/data")
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := w.Write([]byte("abc")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Get(ctx, "x/data"); !errors.Is(err, ErrNotFound) {
				t.Fatalf("visible before Close: %v", err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			w.Abort() // must do nothing now
			expect(t, s, "x/data", "abcabcabc")
			if err := s.Sync(ctx, "x/data"); err != nil {
				t.Fatal(err)
			}
			dropped, err := s.Create(ctx, "x/dropped")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := dropped.Write([]byte("abc")); err != nil {
				t.Fatal(err)
			}
			dropped.Abort()
			if got := list(t, s, "x/", ""); !slices.Equal(got, []string{"x/data"}) {
				t.Fatalf("after Abort: %v", got)
			}
			again, err := s.Create(ctx, "x/data")
			if err == nil {
				err = again.Close()
			}
			if !errors.Is(err, ErrExists) {
				t.Fatalf("second object of the same name: %v", err)
			}
			expect(t, s, "x/data", "abcabcabc")
		})
	}
}

func list(t testing.TB, s Store, prefix, after string) (names []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	return names
}

// TestListOrder compares listings with a sorted list of names: folders must not come before names that sort between.
func TestListOrder(t *testing.T) {
	part := rapid.StringMatching(`[-.0-9a-c_]{1,3}`).Filter(func(s string) bool { return s != "." && s != ".." })
	name := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), "/") })
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		local, err := NewLocal(dir)
		if err != nil {
			rt.Fatal(err)
		}
		memory := NewMemory("model")
		for _, n := range rapid.SliceOfN(name, 1, 12).Draw(rt, "names") {
			w, err := local.Create(t.Context(), n)
			if err == nil {
				err = w.Close()
			}
			if err == nil { // a name may clash with a folder on disk, which object stores don't have
				_ = memory.Put(t.Context(), n, nil)
			}
		}
		prefix := rapid.OneOf(rapid.Just(""), name).Draw(rt, "prefix")
		after := rapid.OneOf(rapid.Just(""), name).Draw(rt, "after")
		got, want := list(t, local, prefix, after), list(t, memory, prefix, after)
		if !slices.Equal(got, want) {
			rt.Fatalf("List(%q, %q) = %q, want %q", prefix, after, got, want)
		}
	})
}

func TestListStopsAndEndsWithContext(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			for i := range 5 {
				if err := s.PutIfAbsent(t.Context(), fmt.Sprint("d/", i), nil); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			for range s.List(t.Context(), "d/", "") {
				if n++; n == 2 {
					break
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, err := range s.List(ctx, "d/", "") {
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("listing under an ended context: %v", err)
				}
			}
			if got := list(t, s, "nothing/here", ""); got != nil {
				t.Fatalf("listing of nothing: %v", got)
			}
		})
	}
}

// TestOneWinnerInProcess has many goroutines race for each name.
func TestOneWinnerInProcess(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			for round := range 20 {
				var wg sync.WaitGroup
				wins := make([]bool, 8)
				for i := range wins {
					wg.Go(func() { wins[i] = s.PutIfAbsent(t.Context(), fmt.Sprint("r", round), fmt.Append(nil, i)) == nil })
				}
				wg.Wait()
				winner := slices.Index(wins, true)
				if winner < 0 || slices.Contains(wins[winner+1:], true) {
					t.Fatalf("round %d: winners %v", round, wins)
				}
				expect(t, s, fmt.Sprint("r", round), fmt.Sprint(winner))
			}
		})
	}
}

const racedNames = 300

// race is a process of TestOneWinnerAmongProcesses: it tries to take every name and prints those that it won.
func race(dir string) int {
	s, err := NewLocal(dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for i := range racedNames {
		switch err := s.PutIfAbsent(context.Background(), fmt.Sprint("n", i), fmt.Append(nil, os.Getpid())); {
		case err == nil:
			fmt.Println("n" + fmt.Sprint(i))
		case !errors.Is(err, ErrExists):
			fmt.Println(err)
			return 1
		}
	}
	return 0
}

func TestOneWinnerAmongProcesses(t *testing.T) {
	dir := t.TempDir()
	out := make([]bytes.Buffer, 4)
	cmds := make([]*exec.Cmd, len(out))
	for i := range cmds {
		cmds[i] = exec.CommandContext(t.Context(), os.Args[0])
		cmds[i].Env = append(os.Environ(), "OBJECT_TEST_RACER="+dir)
		cmds[i].Stdout = &out[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	winner := map[string]int{}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, out[i].String())
		}
		for _, name := range strings.Fields(out[i].String()) {
			if other, ok := winner[name]; ok {
				t.Errorf("%s was won by processes %d and %d", name, other, cmd.Process.Pid)
			}
			winner[name] = cmd.Process.Pid
		}
	}
	if len(winner) != racedNames {
		t.Fatalf("%d names won, want %d", len(winner), racedNames)
	}
	s, err := NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, pid := range winner {
		expect(t, s, name, fmt.Sprint(pid))
	}
}

func TestCheckPutIfAbsent(t *testing.T) {
	for name, s := range stores(t) {
		if err := CheckPutIfAbsent(t.Context(), s, "_delta_log"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left := list(t, s, "", ""); left != nil {
			t.Errorf("%s: the check left %v", name, left)
		}
	}
	careless := &Faulty{Inner: NewMemory("careless"), Plan: func(c Call) Fault { return StaleWins }}
	if err := CheckPutIfAbsent(t.Context(), careless, "c"); !errors.Is(err, ErrNotConditional) {
		t.Errorf("a store that ignores the condition passed: %v", err)
	}
	down := &Faulty{Inner: NewMemory("down"), Plan: func(c Call) Fault { return Fail }}
	if err := CheckPutIfAbsent(t.Context(), down, "c"); !errors.Is(err, ErrFault) || errors.Is(err, ErrNotConditional) {
		t.Errorf("a store that is down: %v", err)
	}
}

func TestFaults(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		fault Fault
		want  error
		holds string // under the name afterwards, "" for nothing
		dead  bool
	}{
		{Fail, ErrFault, "", false}, {LoseReply, ErrUnknown, "data", false}, {Doubt, ErrUnknown, "", false}, {NoSpace, ErrNoSpace, "", false},
		{Crash, ErrCrashed, "", true}, {CrashAfter, ErrCrashed, "data", true}, {Torn, ErrCrashed, "da", true},
	} {
		inner := NewMemory("inner")
		s := &Faulty{Inner: inner, Plan: func(call Call) Fault {
			if call.N == 1 {
				return c.fault
			}
			return NoFault
		}}
		if err := s.PutIfAbsent(ctx, "n", []byte("data")); !errors.Is(err, c.want) {
			t.Errorf("fault %d: %v, want %v", c.fault, err, c.want)
		}
		got, _ := inner.Get(ctx, "n")
		if string(got) != c.holds {
			t.Errorf("fault %d: left %q, want %q", c.fault, got, c.holds)
		}
		if err := s.Put(ctx, "later", nil); errors.Is(err, ErrCrashed) != c.dead {
			t.Errorf("fault %d: the next operation: %v", c.fault, err)
		}
		if s.Calls() != 2 {
			t.Errorf("fault %d: %d calls counted", c.fault, s.Calls())
		}
	}
}

func TestSweepTemp(t *testing.T) {
	s, err := NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Create(t.Context(), "log/data") // a crash leaves it unfinished
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if n, err := s.SweepTemp("log", time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Fatalf("swept %d young files, %v", n, err)
	}
	if n, err := s.SweepTemp("log", time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Fatalf("swept %d files, %v", n, err)
	}
	if n, err := s.SweepTemp("nowhere", time.Now()); n != 0 || err != nil {
		t.Fatalf("swept %d files in a missing folder, %v", n, err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, place := range []string{dir + "/a", "file://" + dir + "/a"} {
		s, err := Open(t.Context(), place)
		if err != nil || s.String() != dir+"/a" {
			t.Errorf("Open(%q) = %v, %v", place, s, err)
		}
	}
	for _, place := range []string{"gopher://x/y", "file://host/path", "s4://b"} {
		if _, err := Open(t.Context(), place); err == nil {
			t.Errorf("Open(%q) succeeded", place)
		}
	}
	if err := os.WriteFile(dir+"/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir+"/file"); err == nil {
		t.Error("a file was opened as a folder")
	}
}

// TestDiskErrors checks how the errors of a disk are told apart: full, read-only, and those that leave the outcome open.
func TestDiskErrors(t *testing.T) {
	s, err := NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	err = s.fail("put", "n", &os.PathError{Op: "write", Path: "n", Err: syscall.ENOSPC})
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "free space") {
		t.Errorf("ENOSPC became %v", err)
	}
	if err := os.Mkdir(s.root+"/ro", 0o555); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		if err := s.PutIfAbsent(t.Context(), "ro/n", nil); err == nil || errors.Is(err, ErrUnknown) {
			t.Errorf("put into a read-only folder: %v", err)
		}
	}
	for err, unknown := range map[error]bool{syscall.EEXIST: false, syscall.ENOSPC: false, syscall.EIO: true, syscall.ENOTSUP: false} {
		if got := errors.Is(s.fail("put", "n", linkError(err)), ErrUnknown); got != unknown {
			t.Errorf("link error %v: unknown=%v", err, got)
		}
	}
}
