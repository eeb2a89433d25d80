// Package iceberg makes the sinks that end a stream in an Apache Iceberg table, through a catalog: SQLite (package
// lake/iceberg/sqlite), REST, or AWS Glue (package lake/iceberg/glue).
//
// How a batch passes through:
//
//	ToLake(iceberg.Table(name, catalog, …))  Bind: Go types or an Avro schema become columns (package lake/rows)
//	writer (Open)                            the table is opened or made; new columns, comments and tags are published
//	batch.Append                             one row into Arrow columns; a bad row leaves no trace
//	writer.Commit                            rows are divided by the table's partition transforms (group.go), become Parquet files
//	                                         with the table's field ids (files.go), and land as one snapshot; the offsets that they
//	                                         come from are set as table properties in the same commit (commit.go)
//
// Truncate (truncate.go) empties the table and takes its progress back to none, for a reset.
//
// The table is the authority on progress, as with every sink (lake/sink): a commit lands only on the snapshot it was built on, and
// is built only on one whose properties show what the batch started from. So every lost race is compared anew. iceberg-go builds
// manifests, snapshots and catalog requests; it is kept from retrying by itself, since its retry compares the branch but not the
// offsets.
//
// What stands in the table is told in docs/format/iceberg-properties.md, what users must know in docs/semantics/lake.md. The package
// knows no Kafka client. Importing it links iceberg-go, which is heavy: nothing of the engine or the DSL does.
package iceberg
