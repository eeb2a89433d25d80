package playback_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/realkafka"
)

// TestReadmeCommandsRun runs the README's commands as they stand, on a real Kafka, with the program built once.
func TestReadmeCommandsRun(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of commands, want 2", len(blocks))
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "playback")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./run").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	brokers := strings.Join(realkafka.Shared(t, 1).Addrs(), ",")
	for n, block := range blocks {
		script := strings.ReplaceAll(block[1], "go run ./examples/playback/run", program)
		script = strings.ReplaceAll(script, "localhost:9092", brokers)
		cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
		cmd.Dir = filepath.Join(dir, string(rune('a'+n)))
		if err := os.Mkdir(cmd.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(os.Environ(), "STREAMING_MAX_SECONDS=2")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, script, out)
		}
		for _, m := range regexp.MustCompile(`produced (\d+) records of (\d+) events`).FindAllSubmatch(out, 1) {
			if want := string(m[1]) + " rows, " + string(m[2]) + " different events"; !strings.Contains(string(out), want) {
				t.Errorf("no count says %q:\n%s", want, out)
			}
		}
	}
}
