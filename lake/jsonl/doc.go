// Package jsonl lands streams as JSON Lines: files by event date, one line a record with its coordinates, beside manifests that say
// which files count and how far the input has landed. docs/format/jsonl.md describes what is stored.
//
// How a batch passes through:
//
//	ToLake(jsonl.Sink(place, …))  Bind: the check's types are compared with the stream's
//	Batch.Append                  one line into the section of its input partition and event date; a bad row leaves no trace, but is counted
//	Writer.Commit                 each section becomes a file (object), all are made durable, and then one manifest for each input
//	                              partition is put if absent under the name of the offset that it starts from
//
// The manifests of a partition form a chain: each starts where the one before has ended. The put that adds a link is the commit, and the
// whole of the fencing: two writers that start from the same offset want the same name, and one of them gets it. So a batch lands whole
// for each input partition, but not at once for all of them; nothing is lost or doubled by that, since partitions are what progress is kept of.
//
// Readers (Open) follow the chains and read the files that they name, and no others: files of batches that did not land are not seen.
// Truncate, for a reset, ends each partition's chain by a manifest that says so, and the next one begins in a folder of its own.
// RecordGap says in the chain that offsets are left out on purpose. Vacuum removes the files that no manifest of a chain that counts names.
//
// The package knows no Kafka client, no topology, and nothing of the other table formats.
package jsonl
