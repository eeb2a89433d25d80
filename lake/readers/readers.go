package readers

import "testing"

// Readers is a running helper process with delta-rs and DuckDB loaded. It ends with the test that opened it. Its methods may be called
// concurrently; requests are answered one after the other.
type Readers struct{ process }

// Open starts the readers, or skips the test where they can't be had. The first call on a machine downloads them.
func Open(t testing.TB) *Readers {
	t.Helper()
	const who = "the independent Delta readers delta-rs and DuckDB"
	python, err := environment()
	if err != nil {
		unavailable(t, who, err)
	}
	p, err := start(t, python, clientsProgram)
	if err != nil {
		unavailable(t, who, err)
	}
	return &Readers{p}
}

// DeltaRS reads a table with delta-rs and fails the test if that fails.
func (r *Readers) DeltaRS(t testing.TB, table string, opts ...Option) *Table {
	t.Helper()
	d, err := r.TryDeltaRS(table, opts...)
	if err != nil {
		t.Fatalf("delta-rs can't read %s: %v", table, err)
	}
	return d
}

// TryDeltaRS is DeltaRS for tests in which the table may be unreadable.
func (r *Readers) TryDeltaRS(table string, opts ...Option) (*Table, error) {
	return r.table("deltaRS", table, opts)
}

// DuckDB runs a query in which the table is named t, and fails the test if that fails.
func (r *Readers) DuckDB(t testing.TB, table, sql string) *Result {
	t.Helper()
	res := &Result{}
	if err := r.into(request{Op: "duckDB", Table: table, SQL: sql}, res); err != nil {
		t.Fatalf("DuckDB can't read %s: %v", table, err)
	}
	return res
}

// Python runs the text of a Python program in the helper process, with the modules deltalake, duckdb and pa (pyarrow) imported and
// the table's path in the variable table, and decodes its variable out into out (nil to drop it): for tests in which others
// write.
func (r *Readers) Python(t testing.TB, table, text string, out any) {
	t.Helper()
	r.python(t, table, text, out)
}
