// Package delta reads and writes the transaction log of Delta tables by the open specification (delta-io/delta, PROTOCOL.md).
// It is the table format's side of a sink: it makes tables, tells how far they have come, lands data files together with
// progress in one atomic commit, and keeps the log short. It is a complete writer of appends and a complete reader of the log.
//
// How a batch passes through:
//
//	caller   Parquet files -> object.Store (Create, Sync)
//	Commit   compare the caller's progress with the newest version (Head)   -> fenced, if another writer moved it
//	         put version N+1 if absent                                      -> landed
//	         lost the race: read the winners, compare again, try at N+2     -> landed or fenced
//	         outcome unknown: read the version back, look for our own txnId -> landed or lost
//	Maintain checksum of the newest version, checkpoint each interval, _last_checkpoint, log clean-up: off the commit's path
//
// A Head is what a writer must know of a version: protocol, metadata, progress of each application id, counts. It comes from
// the newest version checksum and the few commits after it, so that opening a table with a long log is cheap. A Snapshot adds
// the list of files, which is streamed from the newest good checkpoint and the commits after it.
//
// Files, each with its subject: action*.go the lines of the log; schema*.go, evolve.go the table's columns; protocol.go what a
// table may demand; logfiles.go names in _delta_log; head.go, snapshot.go, replay.go, checkpointread.go reading; commit.go
// writing; checksum.go, checkpointwrite.go, lastcheckpoint.go, cleanup.go, maintain.go upkeep; stats.go, partition.go the
// values inside an add action.
//
// The package must not know Kafka, Arrow types of rows, or how rows became files. It makes no decisions by real time other
// than through Options.Now.
package delta
