package processors

import "github.com/tributary-io/tributary/serde"

// Header is one record header.
type Header = serde.Header

// NoTimestamp stands for "no time known yet" in stream and partition times.
const NoTimestamp int64 = -1

// Record is one record on its way through a task.
//
// A record is passed as a pointer that its sender owns and reuses: it is valid until the call returns, and the receiver must
// neither keep nor change it. Headers are shared, too: copy before changing.
//
// KeyNull and ValueNull are the null bits. For a nullable K or V (pointer, slice, map, interface) they are set exactly when the
// key or value is nil; for any other type they are the only sign of a null.
type Record[K, V any] struct {
	Key       K
	Value     V
	KeyNull   bool
	ValueNull bool
	Timestamp int64 // event time in ms since the epoch
	Headers   []Header
}

// Change is the value of a table's update stream: the new and the old value of one key.
//
// The null bits follow the rule of Record. Old is null where there was no value, or where no one downstream needs it.
type Change[V any] struct {
	New, Old         V
	NewNull, OldNull bool
	// IsLatest is false for an out-of-order update of a versioned table (KIP-914).
	IsLatest bool
}

// Window is a time range in ms since the epoch. End is exclusive for tumbling, hopping, sliding and unlimited windows as Kafka
// Streams counts them, inclusive for session windows.
type Window struct {
	Start, End int64
}

// Windowed is a key within a window.
type Windowed[K any] struct {
	Key    K
	Window Window
}
