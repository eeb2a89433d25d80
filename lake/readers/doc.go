// Package readers reads Delta tables in tests with programs that this project did not write: delta-rs (the Python package
// deltalake) and DuckDB with its packaged delta extension (delta-kernel-rs inside). They live in a Python virtual environment
// that is made once, from pinned versions, in the user's cache directory. Where Python or the package index can't be had, tests
// that need them are skipped, loudly; with TRIBUTARY_REQUIRE_READERS=1 in the environment they fail instead.
//
// A test opens a Readers, which is one helper process, and asks it about tables by their folders:
//
//	r := readers.Open(t)
//	d := r.DeltaRS(t, folder, readers.Txns("app/0"), readers.Query(`select * from t order by id`))
//	n := r.DuckDB(t, folder, `select count(*) as n from t`).Rows[0].Int(t, "n")
//
// The package knows tables only by their folders; it must not use this project's own readers or writers.
package readers
