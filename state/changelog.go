package state

// Policy says which changelog records a generation gives.
type Policy uint8

const (
	// EveryWrite gives a record for every write, as Kafka Streams does with its cache off.
	EveryWrite Policy = iota
	// LastPerKeyPerCommit gives only the last record of each key in a generation, at the position of that last write.
	// Versioned stores always give every write, since each is a version.
	LastPerKeyPerCommit
)

// NoTimestamp is the timestamp of changelog records that have none of their own, those of the buffers of suppress and of joins with
// grace: the producer sets the time at which it sends them.
const NoTimestamp int64 = -1

// ChangelogRecord is a record for a store's changelog topic. The bytes belong to the generation and are valid until it is applied
// or dropped. A nil Value is a tombstone.
type ChangelogRecord struct {
	Store     int // index into the specs that the DB was opened with
	Key       []byte
	Value     []byte
	Timestamp int64 // may be NoTimestamp
	Headers   []Header
}

// RestoreRecord is a record read from a changelog topic.
type RestoreRecord struct {
	Key       []byte
	Value     []byte
	Timestamp int64
	Headers   []Header
}
