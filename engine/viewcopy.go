package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/internal/filelock"
	"github.com/tributary-io/tributary/state"
)

// viewCopy is a view without its types: the database and how it is filled. It belongs to Run's goroutine.
type viewCopy struct {
	topic   topics.Topic
	cfg     config
	client  *kgo.Client
	db      *state.DB
	changed func(records []*kgo.Record, catchingUp bool)
	behind  *atomic.Int64
	batch   []state.RestoreRecord
}

func (c *viewCopy) specs() []state.Spec {
	specs := make([]state.Spec, c.topic.Partitions)
	for i := range specs {
		specs[i] = state.Spec{Name: partitionStore(int32(i)), Kind: state.TimestampedKeyValue, SourceTopic: c.topic.Name}
	}
	return specs
}

// open opens the database. On disk it is in a directory that is named after the topic's id, since a topic that was made anew under the
// same name is another one; what belonged to others, or can't be used, is removed: the topic has it all.
func (c *viewCopy) open(ctx context.Context, dir string, opened *closers) (err error) {
	if dir == "" {
		if c.db, err = state.OpenMemory(c.specs(), state.Options{Log: c.cfg.log}); err == nil {
			opened.add(func() error { return c.db.Close() })
		}
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	lock, err := filelock.TryLock(filepath.Join(dir, "view.lock"))
	if err != nil {
		return fmt.Errorf("directory %s: %w; a view needs a directory of its own", dir, err)
	}
	opened.add(lock.Release)
	resources := state.NewResources(c.cfg.state)
	opened.add(resources.Close)
	name := fmt.Sprintf("topic-%x-%d", c.topic.ID, c.topic.Partitions)
	if err := removeOthers(dir, name); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	open := func() error {
		c.db, err = state.OpenPebble(path, c.specs(), resources, state.Options{Log: c.cfg.log})
		return err
	}
	opened.add(func() error {
		if c.db == nil {
			return nil
		}
		return c.db.Close()
	})
	if err := open(); err == nil {
		stale, err := c.stale(ctx)
		if err != nil || !stale {
			return err
		}
		if err := c.db.Close(); err != nil {
			return err
		}
		c.db = nil
	} else if !errors.Is(err, state.ErrCorruption) && !errors.Is(err, state.ErrIncompatible) {
		return err
	}
	c.cfg.log.Warn("the view's copy doesn't fit its topic any more and is read anew", "directory", path)
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove the view's copy: %w", err)
	}
	return open()
}

// removeOthers removes copies of topics that were there before under the same name.
func removeOthers(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "topic-") && e.Name() != name {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("remove the copy of a former topic: %w", err)
			}
		}
	}
	return nil
}

func (c *viewCopy) parts() []fetch.Partition {
	parts := make([]fetch.Partition, c.topic.Partitions)
	for i := range parts {
		parts[i] = fetch.Partition{Topic: c.topic.Name, Partition: int32(i)}
	}
	return parts
}

// stale tells whether the log no longer has what comes next: what was deleted meanwhile can't be told, so all is to be read anew.
func (c *viewCopy) stale(ctx context.Context) (bool, error) {
	first, err := fetch.Bounds(ctx, c.client, fetch.Start, c.parts())
	if err != nil {
		return false, err
	}
	ends, err := fetch.Bounds(ctx, c.client, fetch.High, c.parts())
	if err != nil {
		return false, err
	}
	for _, p := range c.parts() {
		if at, ok := c.db.Offset(partitionStore(p.Partition)); ok && (at < first[p] || at > ends[p]) {
			return true, nil
		}
	}
	return false, nil
}

// catchUp reads each partition from where the copy is to where its end was when it was asked for.
func (c *viewCopy) catchUp(ctx context.Context) error {
	first, err := fetch.Bounds(ctx, c.client, fetch.Start, c.parts())
	if err != nil {
		return err
	}
	ends, err := fetch.Bounds(ctx, c.client, fetch.Stable, c.parts())
	if err != nil {
		return err
	}
	var spans []fetch.Span
	for _, p := range c.parts() {
		from, ok := c.db.Offset(partitionStore(p.Partition))
		if !ok {
			from = first[p]
		}
		spans = append(spans, fetch.Span{Partition: p, ID: c.topic.ID, From: from, To: max(from, ends[p])})
		c.behind.Add(max(0, ends[p]-from))
	}
	began, records := c.cfg.clock(), 0
	for _, span := range spans {
		n, err := c.catchUpPartition(ctx, span)
		if err != nil {
			return err
		}
		records += n
	}
	c.behind.Store(0)
	c.cfg.log.Info("the view has caught up", "records", records, "took", c.cfg.clock().Sub(began).Round(time.Millisecond))
	return nil
}

func (c *viewCopy) catchUpPartition(ctx context.Context, span fetch.Span) (n int, err error) {
	store := partitionStore(span.Partition.Partition)
	if err := c.db.BeginRestore(store); err != nil {
		return 0, err
	}
	at := span.From
	cfg := fetch.ReadConfig{MaxBytes: restoreBatch, MaxWait: 100 * time.Millisecond}
	err = fetch.Read(ctx, c.client, cfg, span, func(records []*kgo.Record, next int64) error {
		n += len(records)
		c.behind.Add(at - next)
		at = next
		return c.apply(span.Partition.Partition, records, next, true)
	})
	if err = errors.Join(err, c.db.EndRestore(store)); err != nil {
		return n, err
	}
	if _, ok := c.db.Offset(store); !ok { // nothing to read, but the store has to know where it is
		return n, c.db.Restore(store, nil, span.To)
	}
	return n, nil
}

// apply puts records into the copy. Those without a key are in no table.
func (c *viewCopy) apply(partition int32, records []*kgo.Record, next int64, catchingUp bool) error {
	c.batch = c.batch[:0]
	for _, r := range records {
		if r.Key != nil {
			c.batch = append(c.batch, state.RestoreRecord{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp.UnixMilli()})
		}
	}
	if err := c.db.Restore(partitionStore(partition), c.batch, next); err != nil {
		return err
	}
	c.changed(records, catchingUp)
	return nil
}

// follow reads on until ctx ends.
func (c *viewCopy) follow(ctx context.Context, client []kgo.Opt) error {
	inputs, err := fetch.NewInputs(fetch.InputsConfig{Client: client, MaxBytes: 16 << 20, MaxPartitionBytes: 1 << 20, MaxWait: 250 * time.Millisecond})
	if err != nil {
		return err
	}
	defer inputs.Close()
	positions := map[fetch.Partition]int64{}
	for _, p := range c.parts() {
		positions[p], _ = c.db.Offset(partitionStore(p.Partition))
	}
	inputs.Add(positions)
	reading, end := context.WithCancel(ctx)
	defer end()
	var failure error
	inputs.Run(reading, func(batches []fetch.Batch) {
		for i := range batches {
			if failure == nil {
				failure = c.take(&batches[i])
			}
		}
		if failure != nil {
			end()
		}
	})
	return failure
}

func (c *viewCopy) take(b *fetch.Batch) error {
	if b.Err == nil {
		return c.apply(b.Partition.Partition, b.Records, b.Next, false)
	}
	if isOutOfRange(b.Err) {
		return fmt.Errorf("%s can't be read on: its log no longer has the offset that comes next (retention was faster than this view): %w; run a new View, which reads the topic anew", b.Partition, b.Err)
	}
	if needsAPerson(b.Err) {
		return fmt.Errorf("%s can't be read: %w", b.Partition, b.Err)
	}
	c.cfg.log.Warn("a partition can't be read at the moment", "partition", b.Partition.String(), "error", b.Err)
	return nil
}
