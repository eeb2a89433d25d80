package topologytest

import (
	"log/slog"
	"time"

	"github.com/tributary-io/tributary/processors"
)

// Option changes how a Driver runs a topology.
type Option func(*options)

type options struct {
	partitions   int32 // 0: the driver mode
	topicCounts  map[string]int32
	stateDir     string // empty: stores in memory
	start        time.Time
	handlers     processors.Handlers
	manualCommit bool
	logger       *slog.Logger
}

func newOptions(opts []Option) options {
	o := options{topicCounts: map[string]int32{}, start: time.UnixMilli(0).UTC(), logger: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Partitions chooses the partitioned mode and gives every topic n partitions, except those that TopicPartitions or the topology
// says otherwise for.
func Partitions(n int32) Option { return func(o *options) { o.partitions = n } }

// TopicPartitions gives one topic n partitions. It counts in the partitioned mode only.
func TopicPartitions(topic string, n int32) Option {
	return func(o *options) { o.topicCounts[topic] = n }
}

// PebbleStores keeps the stores on disk, below dir, as the engine does, instead of in memory. The results are the same.
func PebbleStores(dir string) Option { return func(o *options) { o.stateDir = dir } }

// StartTime sets the wall clock; it starts at the epoch otherwise.
func StartTime(at time.Time) Option { return func(o *options) { o.start = at } }

// ErrorHandlers sets the application's error handlers. Without them the first failure is fatal.
func ErrorHandlers(h processors.Handlers) Option { return func(o *options) { o.handlers = h } }

// ManualCommit leaves commits to Driver.Commit, so that Driver.Crash can hit an open transaction. Records that go through an internal topic are
// processed further after the commit only, as under exactly-once.
func ManualCommit() Option { return func(o *options) { o.manualCommit = true } }

// Logger receives the tasks' log lines; they are discarded otherwise.
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }
