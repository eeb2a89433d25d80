package gokacompat

import (
	"context"
	"hash"
	"time"

	"github.com/lovoo/goka"

	"github.com/tributary-io/tributary/topology"
)

// Option changes how a group is run.
type Option func(*options)

type options struct {
	partition  Partitioner
	anywhere   bool
	start      topology.OffsetReset
	nils       goka.NilHandling
	headers    goka.Headers
	wrap       goka.ContextWrapper
	ctx        context.Context
	eventTimes bool
	deferLimit time.Duration
	inMemory   bool
}

func newOptions(opts []Option) options {
	o := options{partition: GokaPartition, start: topology.Latest, ctx: context.Background(), deferLimit: 30 * time.Second}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Hasher is goka.WithHasher: the hash that chooses partitions.
func Hasher(hasher func() hash.Hash32) Option {
	return func(o *options) { o.partition = hashPartition(hasher) }
}

// PartitionBy chooses partitions in another way than by goka's default hash; KafkaPartition is Kafka's.
func PartitionBy(p Partitioner) Option { return func(o *options) { o.partition = p } }

// AnyPartition takes records in whichever partition they are. Without it a record of an input that isn't where its key belongs is an error
// (*MisplacedError): what Loopback sends to its key, and tables that are joined, would be elsewhere. Each key's value lives in the partition
// where its records come in.
func AnyPartition() Option { return func(o *options) { o.anywhere = true } }

// StartAt says where inputs start that have no committed offset. The default is goka's: topology.Latest.
func StartAt(r topology.OffsetReset) Option { return func(o *options) { o.start = r } }

// NilHandling is goka.WithNilHandling: what becomes of records without a value. The default is goka.NilIgnore.
func NilHandling(n goka.NilHandling) Option { return func(o *options) { o.nils = n } }

// DefaultHeaders is goka.WithProducerDefaultHeaders: headers of all that is emitted.
func DefaultHeaders(h goka.Headers) Option { return func(o *options) { o.headers = h } }

// ContextWrapper is goka.WithContextWrapper. It is called by several tasks at once.
func ContextWrapper(wrap goka.ContextWrapper) Option { return func(o *options) { o.wrap = wrap } }

// Context is the parent of what callbacks get from goka.Context.Context. That ends when the task is closed, too.
func Context(ctx context.Context) Option { return func(o *options) { o.ctx = ctx } }

// EventTimes gives what is emitted the time of the record that it comes from. The default is goka's: the wall clock.
func EventTimes() Option { return func(o *options) { o.eventTimes = true } }

// DeferLimit is how long a commit waits for functions that DeferCommit has returned and that are yet to be called. Then the instance ends
// with an error, and nothing of the transaction counts. The default is 30 s; the engine's transaction timeout has to be longer.
func DeferLimit(d time.Duration) Option { return func(o *options) { o.deferLimit = d } }

// InMemory keeps the table and the tables that are joined in memory. They are restored from their topics at each start.
func InMemory() Option { return func(o *options) { o.inMemory = true } }
