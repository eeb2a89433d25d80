package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/readers"
	"github.com/tributary-io/tributary/engine/internal/topiccopy"
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// View is a read-only copy of a whole table topic, for programs that only look things up: the last value of each key, where a null deletes
// it. It reads committed records only, belongs to no group, and writes nothing to Kafka. The topic may be the output of an application,
// a compacted topic of anybody's, or a store's changelog (of a key-value store).
//
// Make it with NewView and call Run once; the other methods may be called from any goroutine. Until the view has caught up with the topic
// as it was when Run began, they fail with a *NotHereError.
type View[K, V any] struct {
	topic  string
	cfg    config
	dir    string // "": in memory
	query  *KeyValueQuery[K, V]
	update func(Update[K, V])

	ran        atomic.Bool
	ready      chan struct{}
	partitions atomic.Int32 // 0 until it can be read
	behind     atomic.Int64
	set        readers.Set
}

// Update is a change of a view's row, as it is applied.
type Update[K, V any] struct {
	Key K
	// Value is the new one, the zero value if Deleted.
	Value     V
	Deleted   bool
	Timestamp int64 // ms
	Partition int32
	Offset    int64
	// CatchingUp says that the record was in the topic before Run began.
	CatchingUp bool
	// Err says that the key or the value can't be decoded. The row is applied all the same, and reading it gives the same error.
	Err error
}

// ViewOnDisk keeps a view in a database in dir, which belongs to it alone, so that the next start reads only what is new. Without it the
// view is in memory, and is read whole at each start.
func ViewOnDisk(dir string) Option { return func(c *config) { c.viewDir = dir } }

// NewView makes a view. Options: Brokers, Client, Logger, ViewOnDisk, StateMemory, and PartitionStore with the topic's name, where keys are
// not where Kafka's default partitioner puts them. Nothing is started before Run.
func NewView[K, V any](topic string, key serde.Serde[K], value serde.Serde[V], opts ...Option) (*View[K, V], error) {
	cfg := defaults()
	for _, o := range opts {
		o(&cfg)
	}
	err := cfg.check()
	if topic == "" {
		err = errors.Join(err, errors.New("no topic"))
	}
	if key == nil || value == nil {
		err = errors.Join(err, errors.New("a serde is nil"))
	}
	if err != nil {
		return nil, fmt.Errorf("view of %s: %w", topic, err)
	}
	cfg.log = cfg.log.With("view", topic)
	v := &View[K, V]{topic: topic, cfg: cfg, dir: cfg.viewDir, ready: make(chan struct{})}
	v.query = &KeyValueQuery[K, V]{query[K, V]{
		from: viewSource{topic, &v.set, &v.partitions, cmpOr(cfg.partitioners[topic], processors.PartitionOf)}, store: topic,
		key: serde.NewCodec(serde.Bind(key, topic, true)), value: serde.NewCodec(serde.Bind(value, topic, false)),
	}}
	return v, nil
}

// OnUpdate has f called for each record after it is applied, also for those of the catching up, from one goroutine, in the order of each
// partition. The view reads on when f returns. It must be called before Run.
func (v *View[K, V]) OnUpdate(f func(Update[K, V])) { v.update = f }

// Ready is closed when the view has caught up for the first time.
func (v *View[K, V]) Ready() <-chan struct{} { return v.ready }

// Behind is the number of offsets that were still to be read when the catching up was last looked at; 0 when it is done.
func (v *View[K, V]) Behind() int64 { return v.behind.Load() }

// Get gives the row of key; ok is false if it has none.
func (v *View[K, V]) Get(key K) (row state.Entry[K, V], ok bool, err error) { return v.query.Get(key) }

// Range scans the keys from..to, inclusive, in ascending byte order within each of the topic's partitions; a nil bound is open. It is taken
// out in portions of some hundred rows, each as it is at its moment.
func (v *View[K, V]) Range(from, to *K) iter.Seq2[state.Entry[K, V], error] {
	return v.query.Range(from, to)
}

// Prefix scans the keys whose bytes begin with prefix; see Range.
func (v *View[K, V]) Prefix(prefix []byte) iter.Seq2[state.Entry[K, V], error] {
	return v.query.Prefix(prefix)
}

// All scans all rows; see Range.
func (v *View[K, V]) All() iter.Seq2[state.Entry[K, V], error] { return v.query.All() }

