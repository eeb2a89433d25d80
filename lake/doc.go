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
// The table is the authority on progress: Writer.Progress reads from it where to go on, and a commit lands only if the table
// still says what the batch started from.
//
// Show and ReadRows serve tools and tests. The package knows no Kafka client and no registry client: schemas come through
// SchemaSource. What users must know stands in docs/semantics/lake.md.
package lake
