package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/child"
)

// shell are the README's commands, in order.
func shell(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(m[1]) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if len(lines) < 8 {
		t.Fatalf("only %d commands: %v", len(lines), lines)
	}
	return lines
}

// run runs the command as main does, with other output.
func run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	root := command(func(string) string { return "" })
	root.SetArgs(args)
	root.SetOut(&out)
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

// The README's commands do what it says, one after the other, in a fresh folder and with smaller days.
func TestReadmeCommandsRun(t *testing.T) {
	lines := shell(t)
	folder := t.TempDir()
	tool := filepath.Join(folder, "tributary")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, "../../../cmd/tributary").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Chdir(folder)
	ports, err := child.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprint("127.0.0.1:", ports[0])
	stop := func() {}
	for _, line := range lines {
		line = strings.ReplaceAll(line, "localhost:8080", address)
		switch words := strings.Fields(line); {
		case strings.HasPrefix(line, "go run ./examples/learning/run serve "):
			stop = serve(t, words[3:])
		case strings.HasPrefix(line, "curl "):
			ask(t, strings.Trim(words[1], "'"))
		case strings.HasPrefix(line, "go run ./examples/learning/run "):
			stop() // one process at a time may use the embedded broker
			stop = func() {}
			args := words[3:]
			if args[0] == "demo" {
				args = append(args, "--events", "300", "--learners", "20")
			}
			if out, err := run(t.Context(), args...); err != nil || out == "" {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
		case strings.HasPrefix(line, "go run ./cmd/tributary "):
			if out, err := exec.CommandContext(t.Context(), tool, words[3:]...).CombinedOutput(); err != nil || !bytes.Contains(out, []byte(words[5][strings.LastIndex(words[5], "/")+1:])) {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
		default:
			t.Errorf("nobody checks this command: %s", line)
		}
	}
	stop()
	if out, err := run(t.Context(), "acls"); err != nil || !strings.Contains(out, "--allow-principal 'User:learning-finance'") {
		t.Errorf("acls: %v\n%s", err, out)
	}
}

// serve runs products until the function that it returns is called.
func serve(t *testing.T, args []string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := run(ctx, args...)
		ended <- err
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// ask waits until a URL has rows.
func ask(t *testing.T, url string) {
	t.Helper()
	last := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get("http://" + url)
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK && bytes.Contains(body, []byte(`"key"`)) {
			return
		}
		last = resp.Status + " " + string(body)
	}
	t.Errorf("%s: %s", url, last)
}
