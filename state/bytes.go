package state

// This file holds the byte level stores' interfaces. What they have in common:
//
// Bytes that are passed in are copied where they are kept. Bytes that come out of an iterator are valid until its next call; bytes
// that come out of a Get are appended to the caller's dst and belong to the caller. A nil value is a null and deletes; a nil bound
// of a range is open; both bounds are inclusive.
//
// A store belongs to its task and is used by one goroutine at a time. An iterator sees the store as it was when the iterator was
// made, whatever is written afterwards, and must be closed.

// KeyValueBytes is a key-value store of bytes, plain or timestamped.
//
// Timestamps belong to the timestamped kinds: a plain store ignores those it is given and returns 0, but for what Spec.CachesRecords says. A
// timestamped store's changelog record carries the entry's timestamp, a plain store's that of the current record.
type KeyValueBytes interface {
	// Get appends the value of key to dst. ok is false, and dst comes back as it was, if there is none.
	Get(key, dst []byte) (value []byte, ts int64, ok bool, err error)
	// Put sets the value of key; a nil value deletes it.
	Put(key, value []byte, ts int64) error
	// PutIfAbsent puts only if key has no value, else appends the value present to dst and returns it with ok set.
	PutIfAbsent(key, value []byte, ts int64, dst []byte) (old []byte, oldTS int64, ok bool, err error)
	// PutAll puts the entries in order.
	PutAll(entries []BytesEntry) error
	// Delete removes key, and appends the value it had to dst.
	Delete(key, dst []byte) (old []byte, oldTS int64, ok bool, err error)
	// Range scans keys from..to in ascending byte order. An inverted range is empty.
	Range(from, to []byte) (KeyValueIterator, error)
	// ReverseRange is Range in descending order.
	ReverseRange(from, to []byte) (KeyValueIterator, error)
	// Prefix scans the keys that start with prefix in ascending order.
	Prefix(prefix []byte) (KeyValueIterator, error)
	// ApproximateNumEntries is exact for stores in memory and an estimate on disk. Of a store on disk that a test keeps in memory it is how
	// often an entry was put, less how often one was deleted, as in Kafka Streams' driver.
	ApproximateNumEntries() (int64, error)
}

// BytesEntry is an entry of a key-value store. A nil Value deletes.
type BytesEntry struct {
	Key, Value []byte
	Timestamp  int64
}

// KeyValueIterator walks over entries. Next must be called before the first entry.
type KeyValueIterator interface {
	// Next advances, and is false at the end and after an error.
	Next() bool
	Key() []byte
	Value() []byte
	// Timestamp is 0 for plain stores, but for those that Spec.CachesRecords.
	Timestamp() int64
	// Err is the error that ended the iteration, if any.
	Err() error
	// Close releases the iterator and returns Err, or what closing met. It may be called again.
	Close() error
}

// WindowBytes is a window store of bytes, plain or timestamped. Windows are known by key and start time; times are in milliseconds and
// not negative.
//
// Entries are hidden once their start is at or before the store's stream time (the largest start ever put) less the retention, and
// removed by whole segments.
//
// The order of scans over several keys: a persistent store goes segment by segment and within one key by key, then by start; an
// in-memory or time-ordered store goes by start, then key.
type WindowBytes interface {
	// Put sets the value of the window; nil deletes it. expired reports that the window was too old to be kept: the put did
	// nothing to the store, and counts as a dropped record. (In memory, where updates are coalesced, the row is there until its segment
	// expires, as it would be in Kafka Streams' record cache.) In a store that retains duplicates every put adds an entry, and a
	// nil value does nothing.
	Put(key, value []byte, start, ts int64) (expired bool, err error)
	// Get appends the value of one window to dst.
	Get(key []byte, start int64, dst []byte) (value []byte, ts int64, ok bool, err error)
	// Fetch scans the windows of key that start within from..to, inclusive.
	Fetch(key []byte, from, to int64, dir Direction) (WindowIterator, error)
	// FetchRange scans the windows of the keys keyFrom..keyTo (nil is open) that start within from..to.
	FetchRange(keyFrom, keyTo []byte, from, to int64, dir Direction) (WindowIterator, error)
	// FetchAll scans all windows that start within from..to.
	FetchAll(from, to int64, dir Direction) (WindowIterator, error)
	// All scans all windows.
	All(dir Direction) (WindowIterator, error)
	// StreamTime is the largest window start ever put, -1 before the first.
	StreamTime() int64
}

