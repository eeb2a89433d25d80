package differential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/topology/topologytest"
	"github.com/tributary-io/tributary/topology/topologytest/golden"
)

// wallStart is the wall clock's start, in the harness and on the engine. It moves by the scenario's steps only: what depends on it must not
// depend on how long a run takes.
var wallStart = time.UnixMilli(0).UTC()

// stepLimit is how long one record may take through a topology; a busy machine needs some of it.
const stepLimit = 4 * time.Minute

// OnCluster runs a scenario by an engine on the cluster. dir is for its state.
func OnCluster(ctx context.Context, s *Scenario, brokers []string, dir string) (_ Outputs, err error) {
	p, err := s.prepare()
	if err != nil {
		return nil, err
	}
	r, err := newRun(s, p, brokers)
	if err != nil {
		return nil, err
	}
	defer r.client.Close()
	if err := r.createTopics(ctx); err != nil {
		return nil, err
	}
	e, err := engine.New(p.Plan, engine.Brokers(brokers...), engine.StateDir(dir), engine.ErrorHandlers(p.Handlers), engine.ReplicationFactor(1),
		engine.CommitInterval(10*time.Millisecond), engine.Clock(r.now), engine.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(running) }()
	fed := make(chan error, 1)
	go func() { fed <- r.feed(running, e) }()
	select {
	case err = <-ended:
		stop()
		return nil, errors.Join(fmt.Errorf("the engine has ended: %w", err), <-fed)
	case err = <-fed:
		stop()
		if err = errors.Join(err, <-ended); err != nil {
			return nil, err
		}
	}
	return r.read(ctx)
}

// clusterRun is one run of a scenario on a cluster.
type clusterRun struct {
	p       *golden.Prepared
	client  *kgo.Client
	admin   *kadm.Client
	brokers []string

	topics []string // that the scenario names: inputs and outputs
	group  []string // topics that the engine's group reads, internal ones among them
	global []string // topics of global tables
	piped  map[place]bool

	moved atomic.Int64 // by how much the steps have moved the clock, ns
}

func (r *clusterRun) now() time.Time { return wallStart.Add(time.Duration(r.moved.Load())) }

// place is where a record is that the run has sent. All topics have one partition.
type place struct {
	topic  string
	offset int64
}

func newRun(s *Scenario, p *golden.Prepared, brokers []string) (*clusterRun, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1))
	if err != nil {
		return nil, err
	}
	r := &clusterRun{p: p, client: client, admin: kadm.NewClient(client), brokers: brokers, piped: map[place]bool{}}
	internal := p.Plan.Internal()
	for _, sub := range internal.Subtopologies {
		r.group = append(r.group, sub.SourceTopics...)
	}
	for _, sub := range internal.Globals {
		r.global = append(r.global, sub.SourceTopics...)
	}
	for topic := range p.Topics() {
		r.topics = append(r.topics, topic)
	}
	return r, nil
}

func (r *clusterRun) createTopics(ctx context.Context) error {
	forever := "-1" // the scenarios' records are of 1970, which brokers would remove
	made, err := r.admin.CreateTopics(ctx, 1, 1, map[string]*string{"retention.ms": &forever}, r.topics...)
	if err != nil {
		return err
	}
	return made.Error()
}

// feed goes through the steps; a record is sent when the one before it has gone through the whole topology.
func (r *clusterRun) feed(ctx context.Context, e *engine.Engine) error {
	if err := r.settle(ctx, e, "the start"); err != nil {
		return err
	}
	for i, step := range r.p.Steps {
		if step.Advance != 0 {
			r.moved.Add(int64(step.Advance))
			continue
		}
		rec := step.Record
		k := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value, Timestamp: time.UnixMilli(rec.Timestamp)}
		for _, h := range rec.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		if err := r.client.ProduceSync(ctx, k).FirstErr(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		r.piped[place{rec.Topic, k.Offset}] = true
		if err := r.settle(ctx, e, fmt.Sprintf("the record of step %d", i)); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the engine has read and committed everything.
func (r *clusterRun) settle(ctx context.Context, e *engine.Engine, what string) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	for {
		behind, err := r.behind(ctx, e)
		if err == nil && behind == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s has not gone through the topology: %s: %w", what, behind, errors.Join(ctx.Err(), err))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// behind names an input that isn't read to its end, "" if there is none. What a transaction has written is in the topic's end before the
// input's offset is committed, so a record between two sub-topologies isn't overlooked.
func (r *clusterRun) behind(ctx context.Context, e *engine.Engine) (string, error) {
	committed, err := r.admin.FetchOffsets(ctx, r.p.Plan.Internal().ApplicationID)
	if err != nil {
		return "", err
	}
	ends, err := r.admin.ListEndOffsets(ctx, append(slices.Clone(r.group), r.global...)...)
	if err != nil {
		return "", err
	}
	for _, topic := range r.group {
		end, there := ends.Lookup(topic, 0)
		at, known := committed.Lookup(topic, 0)
		if !there || end.Err != nil || !known && end.Offset > 0 || known && at.At != end.Offset {
			return fmt.Sprintf("%s is read to %d of %d", topic, at.At, end.Offset), nil
		}
	}
	if e.Stats().State != engine.Running {
		return "the engine is " + e.Stats().State.String(), nil
	}
	for _, t := range e.Stats().Tasks {
		if t.Name == "global" && t.StateBytes > 0 {
			return "a global table has updates that can't be seen yet", nil
		}
		for _, in := range t.Inputs {
			if end, ok := ends.Lookup(in.Topic, 0); slices.Contains(r.global, in.Topic) && ok && in.Position != end.Offset {
				return fmt.Sprintf("global table %s is read to %d of %d", in.Topic, in.Position, end.Offset), nil
			}
		}
	}
	return "", nil
}

// read reads what the topology has written to the topics that the scenario names.
func (r *clusterRun) read(ctx context.Context) (Outputs, error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	ends, err := r.admin.ListEndOffsets(ctx, r.topics...)
	if err != nil {
		return nil, err
	}
	left := map[string]int64{}
	from := map[string]map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Topic] = o.Offset
			from[o.Topic] = map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}
		}
	})
	out := Outputs{}
	if len(left) == 0 {
		return out, nil
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	for len(left) > 0 {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(k *kgo.Record) {
			if k.Offset+1 >= left[k.Topic] {
				delete(left, k.Topic)
			}
			if !k.Attrs.IsControl() && !r.piped[place{k.Topic, k.Offset}] {
				out[k.Topic] = append(out[k.Topic], recordOf(k))
			}
		})
	}
	return out, nil
}

func recordOf(k *kgo.Record) topologytest.Record {
	rec := topologytest.Record{Topic: k.Topic, Timestamp: k.Timestamp.UnixMilli(), Key: k.Key, Value: k.Value}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, processors.Header{Key: h.Key, Value: h.Value})
	}
	return rec
}
