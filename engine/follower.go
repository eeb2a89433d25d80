package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
)

// follower reads the changelogs of all standbys of the instance on, read_committed, through one client and in a goroutine of its own, and
// applies what it reads: a batch of a store carries the offset that it reaches, as everywhere. Source topics that serve as changelogs are read
// in a second goroutine, as far as the group has committed: what lies behind that the task hasn't processed yet.
type follower struct {
	mu      sync.Mutex
	inputs  *fetch.Inputs // nil until the first standby
	stores  map[fetch.Partition]*copiedStore
	running sync.WaitGroup
	applied atomic.Int64 // records
}

// copiedStore is a store of a standby with the partition that it follows.
type copiedStore struct {
	standby *standby
	store   string
	span    fetch.Span
	source  bool // the topic is the task's input
	keeps   func(*kgo.Record) (bool, error)
	batch   []state.RestoreRecord

	at, end atomic.Int64 // where the copy is, and where the changelog ends as far as known
}

// What one fetch of the follower brings is bounded, so that a standby is soon let go of.
const (
	followBytes          = 8 << 20
	followPartitionBytes = 1 << 20
	followSourcesEvery   = 500 * time.Millisecond
)

// startFollower makes what all standbys share, with the first of them.
func (e *Engine) startFollower() error {
	f := &e.follower
	if f.inputs != nil {
		return nil
	}
	inputs, err := fetch.NewInputs(fetch.InputsConfig{
		Client: e.clientOptions("standby"), MaxBytes: followBytes, MaxPartitionBytes: followPartitionBytes, MaxWait: 250 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	f.inputs, f.stores = inputs, map[fetch.Partition]*copiedStore{}
	f.running.Go(func() { inputs.Run(e.life, e.deliverToStandbys) })
	f.running.Go(func() { e.followSources(e.life) })
	return nil
}

// closeFollower ends the follower. The engine's life has ended.
func (e *Engine) closeFollower() error {
	f := &e.follower
	f.running.Wait()
	if f.inputs != nil {
		f.inputs.Close()
	}
	return nil
}

// beginFollowing lets the follower have a copy that is restored.
func (e *Engine) beginFollowing(s *standby) error {
	stores, err := e.copiedStores(s)
	if err != nil {
		return err
	}
	f := &e.follower
	f.mu.Lock()
	if err := e.startFollower(); err != nil {
		f.mu.Unlock()
		return err
	}
	positions := map[fetch.Partition]int64{}
	for _, c := range stores {
		f.stores[c.span.Partition] = c
		if !c.source {
			positions[c.span.Partition] = c.at.Load()
		}
	}
	f.mu.Unlock()
	s.mu.Lock()
	s.stopped = false
	s.stores.Store(&stores)
	s.mu.Unlock()
	s.following.Store(true)
	s.noteLag(e.cfg.spread.AcceptableLag)
	f.inputs.Add(positions)
	return nil
}

// endFollowing takes a copy back: nothing is applied to it any more when it returns.
func (e *Engine) endFollowing(s *standby) {
	s.mu.Lock() // a batch that is being applied is the last one
	s.stopped = true
	stores := *s.stores.Load()
	s.mu.Unlock()
	s.following.Store(false)
	s.warm.Store(false)
	f := &e.follower
	var parts []fetch.Partition
	f.mu.Lock()
	for _, c := range stores {
		delete(f.stores, c.span.Partition)
		if !c.source {
			parts = append(parts, c.span.Partition)
		}
	}
	f.mu.Unlock()
	f.inputs.Remove(parts...)
}

// copiedStores lists what of a standby is to be followed.
func (e *Engine) copiedStores(s *standby) ([]*copiedStore, error) {
	var all []*copiedStore
	for _, spec := range s.r.db.Stores() {
		st := e.plan.Stores[spec.Name]
		if st.Changelog == "" {
			continue
		}
		p := fetch.Partition{Topic: st.Changelog, Partition: s.r.spec.id.Partition}
		at, _ := s.r.db.Offset(spec.Name)
		c := &copiedStore{standby: s, store: spec.Name, source: st.SourceAsChangelog, span: fetch.Span{Partition: p, ID: e.catalog().id(p.Topic)}}
		c.at.Store(at)
		c.end.Store(at)
		keeps, err := e.judge(s.r, restoreSpan{spec.Name, c.span})
		if err != nil {
			return nil, err
		}
		c.keeps = keeps
		all = append(all, c)
	}
	return all, nil
}

// deliverToStandbys applies what was fetched.
func (e *Engine) deliverToStandbys(batches []fetch.Batch) {
	for i := range batches {
		b := &batches[i]
		e.follower.mu.Lock()
		c := e.follower.stores[b.Partition]
		e.follower.mu.Unlock()
		switch {
		case c == nil:
		case b.Err == nil:
			c.end.Store(max(c.end.Load(), b.Stable))
			e.applyToStandby(c, b.Records, b.Next)
		case fetch.IsOutOfRange(b.Err) || fetch.NeedsAPerson(b.Err):
			c.standby.fail(fmt.Errorf("%s: %w", b.Partition, b.Err))
		default:
			e.log.Warn("a standby's changelog can't be read at the moment", "partition", b.Partition.String(), "error", b.Err)
		}
	}
}

// applyToStandby puts records into a copy, unless it is just being let go of.
func (e *Engine) applyToStandby(c *copiedStore, records []*kgo.Record, next int64) {
	s := c.standby
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || next <= c.at.Load() {
		return
	}
	var err error
	if c.batch, _, err = restoreRecords(c.batch, records, c.keeps); err == nil {
		err = s.r.db.Restore(c.store, c.batch, next)
	}
	clear(c.batch) // the records are not kept
	if err != nil {
		s.stopped = true
		s.fail(fmt.Errorf("store %s: %w", c.store, err))
		return
	}
	c.at.Store(next)
	c.end.Store(max(c.end.Load(), next))
	e.follower.applied.Add(int64(len(records)))
	s.noteLag(e.cfg.spread.AcceptableLag)
}

// fail has the copy opened anew.
func (s *standby) fail(err error) {
	select {
	case s.failed <- err:
	default: // failed already
	}
}

// followSources reads source topics that serve as changelogs, as far as the group has committed, until ctx ends.
func (e *Engine) followSources(ctx context.Context) {
	for sleep(ctx, followSourcesEvery) == nil {
		sources := e.followedSources()
		if len(sources) == 0 {
			continue
		}
		if err := e.followSourcesOnce(ctx, sources); err != nil && ctx.Err() == nil {
			e.log.Warn("the committed offsets that standbys follow can't be read at the moment", "error", err)
		}
	}
}

func (e *Engine) followedSources() (all []*copiedStore) {
	e.follower.mu.Lock()
	defer e.follower.mu.Unlock()
	for _, c := range e.follower.stores {
		if c.source {
			all = append(all, c)
		}
	}
	return all
}

func (e *Engine) followSourcesOnce(ctx context.Context, sources []*copiedStore) error {
	parts := make([]offsets.Partition, len(sources))
	for i, c := range sources {
		parts[i] = offsets.Partition{Topic: c.span.Topic, ID: c.span.ID, Partition: c.span.Partition.Partition}
	}
	found, err := offsets.FetchDecided(ctx, e.control, e.group(), parts)
	if err != nil {
		return err
	}
	for i, c := range sources {
		span := c.span
		span.From, span.To = c.at.Load(), found[i].Offset
		c.end.Store(max(c.end.Load(), span.To))
		cfg := fetch.ReadConfig{MaxBytes: followPartitionBytes, MaxWait: 100 * time.Millisecond}
		err := fetch.Read(ctx, e.restoreClient, cfg, span, func(records []*kgo.Record, next int64) error {
			e.applyToStandby(c, records, next)
			if c.standby.isStopped() {
				return errLetGo
			}
			return nil
		})
		if err != nil && ctx.Err() == nil && !errors.Is(err, errLetGo) {
			c.standby.fail(err)
		}
	}
	return nil
}

var errLetGo = errors.New("the standby is let go of")

func (s *standby) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// decidedStarts are the committed offsets of a runner's inputs that serve as changelogs.
func (e *Engine) decidedStarts(ctx context.Context, r *runner) (map[task.TopicPartition]start, error) {
	var parts []offsets.Partition
	for _, spec := range e.storeSpecs(r.spec) {
		if st := e.plan.Stores[spec.Name]; st.SourceAsChangelog {
			parts = append(parts, offsets.Partition{Topic: st.Changelog, ID: e.catalog().id(st.Changelog), Partition: r.spec.id.Partition})
		}
	}
	found, err := offsets.FetchDecided(ctx, e.control, e.group(), parts)
	if err != nil {
		return nil, err
	}
	committed := map[task.TopicPartition]start{}
	for _, p := range found {
		committed[task.TopicPartition{Topic: p.Topic, Partition: p.Partition.Partition}] = start{offset: p.Offset}
	}
	return committed, nil
}
