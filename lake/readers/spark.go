package readers

import "testing"

// Spark is a running helper process with one Spark session and Delta's own implementation. It takes ten seconds to start and 600 MB: a
// test binary should open one, for all of its checks. It ends with the test that opened it.
type Spark struct{ process }

// OpenSpark starts Spark, or skips the test where it can't be had: it needs a JDK 17, Maven and 450 MB of downloads, once.
func OpenSpark(t testing.TB) *Spark {
	t.Helper()
	const who = "Spark with delta-spark"
	h, err := sparkEnvironment()
	if err != nil {
		unavailable(t, who, err)
	}
	p, err := start(t, h.python, sparkProgram, h.jars, t.TempDir())
	if err != nil {
		unavailable(t, who, err)
	}
	return &Spark{p}
}

// Query runs a query, in Spark's SQL, in which the table is named t, and fails the test if that fails.
func (s *Spark) Query(t testing.TB, table, sql string) []Row {
	t.Helper()
	return s.Read(t, table, Query(sql)).Rows
}

// Read reads what a table says of itself, or only the rows of a query, if there is one, and fails the test if that fails.
func (s *Spark) Read(t testing.TB, table string, opts ...Option) *Table {
	t.Helper()
	d, err := s.table("spark", table, opts)
	if err != nil {
		t.Fatalf("Spark can't read %s: %v", table, err)
	}
	return d
}

// Python runs the text of a Python program in the helper process, with the session in the variable spark and the table's path in the
// variable table, and decodes its variable out into out (nil to drop it): for tests in which Spark writes.
func (s *Spark) Python(t testing.TB, table, text string, out any) {
	t.Helper()
	s.python(t, table, text, out)
}
