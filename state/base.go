package state

// base holds the committed rows of stores: a task's Pebble database, or an ordered map per in-memory store. Reads may run beside an
// apply, from any goroutine.
type base interface {
	// get appends the value of key to dst.
	get(key, dst []byte) (val []byte, ok bool, err error)
	// open gives the cursor a base cursor that sees the base as it is now. It lies in c, so that a scan is one allocation.
	open(c *cursor) error
}

// baseCursor walks over rows. Key and value are valid until the next call.
type baseCursor interface {
	// seek goes to the first row of [lower, upper), or the last one if reverse, and stays within these bounds, which must not be
	// changed before the next seek. prefix promises that all the rows asked for have the Split prefix of lower, so that bloom
	// filters can be used.
	seek(lower, upper []byte, reverse, prefix bool) bool
	next() bool
	key() []byte
	value() []byte
	err() error
	close() error
}
