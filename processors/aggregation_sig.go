package processors

// Aggregation says how values become an aggregate. Made by Counting, Reducing and Aggregating.
type Aggregation[K, V, A any] struct {
	init  func() (A, bool, error)
	add   func(r *Record[K, V], agg A, null bool) (A, bool, error)
	sub   func(r *Record[K, V], agg A, null bool) (A, bool, error)
	merge func(key K, a A, aNull bool, b A, bNull bool) (A, bool, error)
}

// Counting counts records, nulls too where the operator takes them.
func Counting[K, V any]() Aggregation[K, V, int64] { return Aggregation[K, V, int64]{} }

// Reducing combines values; the first value of a key is its first aggregate. sub takes a value out again and is needed for grouped
// tables only.
func Reducing[K, V any](add, sub func(agg, value V) (V, error)) Aggregation[K, V, V] {
	return Aggregation[K, V, V]{}
}

// Aggregating starts from init and adds values. sub takes a value out again (grouped tables), merge joins two aggregates (session
// windows); both may be nil elsewhere. An aggregate that is the nil of a nullable A counts as none and deletes the row.
func Aggregating[K, V, A any](init func() (A, error), add, sub func(key K, value V, agg A) (A, error), merge func(key K, a, b A) (A, error)) Aggregation[K, V, A] {
	return Aggregation[K, V, A]{}
}

// NewAggregate aggregates a grouped stream: K, V to K, Change[A]. The store is of kind TimestampedKeyValue or Versioned.
func NewAggregate[K, V, A any](agg Aggregation[K, V, A], store Store[K, A]) Table[K, A] { return nil }

// NewTableAggregate aggregates a grouped table: K, Change[V] to K, Change[A].
func NewTableAggregate[K, V, A any](agg Aggregation[K, V, A], store Store[K, A]) Table[K, A] {
	return nil
}

// TimeWindows are tumbling (Advance = Size), hopping or unlimited windows. All in ms.
type TimeWindows struct {
	SizeMs, AdvanceMs, GraceMs int64
	// Unlimited is one window from StartMs on, without end.
	Unlimited bool
	StartMs   int64
}

// SlidingWindows hold the records that are at most DifferenceMs apart (KIP-450).
type SlidingWindows struct {
	DifferenceMs, GraceMs int64
}

// SessionWindows hold the records of a key between gaps of more than GapMs.
type SessionWindows struct {
	GapMs, GraceMs int64
}

// Emit says when windowed results are sent.
type Emit struct {
	// OnClose sends each window's result once, when it closes (KIP-825), instead of at each update.
	OnClose bool
	// IntervalMs throttles how often, in wall-clock time, closed windows are looked for; 0 looks at each record. Kafka Streams'
	// default is 1000.
	IntervalMs int64
}

// NewWindowAggregate aggregates a grouped stream in time windows: K, V to Windowed[K], Change[A]. The store is of kind
// TimestampedWindow. So that windows which close late, when stream time jumps, are still there to be sent, its retention has to
// exceed size + grace (see docs/semantics/windows.md).
func NewWindowAggregate[K, V, A any](agg Aggregation[K, V, A], windows TimeWindows, emit Emit, store Store[K, A]) Table[Windowed[K], A] {
	return nil
}

// NewSlidingAggregate aggregates a grouped stream in sliding windows. The store is of kind TimestampedWindow.
func NewSlidingAggregate[K, V, A any](agg Aggregation[K, V, A], windows SlidingWindows, emit Emit, store Store[K, A]) Table[Windowed[K], A] {
	return nil
}

// NewSessionAggregate aggregates a grouped stream in sessions. The store is of kind Session.
func NewSessionAggregate[K, V, A any](agg Aggregation[K, V, A], windows SessionWindows, emit Emit, store Store[K, A]) Table[Windowed[K], A] {
	return nil
}
