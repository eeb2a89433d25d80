package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
	"github.com/lovoo/goka/storage"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/bench/internal/input"
	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/gokacompat"
	"github.com/tributary-io/tributary/topology"
)

// gokaGroup is a workload as a goka group. seen is called for each record.
func gokaGroup(workload, application, out string, seen func()) (*goka.GroupGraph, error) {
	orders, results := goka.Stream(input.Orders), goka.Stream(out)
	count := func(ctx goka.Context) {
		n, _ := ctx.Value().(int64)
		ctx.SetValue(n + 1)
	}
	edges := map[string][]goka.Edge{
		"a": {goka.Input(orders, new(codec.Bytes), func(ctx goka.Context, m any) {
			seen()
			ctx.Emit(results, ctx.Key(), m)
		}), goka.Output(results, new(codec.Bytes))},
		"d": {goka.Input(orders, new(codec.Bytes), func(ctx goka.Context, m any) {
			seen()
			count(ctx)
		}), goka.Persist(new(codec.Int64))},
		"i": {goka.Input(orders, new(codec.Bytes), func(ctx goka.Context, m any) {
			seen()
			count(ctx)
			ctx.Emit(results, ctx.Key(), m)
		}), goka.Output(results, new(codec.Bytes)), goka.Persist(new(codec.Int64))},
	}[workload]
	if edges == nil {
		return nil, fmt.Errorf("workload %q is no goka group", workload)
	}
	return goka.DefineGroup(goka.Group(application), edges...), nil
}

// buildGroup is a goka group as an application of ours.
func buildGroup(workload, application, out string) (*topology.Plan, error) {
	group, err := gokaGroup(workload, application, out, func() {})
	if err != nil {
		return nil, err
	}
	app, err := gokacompat.New(group, gokacompat.StartAt(topology.Earliest), gokacompat.PartitionBy(gokacompat.KafkaPartition))
	if err != nil {
		return nil, err
	}
	return app.Plan()
}

// RunGoka runs a workload on goka itself, which counts records at least once, with its default settings but for compression and the storage's
// place, until its input is processed and committed.
func RunGoka(ctx context.Context, cfg Config) (measure.Result, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if err := input.CreateTopic(ctx, admin, cfg.Out); err != nil {
		return nil, err
	}
	w, err := watch(ctx, admin, cfg.Application, input.Orders)
	if err != nil {
		return nil, err
	}
	r := &gokaRun{cfg: cfg, watcher: w}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	result := measure.Result{"what": "goka", "w": cfg.Workload}
	result.Add(*r.from.Load(), measure.Take(), r.n.Load())
	return result, nil
}

type gokaRun struct {
	cfg     Config
	watcher *watcher
	n       atomic.Int64
	from    atomic.Pointer[measure.Snapshot]
}

func (r *gokaRun) processor() (*goka.Processor, error) {
	cfg := goka.DefaultConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Producer.Compression = sarama.CompressionNone
	goka.ReplaceGlobalConfig(cfg)
	group, err := gokaGroup(r.cfg.Workload, r.cfg.Application, r.cfg.Out, func() {
		if r.n.Add(1) == 1 {
			s := measure.Take()
			r.from.Store(&s)
		}
	})
	if err != nil {
		return nil, err
	}
	topics := goka.NewTopicManagerConfig()
	topics.Table.Replication, topics.Stream.Replication = 1, 1
	return goka.NewProcessor(r.cfg.Brokers, group,
		goka.WithLogger(log.New(io.Discard, "", 0)),
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithTopicManagerConfig(topics)),
		goka.WithStorageBuilder(storage.DefaultBuilder(r.cfg.StateDir)))
}

func (r *gokaRun) run(ctx context.Context) error {
	if err := os.MkdirAll(r.cfg.StateDir, 0o755); err != nil {
		return err
	}
	p, err := r.processor()
	if err != nil {
		return fmt.Errorf("goka processor: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for {
		select {
		case err := <-ended:
			return errors.Join(errors.New("goka's processor ended early"), err)
		case <-time.After(pollEvery):
		}
		if r.n.Load() < r.watcher.total {
			continue
		}
		if done, err := r.watcher.done(ctx); done || err != nil {
			return err // the process ends: what closing costs isn't asked
		}
	}
}
