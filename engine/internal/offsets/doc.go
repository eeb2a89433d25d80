// Package offsets reads and writes a consumer group's committed offsets outside of transactions, and knows what is kept beside an
// offset: the partition's time and how far the operators have come.
//
// The offsets are the next ones to read. Reading waits until no transaction holds them back (KIP-447): an instance that takes a
// task over must not start from an offset that a transaction of the former owner is about to move.
//
// The format of the metadata is that of Kafka Streams (metadata.go, docs/format/offset-metadata.md), so that an application can be
// moved between the two.
package offsets
