package tributary_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every code block of the README is either part of a file that is compiled and tested, or commands that are run here.

type block struct{ language, text, from string }

func readmeBlocks(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	found := regexp.MustCompile("(?ms)(?:^<!-- from: (\\S+) -->\n)?^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	for _, m := range found {
		blocks = append(blocks, block{language: m[2], text: m[3], from: m[1]})
	}
	if n := strings.Count(string(text), "```"); n != 2*len(blocks) || n == 0 {
		t.Fatalf("%d marks for %d blocks", n, len(blocks))
	}
	return blocks
}

func TestReadmeCodeIsCode(t *testing.T) {
	for _, b := range readmeBlocks(t) {
		if b.language != "go" {
			continue
		}
		file, err := os.ReadFile(b.from)
		if err != nil {
			t.Errorf("a block of Go says no file that it is from: %v\n%s", err, b.text)
		} else if !strings.Contains(string(file), b.text) {
			t.Errorf("this block is not in %s:\n%s", b.from, b.text)
		}
	}
}

func TestReadmeCommandsRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "tributary")
	command(ctx, t, ".", "go", "build", "-o", binary, "./cmd/tributary")
	folder := t.TempDir()
	command(ctx, t, folder, binary, "demo", "--orders", "500") // what make demo does, with fewer orders
	for _, b := range readmeBlocks(t) {
		if b.language != "sh" {
			continue
		}
		for line := range strings.Lines(b.text) {
			words := strings.Fields(line)
			switch {
			case words[0] == "make":
				if !regexp.MustCompile(`(?m)^` + words[1] + `:`).Match(makefile) {
					t.Errorf("the Makefile has no target %s", words[1])
				}
			case strings.HasPrefix(line, "go run ./cmd/tributary "):
				args := words[3:]
				if args[0] == "demo" {
					args = append(args, "--orders", "500")
				}
				command(ctx, t, folder, binary, args...)
			case words[0] == "go" && words[1] == "install":
				if pkg, ok := strings.CutPrefix(words[2], module); !ok || pkg != "cmd/tributary@latest" {
					t.Errorf("the command is %scmd/tributary, not %s", module, words[2])
				}
			case words[0] == "go" && words[1] == "get":
				if words[2]+"/" != module {
					t.Errorf("the module is %s, not %s", module, words[2])
				}
			default:
				t.Errorf("nobody checks this command: %s", line)
			}
		}
	}
}

func command(ctx context.Context, t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
}
