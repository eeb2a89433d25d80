// Package keyed is what a table of current state needs besides rows and commits: which row a key has, and which of two changes is the newer.
//
//	key columns   → Key: canonical bytes of their values → Hash
//	order column  → a number without a sign, by which changes of one key are compared (integers, times, positions in PostgreSQL's log)
//	Index         Hash → file and row, or the order at which the key was deleted; in memory while it is small, else on a local disk
//	Deletions     the orders of deleted keys as small files beside the table, so that they outlive the process and the index
//
// The index is never the truth: it is built from the table, and may be thrown away at any time. Keys' hashes and the files of deletions are durable
// formats; they are written down in docs/format/current-state.md.
//
// The package knows no table's log, and decides nothing about changes: package lake does.
package keyed
