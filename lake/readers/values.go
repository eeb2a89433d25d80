package readers

import (
	"encoding/json"
	"fmt"
	"testing"
)

// Table is what delta-rs or Spark says about a table.
type Table struct {
	Version          int64
	Name             string
	Description      string
	Schema           json.RawMessage // the Delta schema, as in the log
	PartitionColumns []string
	Configuration    map[string]string
	MinReader        int
	MinWriter        int
	Features         []string // of readers and writers, sorted
	Files            int
	Count            int64            // rows
	Txn              map[string]int64 // for the application ids asked for with Txns; those without progress are absent
	Rows             []Row            // if asked for with Query
	History          []map[string]any // newest first, as far as the log reaches
}

// Row is a row by column name. Integers and floats are json.Number; decimals are texts with all their digits ("12.30"); times
// are texts such as "2024-01-02T03:04:05.678901Z" (without Z where the type has no zone), dates "2024-01-02"; binaries are hex;
// NaN and infinities are the texts "NaN", "Infinity", "-Infinity"; structs are map[string]any and lists []any. Maps are lists of
// key and value pairs.
type Row map[string]any

// Int returns an integer column and fails the test if it isn't one.
func (r Row) Int(t testing.TB, column string) int64 {
	t.Helper()
	number, ok := r[column].(json.Number)
	if !ok {
		t.Fatalf("column %s is %T %v, not a number", column, r[column], r[column])
	}
	n, err := number.Int64()
	if err != nil {
		t.Fatalf("column %s: %v", column, err)
	}
	return n
}

// Text returns a column as text: numbers as they are written, null as "".
func (r Row) Text(column string) string {
	if r[column] == nil {
		return ""
	}
	return fmt.Sprint(r[column])
}

// Result is what DuckDB answers.
type Result struct {
	Columns []Column // in the query's order
	Rows    []Row
}

// Column is a result column with DuckDB's type name.
type Column struct{ Name, Type string }

// Field returns the value of a key in a top-level column's metadata, nil if it has none.
func (d *Table) Field(column, key string) any {
	var schema struct {
		Fields []struct {
			Name     string
			Metadata map[string]any
		}
	}
	if json.Unmarshal(d.Schema, &schema) != nil {
		return nil
	}
	for _, f := range schema.Fields {
		if f.Name == column {
			return f.Metadata[key]
		}
	}
	return nil
}

// Comment returns the comment of a top-level column, "" if it has none.
func (d *Table) Comment(column string) string {
	s, _ := d.Field(column, "comment").(string)
	return s
}
