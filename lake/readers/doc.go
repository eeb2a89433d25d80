// Package readers reads Delta tables in tests with programs that this project did not write: delta-rs (the Python package
// deltalake), DuckDB with its packaged delta extension (delta-kernel-rs inside), and Spark with Delta's own implementation. They live
// in Python virtual environments that are made once, from pinned versions, in the user's cache directory. Where Python, Java, Maven or a
// package index can't be had, tests that need them are skipped, loudly; with TRIBUTARY_REQUIRE_READERS=1 in the environment they fail
// instead.
//
// A test opens a Readers or a Spark, which is one helper process each, and asks it about tables by their folders:
//
//	r := readers.Open(t)
//	d := r.DeltaRS(t, folder, readers.Txns("app/0"), readers.Query(`select * from t order by id`))
//	n := r.DuckDB(t, folder, `select count(*) as n from t`).Rows[0].Int(t, "n")
//	s := readers.OpenSpark(t).Read(t, folder)
//
// The package knows tables only by their folders; it must not use this project's own readers or writers.
package readers