// Direction is the direction of a scan.
type Direction bool

// Scans go forward, in ascending order, or backward.
const (
	Forward  Direction = false
	Backward Direction = true
)

// WindowIterator walks over windows; see KeyValueIterator.
type WindowIterator interface {
	Next() bool
	Key() []byte
	// Start is the window's start time.
	Start() int64
	Value() []byte
	Timestamp() int64
	Err() error
	Close() error
}

// SessionBytes is a session store of bytes. Sessions are known by key, start and end, and expire by their end.
type SessionBytes interface {
	// Put sets the value of a session; nil removes it. expired is as in WindowBytes.Put.
	Put(key, value []byte, start, end int64) (expired bool, err error)
	// Remove removes a session.
	Remove(key []byte, start, end int64) error
	// Get appends the value of exactly that session to dst.
	Get(key []byte, start, end int64, dst []byte) (value []byte, ok bool, err error)
	// Fetch scans all sessions of key.
	Fetch(key []byte, dir Direction) (SessionIterator, error)
	// FetchRange scans all sessions of the keys from..to; nil is open.
	FetchRange(from, to []byte, dir Direction) (SessionIterator, error)
	// Find scans the sessions of key that end at or after earliestEnd and start at or before latestStart.
	Find(key []byte, earliestEnd, latestStart int64, dir Direction) (SessionIterator, error)
	// FindRange is Find over the keys from..to; nil is open.
	FindRange(from, to []byte, earliestEnd, latestStart int64, dir Direction) (SessionIterator, error)
	// FindEnded scans the sessions of all keys that end within from..to, inclusive, also those that retention hides but that are still kept.
	FindEnded(from, to int64) (SessionIterator, error)
	// StreamTime is the largest session end ever put, -1 before the first.
	StreamTime() int64
}

// SessionIterator walks over sessions; see KeyValueIterator.
type SessionIterator interface {
	Next() bool
	Key() []byte
	Start() int64
	End() int64
	Value() []byte
	Err() error
	Close() error
}

// Results of VersionedBytes.Put that are no timestamps.
const (
	// LatestVersion is the validTo of a version that is the latest of its key.
	LatestVersion int64 = -1
	// VersionNotPut says that the version was too old for the history retention and was refused. It counts as a dropped
	// record, yet goes to the changelog, as in Kafka Streams.
	VersionNotPut int64 = -1 << 63
)

// VersionedBytes is a versioned key-value store: each key has versions, valid from their timestamp to that of the next one
// (KIP-889). Versions older than the history retention before the store's stream time can no longer be read or put.
type VersionedBytes interface {
	// Put adds a version; a nil value is a tombstone. It returns the time up to which the new version is valid, LatestVersion
	// or VersionNotPut.
	Put(key, value []byte, ts int64) (validTo int64, err error)
	// Delete puts a tombstone and returns the version that was valid at ts before it.
	Delete(key []byte, ts int64, dst []byte) (old BytesVersion, ok bool, err error)
	// Get gives the latest version of key. The value is appended to dst.
	Get(key, dst []byte) (v BytesVersion, ok bool, err error)
	// GetAsOf gives the version of key that is valid at time asOf.
	GetAsOf(key []byte, asOf int64, dst []byte) (v BytesVersion, ok bool, err error)
	// History scans the versions of key whose validity meets from..to, inclusive, newest first (Forward: oldest first).
	History(key []byte, from, to int64, dir Direction) (VersionIterator, error)
	// StreamTime is the largest timestamp ever put, -1 before the first.
	StreamTime() int64
}

// BytesVersion is a version of a key. ValidTo is exclusive, LatestVersion for the latest.
type BytesVersion struct {
	Value              []byte
	ValidFrom, ValidTo int64
}

// VersionIterator walks over versions; see KeyValueIterator.
type VersionIterator interface {
	Next() bool
	Version() BytesVersion
	Err() error
	Close() error
}
