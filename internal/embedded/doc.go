// Package embedded runs a Kafka broker and a schema registry inside the process, so that a laptop needs nothing installed.
//
// The broker is franz-go's kfake: a real implementation of the protocol over TCP, with transactions, consumer groups,
// compaction and, given a directory, persistence. The registry is srfake behind a journal of its own: srfake keeps everything
// in memory, so each request that changes something is written down before it is answered, and done again at the next start. Schemas that
// break their subject's level, which srfake takes, are refused (compatibility.go).
//
// Neither replaces a cluster: there is one process, hence no replication, and no security. Where they differ from the real
// thing the package closes the gap (message.timestamp.type, aborted records in long answers, members that wait or die while they join, producers that
// go on after another took their transactional id) or the documentation names it. Left open, since kfake offers no place to close it:
//   - Once the leader of a classic group is gone, JoinGroup tells each of the others that it leads; the assignment of one of them counts.
//   - Who took whose transactional id is forgotten when the broker ends: a producer that had lost its id before can take it back by its former epoch.
//   - A transactional id keeps the transaction timeout that it was first used with.
//   - A broker that is killed while it ends a transaction may leave it committed in some partitions and aborted in the others, or without its offsets.
//     What else kill -9 leaves is mended at the next start: crash.go.
//   - OffsetFetch with RequireStable waits for open transactions that hold any offsets of the group, where Kafka waits for those of the partitions asked for;
//     for a group that has no members and no offsets it doesn't wait at all.
//
// The package knows nothing of topologies and engines.
package embedded
