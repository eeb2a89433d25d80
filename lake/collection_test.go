package lake

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
)

// unreadRows are the tables of the collection whose rows ReadRows refuses to read, with what it names, by a part of their path.
var unreadRows = map[string]string{
	"variant": "variant", "state-reconstruction": "", "log-replay-special-characters-b": "", "delete-re-add-same-file": "",
	// Their vectors' files have the prefix of Spark's own tests, which no table outside has.
	"delta-spark/table-with-dv-small": "not found", "delta-spark/table-with-dv-large": "not found",
	"delta-spark/partitioned-table-with-dv-large": "not found", "delta-spark/table-with-dv-special-char": "storage type",
}

// TestRowsOfOthers reads the rows of tables that Spark and the kernels have written, with column mapping by name and by id, widened types,
// V2 checkpoints and all: as many as three other readers find. See delta.TestTablesOfOthers for the collection.
func TestRowsOfOthers(t *testing.T) {
	root, index := unpackCollection(t)
	var tables []struct {
		Path       string `json:"path"`
		RowsAgreed *int64 `json:"rows_agreed"`
	}
	if err := json.Unmarshal(index, &tables); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, f := range tables {
		dir := filepath.Join(root, f.Path)
		if _, err := os.Stat(dir); err != nil {
			continue // listed, but too large to be handed over
		}
		ran++
		n, err := countRows(t, dir)
		why, refused := "", false
		for part, names := range unreadRows {
			if strings.Contains(f.Path, part) {
				why, refused = names, true
			}
		}
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), why)):
			t.Errorf("%s: %d rows, %v; want a refusal that names %q", f.Path, n, err, why)
		case !refused && err != nil:
			t.Errorf("%s: %v", f.Path, err)
		case !refused && f.RowsAgreed != nil && n != *f.RowsAgreed:
			t.Errorf("%s: %d rows, others find %d", f.Path, n, *f.RowsAgreed)
		}
	}
	if ran < 80 {
		t.Errorf("only %d tables were found", ran)
	}
}

func countRows(t *testing.T, dir string) (n int64, err error) {
	store, err := object.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range readStore(ctx, store, dir) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// unpackCollection unpacks the tables of others, or skips the test where they aren't here.
func unpackCollection(t *testing.T) (root string, index []byte) {
	t.Helper()
	folder := os.Getenv("TRIBUTARY_DELTA_TABLES")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "delta-tables") // beside the repository, where it is handed over so
	}
	index, err := os.ReadFile(filepath.Join(folder, "INDEX.json"))
	if err != nil {
		t.Skipf("SKIPPED: the collection of Delta tables made by other engines is not here (%v); set TRIBUTARY_DELTA_TABLES", err)
	}
	root = t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(folder, "tables.tar.gz"), "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v: %s", err, out)
	}
	return root, index
}
