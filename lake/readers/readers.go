// Package readers reads Delta tables in tests with programs that this project did not write: delta-rs (the Python package
// deltalake) and DuckDB with its packaged delta extension. They live in a Python virtual environment that is made once, by
// pinned versions, in the user's cache directory. Where Python or the package index can't be had, tests that need them are
// skipped, loudly.
//
// The package knows tables only by their folders; it must not use this project's own readers or writers.
package readers

import (
	"encoding/json"
	"testing"
)

// Readers is a running helper process with both readers loaded. Use one for each test; it ends with the test.
type Readers struct{}

// DeltaTable is what delta-rs says about a table.
type DeltaTable struct {
	Version          int64
	Name             string
	Description      string
	Schema           json.RawMessage // the Delta schema, as in the log
	PartitionColumns []string
	Configuration    map[string]string
	MinReader        int
	MinWriter        int
	Features         []string
	Files            int
	Count            int64            // rows
	Txn              map[string]int64 // for the application ids asked for with Txns; those without progress are absent
	Rows             []Row            // if asked for with Rows or Query
	History          []map[string]any // newest first
}

// Row is a row by column name. Integers are json.Number, decimals and other exact values strings ("12.30"), timestamps
// "2024-01-02T03:04:05.678901Z" (without Z where the type has no zone), dates "2024-01-02", binaries hex.
type Row map[string]any

// Comment returns the comment of a top-level column.
func (d *DeltaTable) Comment(column string) string { panic("not built yet") }

// Field returns the metadata value of a key of a top-level column, nil if it has none.
func (d *DeltaTable) Field(column, key string) any { panic("not built yet") }

// Option asks delta-rs for more.
type Option func(*request)

type request struct{}

// Txns asks for the progress of application ids.
func Txns(appIDs ...string) Option { panic("not built yet") }

// Query asks for the rows of an SQL query (DataFusion) in which the table is named t.
func Query(sql string) Option { panic("not built yet") }

// Version asks for an older version.
func Version(v int64) Option { panic("not built yet") }

// Open starts the readers, or skips the test where they can't be had.
func Open(t testing.TB) *Readers { panic("not built yet") }

// DeltaRS reads a table with delta-rs and fails the test if that fails.
func (r *Readers) DeltaRS(t testing.TB, table string, opts ...Option) *DeltaTable {
	panic("not built yet")
}

// DuckDB runs a query in which the table is named t, and fails the test if that fails. Columns come in the query's order.
func (r *Readers) DuckDB(t testing.TB, table, sql string) *Result { panic("not built yet") }

// Result is what DuckDB answers.
type Result struct {
	Columns []Column
	Rows    []Row
}

// Column is a result column with DuckDB's type name.
type Column struct{ Name, Type string }

// Python runs a Python program text in the readers' environment (deltalake imported, the table's path as `table`) and returns
// the JSON of its variable `out`: for tests in which delta-rs writes.
func (r *Readers) Python(t testing.TB, table, program string) json.RawMessage { panic("not built yet") }
