// Package verify proves that a table holds exactly what a topic says: it reads the topic again, read_committed, and accounts for each
// record: landed once, or dead-lettered. Offsets of aborted records, transaction markers and records that compaction has taken are no
// gaps, since a reader of committed records never sees them. What is committed behind a transaction that is still open, it would not see
// either: there it waits.
//
// It needs the source columns of package lake (_kafka_partition, _kafka_offset), which name the record that each row comes from.
package verify
