package workload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/bench/internal/input"
	"github.com/tributary-io/tributary/bench/internal/measure"
)

// rawPoll is how many records the loop takes at once.
const rawPoll = 10_000

// RunRaw copies the orders to another topic with the client alone, in transactions of the commit interval with the group's offsets:
// the least that exactly-once costs on this client.
func RunRaw(ctx context.Context, cfg Config) (measure.Result, error) {
	l := &rawLoop{cfg: cfg}
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(cfg.Brokers...), kgo.ConsumeTopics(input.Orders), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumerGroup(cfg.Application), kgo.TransactionalID(cfg.Application), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DefaultProduceTopic(cfg.Out), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(200_000), kgo.FetchMaxPartitionBytes(1<<20))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	defer session.Close()
	l.session = session
	admin := kadm.NewClient(session.Client())
	if err := input.CreateTopic(ctx, admin, cfg.Out); err != nil {
		return nil, err
	}
	w, err := watch(ctx, admin, cfg.Application, input.Orders)
	if err != nil {
		return nil, err
	}
	l.total = w.total
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	r := measure.Result{"what": "franz-go", "w": cfg.Workload, "commits": l.commits}
	r.Add(l.from, measure.Take(), l.n)
	return r, nil
}

type rawLoop struct {
	cfg     Config
	session *kgo.GroupTransactSession
	from    measure.Snapshot
	n       int64
	total   int64
	commits int64
	failed  atomic.Pointer[error]
}

func (l *rawLoop) run(ctx context.Context) error {
	for l.n < l.total {
		fetches := l.session.PollRecords(ctx, rawPoll)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("poll: %w", err)
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		if l.from.At.IsZero() {
			l.from = measure.Take()
		}
		if err := l.transaction(ctx, fetches); err != nil {
			return err
		}
	}
	return nil
}

// transaction copies what comes within the commit interval.
func (l *rawLoop) transaction(ctx context.Context, fetches kgo.Fetches) error {
	began := time.Now()
	if err := l.session.Begin(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for {
		fetches.EachRecord(func(r *kgo.Record) {
			l.n++
			l.session.Produce(ctx, &kgo.Record{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}, l.acknowledged)
		})
		left := l.cfg.Commit - time.Since(began)
		if l.n >= l.total || left <= 0 {
			break
		}
		poll, stop := context.WithTimeout(ctx, left)
		fetches = l.session.PollRecords(poll, rawPoll)
		stop()
	}
	committed, err := l.session.End(ctx, kgo.TryCommit)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if err := l.failed.Load(); err != nil {
		return fmt.Errorf("produce: %w", *err)
	}
	if !committed {
		return errors.New("a transaction was aborted: the group rebalanced")
	}
	l.commits++
	return nil
}

func (l *rawLoop) acknowledged(_ *kgo.Record, err error) {
	if err != nil {
		l.failed.CompareAndSwap(nil, &err)
	}
}
