package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	primer "github.com/tributary-io/tributary/examples/streams-primer"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each lesson has its section in the README, with the result that the tests pin.
func TestReadmeShowsTheResults(t *testing.T) {
	text := readme(t)
	for _, l := range primer.Lessons {
		_, section, _ := strings.Cut(text, "\n## "+l.Name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !strings.Contains(section, "```\n"+strings.Join(l.Result, "\n")+"\n```") {
			t.Errorf("%s: the README has another result, or none", l.Name)
		}
		if strings.Count(section, "```") != 4 {
			t.Errorf("%s: the README has no picture", l.Name)
		}
	}
}

// The README's commands print what its sections show.
func TestReadmeCommandsRun(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "run")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	const program = "go run ./examples/streams-primer/run"
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		for command := range strings.Lines(block[1]) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(command), program)
			if !ok {
				t.Errorf("this is no command of the primer: %s", command)
				continue
			}
			if strings.Contains(rest, "-brokers") {
				continue // a cluster of the reader's; TestLessonsOnKafka plays them on one
			}
			out, err := exec.CommandContext(t.Context(), binary, strings.Fields(rest)...).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
			ran++
			checkOutput(t, rest, string(out))
		}
	}
	if ran < 3 {
		t.Errorf("%d commands were run", ran)
	}
}

func checkOutput(t *testing.T, args, out string) {
	t.Helper()
	for _, l := range primer.Lessons {
		switch {
		case strings.Contains(args, "-describe"):
			if !strings.Contains(out, l.Name+"\nTopologies:\n") {
				t.Errorf("%s: its topology isn't told", l.Name)
			}
		case strings.TrimSpace(args) == "" || slices.Contains(strings.Fields(args), l.Name):
			if result := "  " + strings.Join(l.Result, "\n  ") + "\n"; !strings.Contains(out, result) {
				t.Errorf("%s: the command prints something else:\n%s", l.Name, out)
			}
		}
	}
}
