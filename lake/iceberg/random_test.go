package iceberg_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/internal/rowgen"
	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/icebergreaders"
)

// TestRandomTables lands random rows in tables of random columns, which grow and are partitioned. PyIceberg and DuckDB find each value as it was, DuckDB also where bounds and
// partitions let it skip. TRIBUTARY_RANDOM_TABLES has the first seed, and how many.
func TestRandomTables(t *testing.T) {
	r := icebergreaders.Open(t)
	first, n := uint64(1), uint64(3)
	if text := os.Getenv("TRIBUTARY_RANDOM_TABLES"); text != "" {
		if _, err := fmt.Sscan(text, &first, &n); err != nil {
			t.Fatal(err)
		}
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { landRandom(t, r, seed) })
	}
}

func landRandom(t *testing.T, r *icebergreaders.Readers, seed uint64) {
	p, rnd, table := newPlace(t), rand.New(rand.NewPCG(seed, 12)), rowgen.New(seed)
	var opts []iceberg.Option
	if column := table.Partition(wholeDecimal); column != "" && rnd.IntN(2) == 0 {
		opts = append(opts, iceberg.PartitionBy(iceberg.Identity(column)))
	} else if rnd.IntN(2) == 0 {
		opts = append(opts, iceberg.PartitionBy(iceberg.Bucket(3, "n")))
	}
	for schemas := range 3 {
		if schemas > 0 {
			table.Grow()
		}
		w, err := tryOpen[[]byte, []byte](iceberg.Table("db.t", p.catalog(), append(opts, iceberg.AvroValue(table.Schema(), nil))...))
		if err != nil {
			t.Fatalf("%s: %v", table.Schema(), err)
		}
		landRows(t, w, int64(table.Len()), table.Rows(t, 1+rnd.IntN(40))...)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tbl := r.Table(t, p.readers(), "db.t")
	duck, py := tbl.DuckDB("select * from t order by n"), inOrder(t, tbl.Rows(""))
	for i, row := range py {
		for column, v := range row {
			// PyIceberg builds maps of structs anew, and makes empty ones of nulls.
			if pairs, ok := v.([]any); ok && len(pairs) == 0 && i < len(duck) && duck[i][column] == nil {
				row[column] = nil
			}
		}
	}
	for who, rows := range map[string][]icebergreaders.Row{"DuckDB": duck, "PyIceberg": py} {
		if d := table.Diff(rows); d != "" {
			t.Errorf("%s: %s", who, d)
		}
	}
	probes := table.Probes(duckLiteral)
	for i, row := range tbl.DuckDB(rowgen.Query(probes)) {
		if got := icebergreaders.Int(t, row, "n"); got != int64(probes[i].Rows) {
			t.Errorf("DuckDB finds %d rows with %s, want %d", got, probes[i].Where, probes[i].Rows)
		}
	}
	if t.Failed() {
		t.Logf("schema %s", table.Schema())
	}
}

// wholeDecimal: see Transform.suits.
func wholeDecimal(sqlType string) bool { return strings.HasSuffix(sqlType, ",0)") }

// inOrder sorts rows by n.
func inOrder(t *testing.T, rows []icebergreaders.Row) []icebergreaders.Row {
	t.Helper()
	out := make([]icebergreaders.Row, len(rows))
	for _, row := range rows {
		n := icebergreaders.Int(t, row, "n")
		if n < 0 || n >= int64(len(rows)) || out[n] != nil {
			t.Fatalf("row %d is there twice, or of %d rows", n, len(rows))
		}
		out[n] = row
	}
	return out
}

func duckLiteral(kind, text string) string {
	text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	switch kind {
	case "string":
		return text
	case "timestamp":
		return "timestamptz " + strings.TrimSuffix(text, "'") + "+00'"
	case "local":
		return "timestamp " + text
	case "int", "long":
		return "cast(" + text + " as bigint)"
	}
	return "cast(" + text + " as " + kind + ")"
}
