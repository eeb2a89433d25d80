package readers

import (
	"path/filepath"
	"testing"

	"github.com/tributary-io/tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// TestReaders lets delta-rs write a table, so that this package is tested without the project's own writer.
func TestReaders(t *testing.T) {
	r := Open(t)
	table := filepath.Join(t.TempDir(), "a table")
	var version int64
	r.Python(t, table, `
import datetime, decimal
data = pa.table({
    "id": pa.array([1, 2], pa.int64()),
    "price": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(10, 2)),
    "at": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, datetime.timezone.utc)] * 2, pa.timestamp("us", "UTC")),
    "raw": pa.array([b"\x00\xff", b""], pa.binary()),
    "f": pa.array([float("nan"), 0.5], pa.float64()),
})
deltalake.write_deltalake(table, data, name="n", description="d",
    commit_properties=deltalake.CommitProperties(app_transactions=[deltalake.Transaction("app", 7)]))
print("noise on standard output must not disturb")
out = deltalake.DeltaTable(table).version()
`, &version)
	d := r.DeltaRS(t, table, Txns("app", "none"), Query("select * from t order by id"))
	if d.Version != version || d.Count != 2 || d.Files != 1 || d.Name != "n" || d.Description != "d" || d.MinWriter < 2 {
		t.Errorf("delta-rs: %+v", d)
	}
	if len(d.Txn) != 1 || d.Txn["app"] != 7 || len(d.History) != 1 || d.Comment("id") != "" {
		t.Errorf("txn %v, history %v", d.Txn, d.History)
	}
	duck := r.DuckDB(t, table, "select * from t order by id")
	if len(duck.Columns) != 5 || duck.Columns[1] != (Column{"price", "DECIMAL(10,2)"}) {
		t.Errorf("DuckDB's columns: %v", duck.Columns)
	}
	for reader, rows := range map[string][]Row{"delta-rs": d.Rows, "DuckDB": duck.Rows} {
		if len(rows) != 2 {
			t.Fatalf("%s: %v", reader, rows)
		}
		for column, want := range map[string]string{"id": "1", "price": "1.50", "at": "2024-01-02T03:04:05.678901Z", "raw": "00ff", "f": "NaN"} {
			if got := rows[0].Text(column); got != want {
				t.Errorf("%s: %s is %q, want %q", reader, column, got, want)
			}
		}
		if rows[0].Int(t, "id") != 1 || rows[1]["price"] != nil || rows[1].Text("price") != "" {
			t.Errorf("%s: %v", reader, rows)
		}
	}
	if _, err := r.TryDeltaRS(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("delta-rs read a table that isn't there")
	}
	if r.DeltaRS(t, table, Version(0)).Version != 0 {
		t.Error("the version asked for was not read")
	}
}
