package ods_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/devbroker"
	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/internal/child"
)

// programVariable makes this test binary the example's program, so that it need not be built.
const programVariable = "ODS_TEST_AS_PROGRAM"

// readme runs the README's commands as they stand, but for the places of programs and servers, and how long `timeout` waits.
type readme struct {
	t    *testing.T
	dir  string
	what *strings.Replacer
}

func newReadme(t *testing.T, ctx context.Context, brokers, registry string) *readme {
	dir := t.TempDir()
	tool := filepath.Join(dir, "tributary")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", tool, "../../cmd/tributary").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &readme{t, dir, strings.NewReplacer("go run ./examples/ods/run", self, "go run ./cmd/tributary", tool, "localhost:9092", brokers, "http://localhost:8081", registry)}
}

// run runs commands. What `timeout` ends runs until the function ready says so, by what the program's count says.
func (r *readme) run(ctx context.Context, commands, ready string) string {
	r.t.Helper()
	script := r.what.Replace(commands)
	script = regexp.MustCompile(`timeout --preserve-status \d+ (\S+)(.*)`).ReplaceAllString(script,
		"$1$2 & pid=$$!\nfor n in $$(seq 1000); do $1 count | grep -q '"+ready+"' && break; sleep 0.3; done\nkill $$pid; wait $$pid")
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), programVariable+"=1")
	cmd.SysProcAttr = child.Attributes()
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// TestReadmeCommandsRun runs the README's commands in one folder, as a reader does: the first on the embedded broker, all others on a real Kafka.
func TestReadmeCommandsRun(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) != 8 {
		t.Fatalf("%d blocks of commands, want 8", len(blocks))
	}
	brokers := strings.Join(emptied(t), ",")
	registry, err := devbroker.StartRegistry(devbroker.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	r := newReadme(t, ctx, brokers, registry.URL())
	if out := r.run(ctx, blocks[0], ""); !strings.Contains(out, "All as the generator says.") {
		t.Errorf("the demonstration:\n%s", out)
	}
	two, three := readmeEvents(2), readmeEvents(3)
	staged := func(events int64) string { return fmt.Sprintf("staging: %d rows; published: %d", events, events) }
	out := r.run(ctx, strings.Join(blocks[1:], ""), staged(three))
	for _, want := range []string{
		"The code of the voucher that was used", // in the table after the change
		"the schema is not BACKWARD compatible", // the required field
		"published 0 events",                    // publishing again
		"1000 rows went through",                // the proof
		"verified: each record is accounted for, once",
		fmt.Sprintf(`rows of %d events in \d+ commits, and 2 commits of metadata alone; %s`, two, staged(two)),
		fmt.Sprintf(`rows of %d events in \d+ commits, and 2 commits of metadata alone; %s`, three, staged(three)),
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("nothing says %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// readmeEvents are the different events of the README's first days, and of the newer producer on the second.
func readmeEvents(days int) int64 {
	spec := shop.Spec{Date: day, Orders: 500, Seed: 1} // the program's defaults
	m, web := shop.NewModel(spec), shop.NewModel(spec)
	for n := range days {
		m.AddDay(day.AddDate(0, 0, n))
	}
	web.AddDay(day.AddDate(0, 0, 1))
	return m.Distinct + web.Distinct
}
