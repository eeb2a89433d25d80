package topology

import (
	"math"
	"time"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Forever makes DedupBy remember ids for good.
const Forever time.Duration = math.MaxInt64

// DropOlder makes DedupBy drop records that are so old that duplicates of them can't be told any more, instead of letting them pass.
func DropOlder() Option { return Option{optDropOlder, func(*settings) {}} }

// RepartitionByID makes DedupBy bring the records of an id together in one partition first: for ids that come with differing keys.
func RepartitionByID() Option { return Option{optByID, func(*settings) {}} }

// DedupBy lets the first record of each id pass and drops later ones for a time, counted from the first in stream time; those that are
// dropped are counted. Records with an empty id pass.
//
// Ids are told apart within a partition: a producer that sends a record again sends the same key, so both are in one partition. See
// RepartitionByID for other cases, DropOlder for records that come later than within, and Forever.
func (s *Stream[K, V]) DedupBy[_ onUse](id func(V) string, within time.Duration, opts ...Option) *Stream[K, V] {
	return s.TryDedupBy(ofValue[K](id), within, opts...)
}

// TryDedupBy is DedupBy with a function that sees the key and may fail.
func (s *Stream[K, V]) TryDedupBy[_ onUse](id func(K, V) (string, error), within time.Duration, opts ...Option) *Stream[K, V] {
	return &Stream[K, V]{dedup(s.s, id, within, opts)}
}

const dedupOptions = statelessOptions | optStore | optStoreType | optNoLogging | optTopicConfig | optDropOlder | optByID

const dedupPrefix = "KSTREAM-DEDUP-"

func dedup[K, V any](s *stream[K, V], id func(K, V) (string, error), within time.Duration, opts []Option) *stream[K, V] {
	b := s.b
	o := &operation{settings: newSettings(opts, dedupOptions), b: b}
	spec := b.dedupStore(o.settings, within)
	o.name = b.graph.NameOr(o.userName, dedupPrefix)
	o.needFunction(id == nil)
	out := &stream[K, V]{
		b: b, key: keySerde(o.settings, s.key), value: valueSerde(o.settings, s.value), sources: s.sources,
		rekeyed: s.rekeyed, windows: s.windows,
	}
	parent := s.node
	if o.has(optByID) {
		typed := throughTopic(b, out.key, out.value, partitioning[K, V]{one: partitionByID(id)})
		parent = b.graph.NewRepartition(o.name, o.userName != "", typed)
		parent.Repartition().Optimizable = false
		b.graph.Add(parent, s.node)
		out.sources, out.rekeyed = []string{parent.Name}, true
	}
	out.node = o.add(changesNothing, &logical.Processor{
		Supplier: processors.Dedup[K, V]{
			ID: id, WithinMs: within.Milliseconds(), Forever: within == Forever, DropOlder: o.has(optDropOlder), Store: spec.Name,
		},
		Stores: specs(spec),
	}, parent)
	out.node.NullKeyRelaxed = o.has(optByID) // the topic is for ids: a record without a key has one, too
	return out
}

// dedupStore declares the store of ids.
func (b *Builder) dedupStore(s *settings, within time.Duration) *state.Spec {
	spec := &state.Spec{Kind: state.Window, RetentionMs: within.Milliseconds(), WindowSizeMs: 1, InMemory: b.inMemory(s), WrittenOnce: true}
	if within.Milliseconds() <= 0 {
		s.bad(plan.InvalidArgument, "ids must be remembered for a millisecond at least, this is %v", within)
		spec.RetentionMs = 1
	}
	if within == Forever {
		spec.Kind, spec.RetentionMs, spec.WindowSizeMs = state.KeyValue, 0, 0
	}
	return b.finishStore(s, spec, dedupPrefix, !s.has(optNoLogging)).spec
}

// partitionByID sends records to the partition of their id. The key stays what it is.
func partitionByID[K, V any](id func(K, V) (string, error)) processors.Partitioner[K, V] {
	return func(_ string, r *processors.Record[K, V], partitions int32) (int32, error) {
		text, err := id(r.Key, r.Value)
		if err != nil {
			return 0, err
		}
		return processors.PartitionOf([]byte(text), partitions), nil
	}
}
