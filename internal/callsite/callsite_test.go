package callsite

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// here is the position of its caller.
func here() string {
	_, _, line, _ := runtime.Caller(1)
	return "callsite_test.go:" + strconv.Itoa(line)
}

func recovered(f func()) (at, stack string) {
	defer func() {
		_ = recover()
		at, stack = Panicked()
	}()
	f()
	return "", ""
}

func TestDeclaredIsTheCallersLine(t *testing.T) {
	if got, want := Declared(), here(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPanickedIsTheUsersLine(t *testing.T) {
	var nobody *struct{ x int }
	want := ""
	tests := map[string]func(){
		"own":                func() { want = here(); panic("ouch") },
		"runtime's":          func() { want = here(); nobody.x++ },
		"standard library's": func() { want = here(); _ = strings.Repeat("x", -1) },
		"while deep":         func() { func() { want = here(); panic("ouch") }() },
	}
	for name, f := range tests {
		at, stack := recovered(f)
		if at != want || at == "" {
			t.Errorf("%s: at %q, want %q", name, at, want)
		}
		if strings.Contains(stack, "gopanic") || strings.Contains(stack, "callsite.Panicked") {
			t.Errorf("%s: the stack has frames of the runtime or of deferred functions:\n%s", name, stack)
		}
	}
}

func TestFramesOfOthers(t *testing.T) {
	for name, user := range map[string]bool{
		module + "topology.(*Stream[...]).Map[go.shape.string,github.com/x/y.T]": false,
		module + "topology_test.TestX":                                           true,
		module + "topology/topologytest.Open":                                    false,
		module + "examples/fraud.Topology":                                       true,
		module + "internal/task.(*queue).process":                                false,
		"mistakes.ouch":                    true,
		"main.main":                        true,
		"gopkg.in/yaml%2ev3.Unmarshal":     true,
		"runtime.goexit":                   false,
		"internal/runtime/maps.(*Map).Get": false,
	} {
		if got := isUser(runtime.Frame{Function: name, File: "/src/x.go"}); got != user {
			t.Errorf("%s (of package %s): user %v", name, packageOf(runtime.Frame{Function: name}), got)
		}
	}
}

func TestRoomsExist(t *testing.T) {
	for _, r := range rooms {
		if _, err := os.Stat("../../" + r); err != nil {
			t.Error(err)
		}
	}
}
