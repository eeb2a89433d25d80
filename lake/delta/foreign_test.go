package delta

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
)

// foreignTable is what the index of the shared collection says about a table made by other engines.
type foreignTable struct {
	Path        string `json:"path"`
	Active      *int64 `json:"active_files_by_commits"`
	RowsByStats *int64 `json:"rows_by_stats"`
	RowsAgreed  *int64 `json:"rows_agreed"`
	Commits     int    `json:"commits"`
	FirstCommit int64  `json:"first_commit"`
	LastCommit  int64  `json:"last_commit"`
	DVs         int    `json:"deletion_vector_actions"`
	SparkResult struct {
		Files *int64 `json:"files"`
		Error string `json:"error"`
	} `json:"spark_4_1_delta_4_1"`
}

// refusedForWriting are the tables of the collection that this package must not append to, with what its refusal names, by a
// part of their path. All others it may.
var refusedForWriting = map[string]string{
	"variant": "variant", "generated_columns": "generated column", "materialize": "materializePartitionColumns",
}

// checkForeignWrite compares what CheckWrite says with refusedForWriting.
func checkForeignWrite(t *testing.T, path string, h *Head) {
	t.Helper()
	err := h.CheckWrite()
	want := ""
	for part, name := range refusedForWriting {
		if strings.Contains(path, part) && !strings.Contains(path, "non_generated") {
			want = name
		}
	}
	if want == "" && err != nil || want != "" && err == nil {
		t.Errorf("writing: %v, want %q", err, want)
	}
	if err != nil && want != "" && !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) && !strings.Contains(err.Error(), "columnMapping") {
		t.Errorf("writing: %v, want it to name %q", err, want)
	}
}

// TestTablesOfOthers replays the logs of tables made by Spark, the Java and Rust kernels: file and row counts must be those of
// their makers, and tables that aren't whole must be refused. It needs the collection, which isn't part of the repository:
// set TRIBUTARY_DELTA_TABLES to the folder that holds INDEX.json and tables.tar.gz.
func TestTablesOfOthers(t *testing.T) {
	folder := os.Getenv("TRIBUTARY_DELTA_TABLES")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "delta-tables") // beside the repository, where it is handed over so
	}
	index, err := os.ReadFile(filepath.Join(folder, "INDEX.json"))
	if err != nil {
		t.Skipf("SKIPPED: the collection of Delta tables made by other engines is not here (%v); set TRIBUTARY_DELTA_TABLES", err)
	}
	root := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(folder, "tables.tar.gz"), "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v: %s", err, out)
	}
	var tables []foreignTable
	if err := json.Unmarshal(index, &tables); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, f := range tables {
		if _, err := os.Stat(filepath.Join(root, f.Path)); err != nil {
			continue // listed, but too large to be handed over
		}
		ran++
		t.Run(f.Path, func(t *testing.T) { replayForeign(t, filepath.Join(root, f.Path), f) })
	}
	if ran < 100 {
		t.Errorf("only %d tables were found", ran)
	}
}

func replayForeign(t *testing.T, dir string, f foreignTable) {
	store, err := object.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(t.Context(), store, Options{})
	if strings.Contains(f.Path, "state-reconstruction") {
		if err == nil {
			t.Fatal("a log without protocol or metadata was opened")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	checkForeignWrite(t, f.Path, table.Head())
	s := mustSnapshot(t, table)
	if s.Head.Version != table.Head().Version || !s.Head.Metadata.Equal(table.Head().Metadata) {
		t.Errorf("the cheap way gives version %d, the replay %d, or other metadata", table.Head().Version, s.Head.Version)
	}
	if len(s.Head.Txns) != len(table.Head().Txns) {
		t.Errorf("txns: %v and %v", s.Head.Txns, table.Head().Txns)
	}
	files, rows := counts(t, s)
	want := f.Active
	if strings.Contains(f.Path, "canonicalized-paths") {
		want = f.SparkResult.Files // the index counts by plain text of the path
	}
	if f.FirstCommit == 0 && want != nil && files != *want {
		t.Errorf("%d active files, want %d", files, *want)
	}
	if head := table.Head(); head.NumFiles >= 0 && head.NumFiles != files && want != nil && f.DVs == 0 {
		t.Errorf("the cheap way counts %d files, the replay %d", head.NumFiles, files)
	}
	rows -= deletedRows(t, s)
	if f.RowsByStats != nil && rows != *f.RowsByStats {
		t.Errorf("%d rows by statistics, want %d", rows, *f.RowsByStats)
	}
}

func deletedRows(t *testing.T, s *Snapshot) (n int64) {
	for a, err := range s.Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if a.DeletionVector != nil {
			// The collection has the vectors of some tables only, and those of absolute paths of none.
			_, err := DeletedRows(t.Context(), s.table.store, a.DeletionVector)
			if err != nil && !errors.Is(err, object.ErrNotFound) && a.DeletionVector.StorageType != "p" {
				t.Error(err)
			}
			n += a.DeletionVector.Cardinality
		}
	}
	return n
}
