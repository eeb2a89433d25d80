package lake

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/internal/rowgen"
	"github.com/tributary-io/tributary/lake/readers"
)

// randomVariable is the variable with the seeds that TestRandomTables takes: the first one, and after a blank how many.
const randomVariable = "TRIBUTARY_RANDOM_TABLES"

// randomSeeds are those of the variable, or a few.
func randomSeeds(t *testing.T, few int) (first, n uint64) {
	first, n = 1, uint64(few)
	if text := os.Getenv(randomVariable); text != "" {
		if _, err := fmt.Sscan(text, &first, &n); err != nil {
			t.Fatalf("%s=%q: %v", randomVariable, text, err)
		}
	}
	return first, n
}

// TestRandomTables lands random rows in tables of random columns, which grow, are partitioned, checkpointed and compacted. DuckDB and delta-rs find each value as it was, also
// where statistics and partition values let them skip.
func TestRandomTables(t *testing.T) {
	r := readers.Open(t)
	first, n := randomSeeds(t, 3)
	for seed := first; seed < first+n; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { landRandom(t, r, seed) })
	}
}

func landRandom(t *testing.T, r *readers.Readers, seed uint64) {
	dir, store := localStore(t)
	rnd, table := rand.New(rand.NewPCG(seed, 12)), rowgen.New(seed)
	opts := []Option{Properties(map[string]string{"delta.checkpointInterval": "3"}), func(o *options) { o.inlineUpkeep = true }}
	if rnd.IntN(3) == 0 {
		opts = append(opts, Properties(map[string]string{"delta.checkpointPolicy": "v2"}))
	}
	if rnd.IntN(3) == 0 {
		opts = append(opts, Properties(map[string]string{"delta.enableInCommitTimestamps": "true"}))
	}
	if column := ""; rnd.IntN(2) == 0 {
		if column = table.Partition(nil); column != "" {
			opts = append(opts, PartitionBy(column))
		}
	}
	for schemas := range 3 {
		if schemas > 0 {
			table.Grow()
		}
		w, err := tryOpen[[]byte, []byte](Delta(dir, append(opts, AvroValue(table.Schema(), nil))...), testEnv())
		if err != nil {
			t.Fatalf("%s: %v", table.Schema(), err)
		}
		for range 1 + rnd.IntN(3) {
			land(t, w, int64(table.Len()), table.Rows(t, 1+rnd.IntN(40))...)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		checkRandom(t, r, dir, table)
	}
	res := optimize(t, store, OptimizeOptions{})
	if len(res.Left) > 0 {
		t.Errorf("left by the compaction: %+v", res.Left)
	}
	checkRandom(t, r, dir, table)
	if t.Failed() {
		t.Logf("schema %s", table.Schema())
	}
}

func checkRandom(t *testing.T, r *readers.Readers, dir string, table *rowgen.Table) {
	t.Helper()
	literals := map[string]func(kind, text string) string{"DuckDB": duckLiteral, "delta-rs": fusionLiteral}
	for who, ask := range map[string]func(sql string) []readers.Row{
		"DuckDB":   func(sql string) []readers.Row { return r.DuckDB(t, dir, sql).Rows },
		"delta-rs": func(sql string) []readers.Row { return r.DeltaRS(t, dir, readers.Query(sql)).Rows },
	} {
		var rows []map[string]any
		for _, row := range ask("select * from t order by n") {
			rows = append(rows, row)
		}
		if d := table.Diff(rows); d != "" {
			t.Errorf("%s: %s", who, d)
		}
		probes := table.Probes(literals[who])
		for i, row := range ask(rowgen.Query(probes)) {
			if got := row.Int(t, "n"); got != int64(probes[i].Rows) {
				t.Errorf("%s finds %d rows with %s, want %d", who, got, probes[i].Where, probes[i].Rows)
			}
		}
	}
}

func duckLiteral(kind, text string) string {
	text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	switch {
	case kind == "string":
		return text
	case kind == "timestamp":
		return "timestamptz " + strings.TrimSuffix(text, "'") + "+00'"
	case kind == "local":
		return "timestamp " + text
	case kind == "int" || kind == "long":
		return "cast(" + text + " as bigint)"
	}
	return "cast(" + text + " as " + kind + ")"
}

// fusionLiteral leaves out times that delta-rs's engine can't write as nanoseconds.
func fusionLiteral(kind, text string) string {
	if kind == "timestamp" || kind == "local" {
		if text < "1700" || text > "2200" {
			return ""
		}
		if kind == "timestamp" {
			return "timestamp '" + text + "Z'"
		}
	}
	return duckLiteral(kind, text)
}
