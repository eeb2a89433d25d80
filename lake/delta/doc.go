// Package delta reads and writes the transaction log of Delta tables by the open specification (delta-io/delta, PROTOCOL.md).
// It is the table format's side of a sink: it makes tables, tells how far they have come, lands data files together with
// progress in one atomic commit, and keeps the log short. It is a complete writer of appends and rewrites, and a complete reader of the log.
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
// Where to look: action*.go for the lines of the log; schema*.go, walk.go and evolve.go for the table's columns; protocol.go for
// what a table may demand, props.go for its properties; logfiles.go for names in _delta_log; head.go, load.go and refresh.go for
// opening, snapshot.go and checkpointread.go for the file list; create.go, commit.go and put.go for writing; maintain.go,
// checksum.go, checkpointwrite.go, checkpointv2.go, lastcheckpoint.go and cleanup.go for upkeep of the log, vacuum.go for that of the files;
// rewrite.go for commits that remove files, mapping.go for column mapping; stats.go, statvalue.go, partition.go and path.go
// for the values inside an add action. What is written, and what is refused, is told in docs/format/delta-log.md; each
// rule of the protocol, and where it is kept, in docs/format/delta-protocol.md.
//
// The package must not know Kafka, Arrow types of rows, or how rows became files. It makes no decisions by real time other
// than through Options.Now.
package delta
