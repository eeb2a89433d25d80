package testreport_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/internal/testreport"
)

// The events are those of the go command itself, run over a module made here.
func TestReportOfARealRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.27\n",
		"good/good_test.go": `package good
import "testing"
func TestOne(t *testing.T) { t.Run("sub", func(t *testing.T) {}) }
func TestTwo(t *testing.T) {}
func TestSkip(t *testing.T) { t.Log("before"); t.Skipf("no Kafka here:\nno java in PATH") }
func TestSilent(t *testing.T) { t.SkipNow() }
func TestHalf(t *testing.T) { t.Run("left", func(t *testing.T) { t.Skip("left out") }); t.Run("right", func(t *testing.T) {}) }
`,
		"bad/bad_test.go": `package bad
import "testing"
func TestFails(t *testing.T) { t.Log("a log line"); t.Error("it broke:\nbadly"); t.Log("another") }
func TestParent(t *testing.T) { t.Run("child", func(t *testing.T) { t.Fatal("sub broke") }) }
func TestPasses(t *testing.T) {}
`,
		"broken/broken_test.go": "package broken\nfunc undefined() { nothing() }\n",
		"exits/exits_test.go": `package exits
import ("fmt"; "os"; "testing")
func TestMain(m *testing.M) { m.Run(); fmt.Println("a leak"); os.Exit(1) }
func TestPasses(t *testing.T) {}
`,
		"panics/panics_test.go": "package panics\nimport \"testing\"\nfunc TestPanics(t *testing.T) { panic(\"oh\") }\nfunc TestNever(t *testing.T) {}\n",
		"none/none.go":          "package none\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-json", "-vet=off", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	events, err := cmd.Output()
	if err == nil {
		t.Fatal("the run passed")
	}
	var out strings.Builder
	r := testreport.New(&out)
	if err := r.Read(strings.NewReader("go: a message\n" + string(events))); err != nil {
		t.Fatal(err)
	}
	r.Summary()

	want := []testreport.Skip{
		{Package: "m/good", Test: "TestSkip", Reason: "no Kafka here: no java in PATH"},
		{Package: "m/good", Test: "TestSilent", Reason: "no reason given"},
		{Package: "m/good", Test: "TestHalf/left", Reason: "left out"},
	}
	if d := cmp.Diff(want, r.Skips); d != "" {
		t.Error(d)
	}
	text := out.String()
	for _, line := range []string{
		"go: a message\n", "--- FAIL: m/bad TestFails\n", "it broke", "undefined: nothing", "panic: oh", "3 passed, 3 skipped\n",
		"1 passed, 3 failed\n", "  m/good TestSkip: no Kafka here: no java in PATH\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the report lacks %q", line)
		}
	}
	if !strings.HasSuffix(text, "\n5 passed, 6 failed, 3 skipped\n") {
		t.Errorf("the last line is %q", text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:])
	}
	failures := map[string]string{}
	for _, f := range r.Failures {
		said, _, _ := strings.Cut(f.Said, "\n\n") // without a panic's stack
		failures[f.Package+" "+f.Test] = said
	}
	wantFailures := map[string]string{
		"m/bad TestFails": "bad_test.go:3: it broke:\nbadly", "m/bad TestParent/child": "bad_test.go:4: sub broke",
		"m/broken ":           "FAIL\tm/broken [build failed]\n# m/broken [m/broken.test]\nbroken/broken_test.go:2:20: undefined: nothing",
		"m/exits ":            "PASS\na leak\nFAIL\tm/exits",
		"m/panics TestPanics": "panic: oh [recovered, repanicked]",
	}
	if exits := failures["m/exits "]; strings.HasPrefix(exits, wantFailures["m/exits "]) {
		wantFailures["m/exits "] = exits // and the time it took
	}
	if d := cmp.Diff(wantFailures, failures); d != "" {
		t.Error(d)
	}
	end := text[strings.LastIndex(text, "\nFailed:\n"):]
	if !strings.Contains(end, "  m/bad TestFails:\n    bad_test.go:3: it broke:\n    badly\n  m/bad TestParent/child:\n") {
		t.Errorf("the report ends with %s", end)
	}
	if strings.Contains(text, "m/none") {
		t.Error("a package without tests is told of")
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestReportOfARunThatWasKilled(t *testing.T) {
	var out strings.Builder
	r := testreport.New(&out)
	if err := r.Read(strings.NewReader(`{"Action":"run","Package":"m","Test":"TestA"}` + "\n" + `{"Action":"pass","Package":"m","Test":"TestA"}`)); err != nil {
		t.Fatal(err)
	}
	r.Summary()
	if r.Failed != 1 || !strings.Contains(out.String(), "ended in the middle") {
		t.Errorf("%d failed: %s", r.Failed, out.String())
	}
}

// What is repeated at the end is short, however much was said.
func TestMuchIsSaid(t *testing.T) {
	var events, out strings.Builder
	event := func(action, output, kind string) {
		raw, err := json.Marshal(map[string]string{"Action": action, "Package": "m", "Test": "TestA", "Output": output, "OutputType": kind})
		if err != nil {
			t.Fatal(err)
		}
		events.Write(append(raw, '\n'))
	}
	event("run", "", "")
	event("output", "a_test.go:1: "+strings.Repeat("é", 5000)+"\n", "error")
	for range 1000 {
		event("output", "more\n", "error-continue")
		event("output", "a log line\n", "")
	}
	event("fail", "", "")
	r := testreport.New(&out)
	if err := r.Read(strings.NewReader(events.String())); err != nil {
		t.Fatal(err)
	}
	r.Summary()
	if said := r.Failures[0].Said; len(said) > 2000 || !utf8.ValidString(said) || strings.Count(said, "more") != 19 || strings.Contains(said, "log line") {
		t.Errorf("it says %q", said)
	}
}
