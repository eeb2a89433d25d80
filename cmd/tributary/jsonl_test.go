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

// TestCommandsSayWhatIsThere asks for a table where there is none.
func TestCommandsSayWhatIsThere(t *testing.T) {
	lake := t.TempDir()
	if err := os.CopyFS(filepath.Join(lake, "raw", "progress"), os.DirFS("../../lake/jsonl/testdata/v1")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"gold/orders/_delta_log/00000000000000000000.json": "{}", "gold/orders/_delta_log/00000000000000000001.json": "{}",
		"silver/plays/metadata/00000-x.metadata.json": "{}", "zz.txt": ""} {
		if err := os.MkdirAll(filepath.Join(lake, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(lake, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	below := "gold/orders (Delta table)\n  " + lake + "/raw/progress (landing in JSON Lines)\n  " + lake + "/silver/plays (Iceberg table)"
	for _, c := range []struct{ command, place, want string }{
		{"lake show", lake, "but below it:\n  " + lake + "/" + below},
		{"lake vacuum", lake + "/silver", "/silver/plays (Iceberg table)"},
		{"lake log", lake + "/raw/progress", "but a landing in JSON Lines: tributary jsonl show " + lake + "/raw/progress"},
		{"lake show", lake + "/silver/plays", "but the files of an Iceberg table"},
		{"jsonl show", lake + "/gold/orders", "but this is a Delta table: tributary lake show " + lake + "/gold/orders"},
		{"jsonl show", lake + "/gold", "nothing has landed here in JSON Lines, but below it"},
		{"lake show", lake + "/nowhere", "no such file or directory"},
	} {
		if _, err := said(t, append(strings.Fields(c.command), c.place)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.command, c.place, err, c.want)
		}
	}
	if _, err := os.Stat(lake + "/nowhere"); err == nil {
		t.Error("to look for a table has made a folder")
	}
}