// viewTask stands for the view in its set of what can be read.
var viewTask = task.ID{}

// viewSource is where a view's rows are: a store for each partition of the topic.
type viewSource struct {
	topic      string
	set        *readers.Set
	partitions *atomic.Int32
	choose     func(key []byte, partitions int32) int32
}

func (s viewSource) parts(key []byte) ([]int32, error) {
	n := s.partitions.Load()
	if n == 0 {
		return nil, &NotHereError{Store: s.topic, Partition: -1, Reason: NotStarted}
	}
	if key != nil {
		at := s.choose(key, n)
		if at < 0 || at >= n {
			return nil, fmt.Errorf("view of %s: its partitioner chose partition %d of %d", s.topic, at, n)
		}
		return []int32{at}, nil
	}
	parts := make([]int32, n)
	for i := range parts {
		parts[i] = int32(i)
	}
	return parts, nil
}

func (s viewSource) read(partition int32, f func(state.Stores) error) error {
	lease, ok := s.set.Acquire(viewTask)
	if !ok {
		return &NotHereError{Store: s.topic, Partition: partition, Reason: NotStarted}
	}
	defer lease.Release()
	return f(partitionOfView{lease.View(), topiccopy.Store(partition)})
}

// partitionOfView finds the store of a partition by whatever name.
type partitionOfView struct {
	state.Stores
	store string
}

func (p partitionOfView) KeyValueBytes(string) (state.KeyValueBytes, error) {
	return p.Stores.KeyValueBytes(p.store)
}

// Run reads the topic until ctx ends; then it closes the view and returns nil. It returns an error if the topic doesn't exist or can't be
// read on. It can be called once.
func (v *View[K, V]) Run(ctx context.Context) (err error) {
	if v.ran.Swap(true) {
		return fmt.Errorf("view of %s: Run was called before: make a new View", v.topic)
	}
	var opened closers
	defer func() {
		v.partitions.Store(0)
		v.set.Close(viewTask)
		if err = errors.Join(err, opened.close()); err != nil {
			err = fmt.Errorf("view of %s: %w", v.topic, err)
		}
	}()
	if err = v.run(ctx, &opened); ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, kgo.ErrClientClosed)) {
		err = nil
	}
	return err
}

func (v *View[K, V]) run(ctx context.Context, opened *closers) error {
	client, err := kgo.NewClient(v.clientOptions()...)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	opened.add(func() error { client.Close(); return nil })
	found, err := topics.Describe(ctx, client, v.topic)
	if err != nil {
		return err
	}
	t, ok := found[v.topic]
	if !ok {
		return errors.New("the topic doesn't exist: create it")
	}
	copied, err := topiccopy.Open(ctx, topiccopy.Config{
		Topic: t, Client: client, Dir: v.dir, State: v.cfg.state, Log: v.cfg.log, Clock: v.cfg.clock, Changed: v.changed, Behind: &v.behind,
	})
	if err != nil {
		return err
	}
	opened.add(copied.Close)
	if err := copied.CatchUp(ctx); err != nil {
		return err
	}
	if err := v.set.Open(viewTask, copied.DB()); err != nil {
		return err
	}
	v.partitions.Store(t.Partitions)
	close(v.ready)
	return copied.Follow(ctx, v.clientOptions())
}

func (v *View[K, V]) clientOptions() []kgo.Opt {
	opts := []kgo.Opt{kgo.ClientID("tributary-view-" + v.topic), kgo.MetadataMinAge(250 * time.Millisecond), kgo.WithLogger(clientLogger{v.cfg.log})}
	if len(v.cfg.brokers) > 0 {
		opts = append(opts, kgo.SeedBrokers(v.cfg.brokers...))
	}
	return append(opts, v.cfg.client...)
}

// changed tells the user of applied records.
func (v *View[K, V]) changed(records []*kgo.Record, catchingUp bool) {
	if v.update == nil {
		return
	}
	for _, r := range records {
		if r.Key == nil {
			continue
		}
		u := Update[K, V]{Timestamp: r.Timestamp.UnixMilli(), Partition: r.Partition, Offset: r.Offset, CatchingUp: catchingUp, Deleted: r.Value == nil}
		u.Key, u.Err = v.query.q.decodeKey(r.Key)
		if !u.Deleted {
			var err error
			u.Value, err = v.query.q.decode(r.Value)
			u.Err = errors.Join(u.Err, err)
		}
		v.update(u)
	}
}
