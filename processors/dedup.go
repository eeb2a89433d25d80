package processors

// Dedup passes the first record of each id and drops later ones for a time. It is a Supplier.
type Dedup[K, V any] struct {
	// ID gives the record's id; a record with an empty id passes.
	ID func(K, V) (string, error)
	// WithinMs is how long an id is remembered, in stream time of this operator, from its first record. Forever ignores it.
	WithinMs int64
	Forever  bool
	// DropOlder drops records that are older than WithinMs, which can't be told from new ones any more, instead of passing them.
	DropOlder bool
	// Store is a store of kind Window (string id -> int64 first timestamp) with a retention of at least WithinMs, or, if Forever, of
	// kind KeyValue.
	Store string
}

// New implements Supplier.
func (d Dedup[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	return Instance{}, errUnbuilt
}
