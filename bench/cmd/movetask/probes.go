package main

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// probes sends records through the task all the time, and watches when their results can be read, committed.
type probes struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	last time.Time
	gap  time.Duration
}

func startProbes(ctx context.Context, brokers []string, every time.Duration) (*probes, error) {
	in, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	out, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(outTopic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		in.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &probes{cancel: cancel}
	p.running.Go(func() {
		defer in.Close()
		for sleep(ctx, every) == nil {
			in.Produce(ctx, &kgo.Record{Topic: inTopic, Key: []byte(probeKey), Value: []byte(time.Now().String())}, nil)
		}
	})
	p.running.Go(func() {
		defer out.Close()
		for ctx.Err() == nil {
			if fs := out.PollFetches(ctx); fs.NumRecords() > 0 {
				p.seen(time.Now())
			}
		}
	})
	return p, nil
}

func (p *probes) seen(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() {
		p.gap = max(p.gap, now.Sub(p.last))
	}
	p.last = now
}

// reset forgets the longest time so far.
func (p *probes) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gap = 0
}

// longest is the longest time without results since reset.
func (p *probes) longest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.gap, time.Since(p.last))
}

func (p *probes) stop() {
	p.cancel()
	p.running.Wait()
}
