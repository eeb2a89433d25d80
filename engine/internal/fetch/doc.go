// Package fetch reads topics for the engine, always read_committed, from positions that the engine owns.
//
//   - Inputs reads what the tasks process: many partitions at once through one client, each from where it was told. A change of
//     positions waits for the poll that is under way, so that nothing fetched before the change comes after it. Partitions without records are
//     added together with others (AddIdle).
//   - Read reads one partition from one offset to another, for restoring state. It ends by position: transaction markers, aborted
//     records and what compaction took count as read, though no record shows (KAFKA-20876 is what happens otherwise).
//   - Bounds tells where partitions begin and end.
//
// A position is the next offset to read. Control records never get out of this package; the positions past them do, so that input that
// was written in transactions leaves no lag.
package fetch
