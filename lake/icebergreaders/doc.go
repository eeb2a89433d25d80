// Package icebergreaders reads Iceberg tables in tests with programs that this project did not write, PyIceberg and DuckDB, and
// serves a REST catalog for tests whose requests another implementation (PyIceberg) checks and applies. Both live in a Python
// environment (internal/pyenv) that is made once, from pinned versions. Where it can't be had, tests that need it are skipped,
// loudly; with TRIBUTARY_REQUIRE_READERS=1 in the environment they fail instead.
//
//	r := icebergreaders.Open(t)
//	tbl := r.Table(t, icebergreaders.SQLite(db, warehouse), "db.events")
//	n := tbl.DuckDB(`select count(*) from t`)
//
// The package must not use this project's own writers or iceberg-go.
package icebergreaders
