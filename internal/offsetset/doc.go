// Package offsetset keeps a set of offsets of one partition as something that fits beside a committed offset: everything below the
// offset is in the set, and from it on the ranges that a short text lists, which goes into the offset's metadata.
//
// So a consumer group can remember, in the transaction that does the work, which records have been dealt with although they don't lie in a row:
// the dead letters that were replayed (package dlq), the records of global tables whose dead letters are written (package engine).
//
// The package knows no Kafka client, and nothing of what the offsets stand for.
package offsetset
