// Package lake makes the sinks that end a stream in a table: Delta tables on a local disk or an object store.
//
// How a batch passes through:
//
//	ToLake(lake.Delta(place, …))   Bind: Go types or an Avro schema become columns, and what doesn't fit is refused
//	Writer (Open)                  the table is opened or made; comments, tags and new columns are published
//	Batch.Append                   one row into Arrow columns (columns/gorows, columns/avrorows); a bad row leaves no trace
//	Writer.Commit                  rows become Parquet files (parquetfile), are written to the store (object), and land together
//	                               with the offsets that they come from in one entry of the table's log (delta)
//	maintenance                    checkpoints, checksums and log clean-up, beside the commits
//
// A sink of current state (CurrentState; the files state*.go) keeps one row for each key instead of appending:
//
//	state.go           what is declared: key, order, deletions; what each record of a batch means
//	stateindex.go      which row each key has in one version of the table (package keyed holds the entries); statescan.go reads it from files
//	stateplan.go       what a batch does to that version: rows that come, rows that go, deletions to be remembered (statedeletions.go)
//	staterewrite.go    the plan as files: without the rows that go, or with deletion vectors
//	statecommit.go     lands them right behind that version; a loser of a race brings its index up and plans anew
//
// The table is the authority on progress: Writer.Progress reads from it where to go on, and a commit lands only if the table
// still says what the batch started from.
//
// Optimize compacts small files (optimizeplan.go chooses, optimizerewrite.go writes, optimizecommit.go commits, and optimizerebase.go brings over which rows were
// deleted meanwhile), Vacuum deletes what no version needs; AutoOptimize and AutoVacuum (chores.go) let one of a sink's instances do so under a claim in
// the table's log (claim.go). Files are read by datafile.
//
// Show and ReadRows serve tools and tests. The package knows no Kafka client and no registry client: schemas come through
// SchemaSource. What users must know stands in docs/semantics/lake.md.
package lake
