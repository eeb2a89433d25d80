// Package dlq looks after dead letters for people: it lists and groups them by why, whence and when, and sends them again to the topics
// that they come from.
//
// A dead letter is a record that an application couldn't read, process or land: its original key, value, headers and time, and headers
// that describe the failure (KIP-1034, see package processors). Read yields the letters of a topic, Group counts them by cause, and a
// Replay says what it would do before it does it.
//
// A replay is idempotent. Each batch of records goes out in one Kafka transaction together with the note of what has been replayed,
// which stands as offsets and their metadata in a consumer group of its own: a replay that is interrupted, run twice, or run by two
// people at once sends no letter twice. A replayed record says so in a header, so that a letter that failed again isn't sent round in
// circles unless asked to.
//
// The package knows nothing of topologies and tables, and decodes no values.
package dlq
