package processors

import (
	"log/slog"
	"time"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/state"
)

// Next is a wired node: it processes one record and everything downstream of it before it returns.
//
// An error that reaches the caller is fatal for the task: errors that the processing-error handler skips never get there.
type Next[K, V any] func(r *Record[K, V]) error

// Supplier makes one node of a topology for one task. A plan holds suppliers; each task calls them once, children first.
// Suppliers are used by many tasks at once and keep no state.
type Supplier interface {
	// New wires a node to its children. rt is the node's own.
	New(rt Runtime, children []Child) (Instance, error)
}

// SupplierFunc is a function as a Supplier.
type SupplierFunc func(rt Runtime, children []Child) (Instance, error)

// New calls f.
func (f SupplierFunc) New(rt Runtime, children []Child) (Instance, error) { return f(rt, children) }

// Child is a wired downstream node. Next is a Next[K, V] of the types that the parent sends.
type Child struct {
	Name string
	Next any
}

// Instance is a node made for a task.
type Instance struct {
	// Next is the node's Next[K, V] of its input types.
	Next any
	// Init, if set, is called once, in topological order, after all nodes are wired and the stores are open.
	Init func() error
	// Close, if set, is called when the task closes.
	Close func() error
}

// SourceSupplier makes a source node.
type SourceSupplier interface {
	NewSource(rt Runtime, children []Child) (Source, error)
}

// Source is a source node made for a task.
type Source interface {
	// NewHead makes the slot for one input queue of the source: topic is the queue's topic.
	NewHead(topic string) Head
	// LeavesOut reports whether the source may leave out records that can be decoded, since it has a timestamp extractor of its own.
	LeavesOut() bool
}

// Head is the deserialized head record of one input queue. A record is deserialized once, when it becomes the head, since its
// event time decides which queue comes next.
type Head interface {
	// Load deserializes raw and extracts its event time. partitionTime is the largest event time seen on the partition, or
	// NoTimestamp. Errors are *DeserializationError or *TimestampError; a negative time without an error means: drop it.
	Load(raw *RawRecord, partitionTime int64) (timestamp int64, err error)
	// Process sends the loaded record downstream.
	Process() error
}

// RawRecord is a record as it came from its topic. Key and Value are nil for null and are never modified.
type RawRecord struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp int64 // the record's timestamp in ms
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Context describes the record that a task is processing. Nodes see it through Runtime.Context; the pointer is stable.
//
// Topic, Partition and Offset are those of the record that entered the sub-topology (behind a repartition topic: that topic's).
// Timestamp and Headers are those of the record last forwarded on the way to the current node: what a store writes to its
// changelog. During punctuation Topic is empty, Partition and Offset are -1.
type Context struct {
	state.Context // the part that stores see
	// RawKey and RawValue are the bytes of the record that entered the sub-topology, nil for null.
	RawKey   []byte
	RawValue []byte
	// BrokerTimestamp is the timestamp in ms that this record has in its topic.
	BrokerTimestamp int64
}

// PunctuationType tells which clock drives a punctuation.
type PunctuationType int

// The clocks that drive punctuations.
const (
	StreamTime PunctuationType = iota
	WallClockTime
)

// Cancellable is a scheduled punctuation.
type Cancellable interface{ Cancel() }

// Runtime is what the task gives to one of its nodes. It is used by the task's worker only.
type Runtime interface {
	// ApplicationID, TaskID and NodeName name the place for messages and metrics.
	ApplicationID() string
	TaskID() string
	NodeName() string
	// Logger carries the task and the node.
	Logger() *slog.Logger

	// Context is the current record's context; the pointer stays the same for the life of the task.
	Context() *Context
	// StreamTimeMs is the largest event time that the task has processed, or NoTimestamp.
	StreamTimeMs() int64
	// Now is the wall clock.
	Now() time.Time
	// Schedule calls f every interval (at least 1 ms) of the given time, as Kafka Streams does: stream time first fires at the
	// first record, wall clock first after one interval.
	Schedule(interval time.Duration, t PunctuationType, f func(timestampMs int64) error) Cancellable
	// RequestCommit asks for a commit as soon as possible.
	RequestCommit()

	// Stores finds the stores that are connected to this node, and the global ones (read-only by convention). The typed facades of
	// package state take it. A store that is not connected is a *StoreAccessError.
	Stores() state.Stores

	// Dropped counts records that this node left out, by reason (one of the Dropped… constants).
	Dropped(reason string)
	// Failed hands an error of user code to the processing-error handler: nil means skip this record at this node and go on;
	// an error is fatal and must be returned up. Errors that are fatal already are returned as they are.
	Failed(err error) error

	// Produce sends a record to a topic. partition is -1 to choose by the key (murmur2 as Kafka does). The bytes are copied or
	// sent before Produce returns. nil key or value is null.
	Produce(topic string, partition int32, key, value []byte, timestamp int64, headers []Header) error
	// SerializationFailed hands a failed serialization for a topic to the production-error handler: nil means drop the record.
	SerializationFailed(topic string, err error) error
	// Partitions returns the number of partitions of a topic that the node writes to.
	Partitions(topic string) (int32, error)

	// Progress returns a value of this task's operators that is committed with the input offsets and survives restarts and moves:
	// such as the last close time emitted (KIP-825). Keys are shared by the task's nodes: begin them with the node's name.
	Progress(key string) (int64, bool)
	// SetProgress sets such a value. It must never go down.
	SetProgress(key string, v int64)

	// Lake returns where rows for the lake sink of this node go. It is called when the node is made.
	Lake() (LakeAppender, error)
}

// LakeAppender takes the rows that reach a lake sink. key and value are *K and *V (nil for null) and are not kept.
type LakeAppender interface {
	Append(key, value any, meta *sink.Meta) error
}

// Reasons for Runtime.Dropped.
const (
	DroppedNullKey         = "null_key"
	DroppedNullValue       = "null_value"
	DroppedLate            = "late"
	DroppedExpired         = "expired"
	DroppedOutOfOrder      = "out_of_order"
	DroppedDuplicate       = "duplicate"
	DroppedDeserialization = "deserialization"
	DroppedTimestamp       = "timestamp"
	DroppedProcessing      = "processing"
	DroppedProduction      = "production"
	DroppedNoPartition     = "no_partition"
)
