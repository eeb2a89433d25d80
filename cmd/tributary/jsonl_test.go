package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// said runs a command and returns what it prints.
func said(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetArgs(args)
	root.SetOut(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestJSONLCommands(t *testing.T) {
	place := t.TempDir()
	if err := os.CopyFS(place, os.DirFS("../../lake/jsonl/testdata/v1")); err != nil {
		t.Fatal(err)
	}
	out, err := said(t, "jsonl", "files", place, "--from", "2026-06-02")
	if err != nil || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, place+"/event_date=2026-06-02/orders-0-") {
		t.Errorf("files: %q, %v", out, err)
	}
	if out, err = said(t, "jsonl", "gap", place, "--topic", "orders", "--partition", "0", "--next", "30", "--reason", "the disk burned"); err != nil || !strings.Contains(out, "20 to 29") {
		t.Errorf("gap: %q, %v", out, err)
	}
	if _, err = said(t, "jsonl", "gap", place, "--topic", "orders", "--partition", "7", "--next", "30", "--reason", "x"); err == nil {
		t.Error("a gap in a partition that is not there")
	}
	if out, err = said(t, "jsonl", "show", place); err != nil || !strings.Contains(out, "20-29 (the disk burned)") {
		t.Errorf("show: %q, %v", out, err)
	}
	orphan := filepath.Join(place, "event_date=2026-06-01", "orphan.jsonl")
	if err := os.WriteFile(orphan, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(orphan, old, old); err != nil {
		t.Fatal(err)
	}
	if out, err = said(t, "jsonl", "vacuum", place); err != nil || out != "event_date=2026-06-01/orphan.jsonl\n" {
		t.Errorf("vacuum: %q, %v", out, err)
	}
	if _, err = said(t, "jsonl", "vacuum", place, "--older-than", "1m"); err == nil {
		t.Error("a vacuum of young files")
	}
	if _, err = said(t, "jsonl", "show", filepath.Join(place, "nowhere")); err == nil {
		t.Error("showed what isn't there")
	}
}
