package jsonl

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
)

var (
	textType  = reflect.TypeFor[string]()
	bytesType = reflect.TypeFor[[]byte]()
)

// duckCount is what DuckDB counts in the files that manifests name.
type duckCount struct{ Rows, Offsets, Largest int64 }

func countByDuckDB(t *testing.T, r *readers.Readers, dir string, what Select) (out duckCount) {
	t.Helper()
	l, err := Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for f, err := range l.Files(ctx, what) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Join(dir, f.Name))
	}
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	r.Python(t, dir, fmt.Sprintf(`
import json
files = json.loads(%q)
row = duckdb.connect().execute("select count(*), count(distinct _kafka_offset), max(_kafka_offset) from read_json(?, format='newline_delimited')", [files]).fetchone()
out = {"Rows": row[0], "Offsets": row[1], "Largest": row[2]}
`, list), &out)
	return out
}

// DuckDB sees types and values as they were written, in plain and in compressed files.
func TestDuckDBReadsRows(t *testing.T) {
	r := readers.Open(t)
	for _, compression := range []string{"", "gzip", "zstd"} {
		dir := t.TempDir()
		store, err := object.NewLocal(dir)
		if err != nil {
			t.Fatal(err)
		}
		var opts []Option
		if compression != "" {
			opts = append(opts, Compression(compression))
		}
		land(t, openText(t, store, opts...), 0, `{"learner":"é","pct":40,"tags":["a","b"]}`, `{"learner":"b","pct":100,"tags":[]}`)
		var out []string
		r.Python(t, dir, `
c = duckdb.connect()
c.execute("SET TimeZone='UTC'")
out = [str(x) for x in c.execute("""
  select _kafka_offset, _kafka_timestamp::timestamp::varchar, key, value.learner, value.pct, len(value.tags), event_date::varchar
  from read_json(?, format='newline_delimited', hive_partitioning=true) order by _kafka_offset""", [table + "/event_date=*/*"]).fetchall()]
`, &out)
		want := []string{
			"(0, '2026-06-01 12:00:00.123', 'k0', 'é', 40, 2, '2026-06-01')",
			"(1, '2026-06-01 12:00:00.124', 'k1', 'b', 100, 0, '2026-06-01')",
		}
		if fmt.Sprint(out) != fmt.Sprint(want) {
			t.Errorf("%q: got\n%s\nwant\n%s", compression, out, want)
		}
	}
}
