package topiccopy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Config says what is copied, and where to.
type Config struct {
	Topic  topics.Topic
	Client *kgo.Client
	Dir    string // "": in memory. It belongs to the copy alone.
	State  state.ResourceOptions
	Log    *slog.Logger
	Clock  func() time.Time
	// Changed is called with records once they are applied; they are valid for the call. catchingUp says that they are from before the copy had caught up.
	Changed func(records []*kgo.Record, catchingUp bool)
	Behind  *atomic.Int64 // gets how many offsets are still to be read while the copy catches up
}

// Copy is a copy of a topic. It belongs to one goroutine; what reads the database may be others'.
type Copy struct {
	cfg       Config
	lock      *filelock.Lock
	resources *state.Resources
	db        *state.DB
	batch     []state.RestoreRecord
}

// Open opens the database. On disk it is in a directory that is named after the topic's id, since a topic that was made anew under the
// same name is another one; what belonged to others, or can't be used, is removed: the topic has it all.
func Open(ctx context.Context, cfg Config) (*Copy, error) {
	c := &Copy{cfg: cfg}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// DB has a store for each partition, as Store names it.
func (c *Copy) DB() *state.DB { return c.db }

// Store is the name of the store of a partition.
func Store(partition int32) string { return fmt.Sprint("partition-", partition) }

// Close closes what Open has opened. Nothing may read the database any more.
func (c *Copy) Close() error {
	var errs []error
	if c.db != nil {
		errs = append(errs, c.db.Close())
	}
	if c.resources != nil {
		errs = append(errs, c.resources.Close())
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Release())
	}
	return errors.Join(errs...)
}

func (c *Copy) specs() []state.Spec {
	specs := make([]state.Spec, c.cfg.Topic.Partitions)
	for i := range specs {
		specs[i] = state.Spec{Name: Store(int32(i)), Kind: state.TimestampedKeyValue, SourceTopic: c.cfg.Topic.Name}
	}
	return specs
}

func (c *Copy) open(ctx context.Context) (err error) {
	dir := c.cfg.Dir
	if dir == "" {
		c.db, err = state.OpenMemory(c.specs(), state.Options{Log: c.cfg.Log})
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if c.lock, err = filelock.TryLock(filepath.Join(dir, "view.lock")); err != nil {
		return fmt.Errorf("directory %s: %w; a view needs a directory of its own", dir, err)
	}
	c.resources = state.NewResources(c.cfg.State)
	name := fmt.Sprintf("topic-%x-%d", c.cfg.Topic.ID, c.cfg.Topic.Partitions)
	if err := removeOthers(dir, name); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	open := func() error {
		c.db, err = state.OpenPebble(path, c.specs(), c.resources, state.Options{Log: c.cfg.Log})
		return err
	}
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
	c.cfg.Log.Warn("the view's copy doesn't fit its topic any more and is read anew", "directory", path)
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

func (c *Copy) parts() []fetch.Partition {
	parts := make([]fetch.Partition, c.cfg.Topic.Partitions)
	for i := range parts {
		parts[i] = fetch.Partition{Topic: c.cfg.Topic.Name, Partition: int32(i)}
	}
	return parts
}

// stale tells whether the log no longer has what comes next: what was deleted meanwhile can't be told, so all is to be read anew.
func (c *Copy) stale(ctx context.Context) (bool, error) {
	first, err := fetch.Bounds(ctx, c.cfg.Client, fetch.Start, c.parts())
	if err != nil {
		return false, err
	}
	ends, err := fetch.Bounds(ctx, c.cfg.Client, fetch.High, c.parts())
	if err != nil {
		return false, err
	}
	for _, p := range c.parts() {
		if at, ok := c.db.Offset(Store(p.Partition)); ok && (at < first[p] || at > ends[p]) {
			return true, nil
		}
	}
	return false, nil
}

// batchBytes bounds what is fetched and put into a store at once, in bytes as they are sent.
const batchBytes = 256 << 10

// CatchUp reads each partition from where the copy is to where its end was when it was asked for.
func (c *Copy) CatchUp(ctx context.Context) error {
	first, err := fetch.Bounds(ctx, c.cfg.Client, fetch.Start, c.parts())
	if err != nil {
		return err
	}
	ends, err := fetch.Bounds(ctx, c.cfg.Client, fetch.Stable, c.parts())
	if err != nil {
		return err
	}
	var spans []fetch.Span
	for _, p := range c.parts() {
		from, ok := c.db.Offset(Store(p.Partition))
		if !ok {
			from = first[p]
		}
		spans = append(spans, fetch.Span{Partition: p, ID: c.cfg.Topic.ID, From: from, To: max(from, ends[p])})
		c.cfg.Behind.Add(max(0, ends[p]-from))
	}
	began, records := c.cfg.Clock(), 0
	for _, span := range spans {
		n, err := c.catchUpPartition(ctx, span)
		if err != nil {
			return err
		}
		records += n
	}
	c.cfg.Behind.Store(0)
	c.cfg.Log.Info("the view has caught up", "records", records, "took", c.cfg.Clock().Sub(began).Round(time.Millisecond))
	return nil
}

func (c *Copy) catchUpPartition(ctx context.Context, span fetch.Span) (n int, err error) {
	store := Store(span.Partition.Partition)
	if err := c.db.BeginRestore(store); err != nil {
		return 0, err
	}
	at := span.From
	cfg := fetch.ReadConfig{MaxBytes: batchBytes, MaxWait: 100 * time.Millisecond}
	err = fetch.Read(ctx, c.cfg.Client, cfg, span, func(records []*kgo.Record, next int64) error {
		n += len(records)
		c.cfg.Behind.Add(at - next)
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
func (c *Copy) apply(partition int32, records []*kgo.Record, next int64, catchingUp bool) error {
	c.batch = c.batch[:0]
	for _, r := range records {
		if r.Key != nil {
			c.batch = append(c.batch, state.RestoreRecord{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp.UnixMilli()})
		}
	}
	if err := c.db.Restore(Store(partition), c.batch, next); err != nil {
		return err
	}
	c.cfg.Changed(records, catchingUp)
	return nil
}

// Follow reads on until ctx ends, through a client of its own that it makes of these options.
func (c *Copy) Follow(ctx context.Context, client []kgo.Opt) error {
	inputs, err := fetch.NewInputs(fetch.InputsConfig{Client: client, MaxBytes: 16 << 20, MaxPartitionBytes: 1 << 20, MaxWait: 250 * time.Millisecond})
	if err != nil {
		return err
	}
	defer inputs.Close()
	positions := map[fetch.Partition]int64{}
	for _, p := range c.parts() {
		positions[p], _ = c.db.Offset(Store(p.Partition))
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

func (c *Copy) take(b *fetch.Batch) error {
	if b.Err == nil {
		return c.apply(b.Partition.Partition, b.Records, b.Next, false)
	}
	if fetch.IsOutOfRange(b.Err) {
		return fmt.Errorf("%s can't be read on: its log no longer has the offset that comes next (retention was faster than this view): %w; run a new View, which reads the topic anew", b.Partition, b.Err)
	}
	if fetch.NeedsAPerson(b.Err) {
		return fmt.Errorf("%s can't be read: %w", b.Partition, b.Err)
	}
	c.cfg.Log.Warn("a partition can't be read at the moment", "partition", b.Partition.String(), "error", b.Err)
	return nil
}
