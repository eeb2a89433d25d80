package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

func savePlan(t *testing.T, filtered bool) string {
	t.Helper()
	b := topology.NewBuilder("app")
	s := b.Stream("in", serde.String, serde.String)
	if filtered {
		s = s.Filter(func(string, string) bool { return true })
	}
	s.GroupByKey().Count()
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := plansafety.Snapshot(p).Write(f); err != nil {
		t.Fatal(err)
	}
	return path
}

// output runs a command and gives what it prints with its error.
func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestDiffExitCodes(t *testing.T) {
	before, after := savePlan(t, false), savePlan(t, true)
	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"diff", before, before}, 0},
		{[]string{"diff", before, after}, 1},
		{[]string{"diff", "--json", before, after}, 1},
		{[]string{"diff", "orders", "orders"}, 0},
		{[]string{"diff", before, "no-such-file"}, 2},
		{[]string{"diff", before}, 2},
		{[]string{"diff", "--colour", before, after}, 2},
		{[]string{"explain", "no-such-file"}, 1},
	} {
		if code := run(tt.args); code != tt.code {
			t.Errorf("%v: exit code %d, want %d", tt.args, code, tt.code)
		}
	}
	text, _ := output(t, "diff", before, after)
	if !strings.Contains(text, "renamed") || !strings.Contains(text, "topology.Store(") {
		t.Errorf("diff says:\n%s", text)
	}
}

// What explain --json prints is what diff reads.
func TestExplain(t *testing.T) {
	for _, name := range applicationNames() {
		text, err := output(t, "explain", "--json", name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "plan.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if text, err = output(t, "diff", path, name); err != nil || !strings.Contains(text, "Nothing differs") {
			t.Errorf("%s differs from itself: %v\n%s", name, err, text)
		}
		if text, err = output(t, "explain", path); err != nil || !strings.Contains(text, "lake sink") {
			t.Errorf("explain: %v\n%s", err, text)
		}
	}
}
