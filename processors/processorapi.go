package processors

import (
	"log/slog"
	"time"

	"github.com/tributary-io/tributary/state"
)

// Processor is an operator written by a user (the Processor API). One is made for each task, and used by the task's worker only.
type Processor[KIn, VIn, KOut, VOut any] interface {
	// Init is called once, before the first record. The stores are open.
	Init(ctx ProcessorContext[KOut, VOut]) error
	// Process takes a record. It is valid until the call returns: copy what you keep.
	Process(r *Record[KIn, VIn]) error
	// Close is called when the task closes.
	Close() error
}

// FixedKeyProcessor is a Processor that can't change keys: what it sends keeps the key of the record being processed, so nothing
// need be repartitioned behind it.
type FixedKeyProcessor[K, VIn, VOut any] interface {
	Init(ctx FixedKeyContext[K, VOut]) error
	Process(r *Record[K, VIn]) error
	Close() error
}

// BaseContext is what both kinds of processors are given.
type BaseContext interface {
	ApplicationID() string
	TaskID() string
	NodeName() string
	Logger() *slog.Logger
	// Stores finds the stores connected to the processor. See KeyValueStore and its like for typed access.
	Stores() state.Stores
	// Metadata tells where the current record came from. ok is false in a punctuation.
	Metadata() (m Metadata, ok bool)
	// Headers are the current record's.
	Headers() []Header
	// StreamTimeMs is the largest event time that the task has seen, or NoTimestamp.
	StreamTimeMs() int64
	// Now is the wall clock.
	Now() time.Time
	// Schedule calls f every interval of the given time; see Runtime.Schedule.
	Schedule(interval time.Duration, t PunctuationType, f func(timestampMs int64) error) Cancellable
	// RequestCommit asks for a commit as soon as possible.
	RequestCommit()
}

// Metadata are the coordinates of the record that entered the sub-topology.
type Metadata struct {
	Topic     string
	Partition int32
	Offset    int64
}

// ProcessorContext connects a Processor to its task.
type ProcessorContext[K, V any] interface {
	BaseContext
	// Forward sends r to all children in order. r is not kept.
	Forward(r *Record[K, V]) error
	// ForwardTo sends r to one child; an *UnknownChildError if there is none of that name.
	ForwardTo(child string, r *Record[K, V]) error
}

// FixedKeyContext connects a FixedKeyProcessor to its task. The key of what is sent is the current record's, whatever r says.
type FixedKeyContext[K, V any] interface {
	BaseContext
	Forward(r *Record[K, V]) error
	ForwardTo(child string, r *Record[K, V]) error
}

// Process makes a node of a user's processor.
func Process[KIn, VIn, KOut, VOut any](newProcessor func() Processor[KIn, VIn, KOut, VOut]) Supplier {
	return unbuilt()
}

// ProcessValues makes a node of a user's fixed-key processor.
func ProcessValues[K, VIn, VOut any](newProcessor func() FixedKeyProcessor[K, VIn, VOut]) Supplier {
	return unbuilt()
}

// KeyValueStore opens a connected store of kind KeyValue.
func KeyValueStore[K, V any](ctx BaseContext, s Store[K, V]) (*state.KeyValueStore[K, V], error) {
	return nil, errUnbuilt
}

// TimestampedKeyValueStore opens a connected store of kind TimestampedKeyValue.
func TimestampedKeyValueStore[K, V any](ctx BaseContext, s Store[K, V]) (*state.TimestampedKeyValueStore[K, V], error) {
	return nil, errUnbuilt
}

// WindowStore opens a connected store of kind Window.
func WindowStore[K, V any](ctx BaseContext, s Store[K, V]) (*state.WindowStore[K, V], error) {
	return nil, errUnbuilt
}

// TimestampedWindowStore opens a connected store of kind TimestampedWindow.
func TimestampedWindowStore[K, V any](ctx BaseContext, s Store[K, V]) (*state.TimestampedWindowStore[K, V], error) {
	return nil, errUnbuilt
}

// SessionStore opens a connected store of kind Session.
func SessionStore[K, V any](ctx BaseContext, s Store[K, V]) (*state.SessionStore[K, V], error) {
	return nil, errUnbuilt
}

// VersionedStore opens a connected store of kind Versioned.
func VersionedStore[K, V any](ctx BaseContext, s Store[K, V]) (*state.VersionedStore[K, V], error) {
	return nil, errUnbuilt
}
