// Package state keeps the state of stream tasks: key-value, window, session and versioned stores, and the buffers that joins
// and suppression need.
//
// A [DB] holds all stores of one task. What is inside, from the top:
//
//   - Typed facades ([KeyValueStore], [TimestampedKeyValueStore], [WindowStore], [TimestampedWindowStore], [SessionStore],
//     [VersionedStore]) turn Go values into bytes and back.
//   - Byte stores ([KeyValueBytes], [WindowBytes], [SessionBytes], [VersionedBytes]) and buffers ([ChangeBuffer], [RecordBuffer],
//     [JoinListBytes]) carry the semantics: null handling, ranges, iteration order, expiry. They follow Kafka Streams 4.3, its
//     RocksDB stores or, where Spec.InMemory is set, its in-memory stores, which iterate and expire differently.
//   - The write buffer holds what was written since the last commit, in at most two generations: a sealed one that is being
//     committed and the open one. Reads and scans see open before sealed before base.
//   - The front, of a store on disk, answers most gets out of memory: rows lately written or read, and a filter of the keys there are.
//   - The base is one Pebble database per task (or maps in memory) that holds committed state only.
//
// A record passes through like this. A processor puts an entry into a store; the store writes it to the open generation, together
// with the changelog record that Kafka Streams would send. At a commit the engine calls [DB.Seal], sends the sealed generation's
// changelog records in the producer's transaction, commits it, and calls [Generation.Apply], which writes the generation to the
// base as one atomic batch along with the changelog offsets it contains. An aborted transaction calls [DB.Drop]: there is nothing
// to wipe and nothing to restore. [DB.Savepoint] and [DB.RollBack] take back one record of several in a generation. After a crash the base is a consistent prefix of the changelog, and [DB.Offset] says which one;
// the engine hands the rest to [DB.Restore], between [DB.BeginRestore] and [DB.EndRestore] if it is much.
//
// One goroutine at a time uses a task's stores. Generation.Changelog and Generation.Apply may run beside it, and queries from
// anywhere see committed state through a [View].
//
// What is durable, rows on disk and changelog records, is described in docs/format and fixed by testdata/format.
//
// The package knows neither Kafka clients nor topologies: it sees names, bytes, timestamps and offsets.
package state
