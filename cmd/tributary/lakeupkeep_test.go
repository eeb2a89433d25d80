package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// TestLakeUpkeep compacts and vacuums a table by hand, as an operator does.
func TestLakeUpkeep(t *testing.T) {
	dir := t.TempDir()
	s := lake.Delta(dir, lake.PartitionBy("day"))
	type row struct {
		ID  int64  `lake:"id"`
		Day string `lake:"day"`
	}
	if err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[row]()); err != nil {
		t.Fatal(err)
	}
	w, err := s.Open(t.Context(), sink.Env{ApplicationID: "a", Name: "s", Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	from := sink.NoOffset
	for i := range int64(6) {
		b := w.NewBatch()
		for d := range 2 {
			if err := b.Append(nil, &row{i, fmt.Sprintf("2026-01-0%d", d+1)}, &sink.Meta{Topic: "t"}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Commit(t.Context(), b, []sink.Move{{Partition: sink.Partition{Topic: "t"}, From: from, To: i + 1}}); err != nil {
			t.Fatal(err)
		}
		from = i + 1
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(dir, "part-orphan.zstd.parquet")
	if err := os.WriteFile(orphan, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(orphan, time.Time{}, time.Now().Add(-30*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want string
	}{
		{"optimize --dry-run --where day=2026-01-01", "6 files of"},
		{"optimize --where day>2026-01-01 --sort-by id --target 64mb", "6 files of"},
		{"optimize", "version 8: 6 files of"},
		{"optimize --json", `"Commits":0`},
		{"vacuum --list", "would delete 0 removed files, 1 orphan"},
		{"vacuum --delete", "deleted 0 removed files, 1 orphan"},
		{"vacuum --delete --retention 1h", "!shorter than the 168h"},
		{"vacuum --delete --retention 1ns --force --json", `"Removed":12`},
	} {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		words := append([]string{"lake"}, strings.Fields(c.args)...)
		root.SetArgs(append(words, dir))
		err := root.ExecuteContext(t.Context())
		want, fails := strings.CutPrefix(c.want, "!")
		if fails != (err != nil) || fails && !strings.Contains(err.Error(), want) || !fails && !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s\nwant %q", c.args, err, out.String(), c.want)
		}
	}
	rows := 0
	for _, err := range lake.ReadRows(t.Context(), dir) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
	}
	if rows != 12 {
		t.Errorf("%d rows", rows)
	}
}
