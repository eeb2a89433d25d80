package fetch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Partition names a partition of a topic.
type Partition struct {
	Topic     string
	Partition int32
}

func (p Partition) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// Batch is what one fetch brought of one partition. The records are the receiver's.
type Batch struct {
	Partition
	Records []*kgo.Record // without control records
	Next    int64         // the position behind everything that the fetch covers
	Stable  int64         // the last stable offset: the end for read_committed
	Start   int64         // where the log begins
	// Err is why the partition can't be read, such as kerr.OffsetOutOfRange. Errors that pass by themselves aren't shown.
	Err error
}

// InputsConfig says how Inputs fetches. Sizes are in bytes.
type InputsConfig struct {
	Client            []kgo.Opt
	MaxBytes          int32         // of one fetch from one broker
	MaxPartitionBytes int32         // of one partition in one fetch
	MaxWait           time.Duration // of a fetch for records; bounds how long a resumed partition waits
	// Ready, if not nil, is called before each poll, and returns when more is wanted, or when its context ends. One fetch of each broker is made
	// meanwhile.
	Ready func(context.Context)
}

// Inputs reads the partitions that are added to it. Its methods may be called from any goroutine.
type Inputs struct {
	client *kgo.Client
	ready  func(context.Context)
	pauses pauses

	mu      sync.Mutex
	cond    *sync.Cond
	polling bool
	changes int                // how many wait
	wake    context.CancelFunc // of the poll under way
	idle    map[Partition]int64
	late    *time.Timer // adds what is idle
}

// idleWait is how long partitions without records wait for others that are added.
const idleWait = 100 * time.Millisecond

// NewInputs makes Inputs without partitions. Close releases it.
func NewInputs(cfg InputsConfig) (*Inputs, error) {
	opts := append([]kgo.Opt{}, cfg.Client...)
	opts = append(opts,
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxBytes(cfg.MaxBytes),
		kgo.FetchMaxPartitionBytes(cfg.MaxPartitionBytes),
		kgo.FetchMaxWait(cfg.MaxWait),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{}),
	)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("fetch client: %w", err)
	}
	in := &Inputs{client: client, ready: cfg.Ready, pauses: pauses{client: client}}
	in.cond = sync.NewCond(&in.mu)
	return in, nil
}

// Close releases the client. Run must have returned.
func (in *Inputs) Close() {
	in.mu.Lock()
	in.takeIdle(nil)
	in.mu.Unlock()
	in.pauses.close()
	in.client.Close()
}

// Run fetches and delivers until ctx ends. deliver must not block for long, and must not call the methods of Inputs but Pause and Resume.
func (in *Inputs) Run(ctx context.Context, deliver func([]Batch)) {
	for ctx.Err() == nil {
		if in.ready != nil {
			in.ready(ctx)
		}
		poll := in.beginPoll(ctx)
		fetches := in.client.PollFetches(poll)
		if batches := collect(fetches); len(batches) > 0 {
			in.pauses.hold()
			deliver(batches)
			in.pauses.release()
		}
		in.endPoll()
	}
}

func (in *Inputs) beginPoll(ctx context.Context) context.Context {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.changes > 0 {
		in.cond.Wait()
	}
	in.polling = true
	poll, cancel := context.WithCancel(ctx)
	in.wake = cancel
	return poll
}

func (in *Inputs) endPoll() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.wake()
	in.polling, in.wake = false, nil
	in.cond.Broadcast()
}

// change runs f while nothing is being polled or delivered.
func (in *Inputs) change(f func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.changes++
	if in.wake != nil {
		in.wake()
	}
	for in.polling {
		in.cond.Wait()
	}
	f()
	in.changes--
	in.cond.Broadcast()
}

// Add starts to read partitions, each from its position.
func (in *Inputs) Add(positions map[Partition]int64) { in.change(func() { in.add(positions) }) }

// AddIdle is Add for partitions that have nothing to read at the moment. They wait for others that are added, though not for long: a broker that is asked
// for them alone holds the fetch for MaxWait, and the client asks it for nothing else meanwhile.
func (in *Inputs) AddIdle(positions map[Partition]int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.idle == nil {
		in.idle = map[Partition]int64{}
		in.late = time.AfterFunc(idleWait, func() { in.Add(nil) })
	}
	maps.Copy(in.idle, positions)
}

// add adds partitions, and those that have waited for them. mu must be held.
func (in *Inputs) add(positions map[Partition]int64) {
	offsets := map[string]map[int32]kgo.Offset{}
	for p, at := range in.takeIdle(positions) {
		if offsets[p.Topic] == nil {
			offsets[p.Topic] = map[int32]kgo.Offset{}
		}
		offsets[p.Topic][p.Partition] = kgo.NewOffset().At(at)
	}
	if len(offsets) > 0 {
		in.client.AddConsumePartitions(offsets)
	}
}

// takeIdle ends the waiting, and gives those who waited with others. mu must be held.
func (in *Inputs) takeIdle(positions map[Partition]int64) map[Partition]int64 {
	if in.idle == nil {
		return positions
	}
	in.late.Stop()
	all := in.idle
	in.idle, in.late = nil, nil
	maps.Copy(all, positions)
	return all
}

// Remove ends the reading of partitions. Nothing of them is delivered after it returns.
func (in *Inputs) Remove(parts ...Partition) {
	in.change(func() {
		for _, p := range parts {
			delete(in.idle, p)
		}
		in.client.RemoveConsumePartitions(byTopic(parts))
		in.pauses.forget(parts) // a pause would outlive the removal
	})
}

// Seek goes on reading from other positions. Nothing from before is delivered after it returns.
func (in *Inputs) Seek(positions map[Partition]int64) {
	var parts []Partition
	for p := range positions {
		parts = append(parts, p)
	}
	in.Remove(parts...)
	in.Add(positions)
}

// Pause stops the fetching of partitions until Resume, soon: those asked for in one delivery together at its end. What was fetched already may
// still be delivered. Of several Pauses and Resumes of a partition the last one counts.
func (in *Inputs) Pause(parts ...Partition) { in.pauses.ask(true, parts) }

// Resume ends a Pause, soon.
func (in *Inputs) Resume(parts ...Partition) { in.pauses.ask(false, parts) }

func byTopic(parts []Partition) map[string][]int32 {
	m := map[string][]int32{}
	for _, p := range parts {
		m[p.Topic] = append(m[p.Topic], p.Partition)
	}
	return m
}

// collect turns fetches into batches.
func collect(fetches kgo.Fetches) []Batch {
	var batches []Batch
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if p.Partition < 0 || errors.Is(p.Err, context.Canceled) || errors.Is(p.Err, kgo.ErrClientClosed) {
			return
		}
		b := Batch{Partition: Partition{p.Topic, p.Partition}, Stable: p.LastStableOffset, Start: p.LogStartOffset, Err: p.Err}
		if n := len(p.Records); n > 0 {
			b.Next = p.Records[n-1].Offset + 1
			b.Records = withoutControl(p.Records)
		}
		if b.Next > 0 || b.Err != nil {
			batches = append(batches, b)
		}
	})
	return batches
}

// withoutControl removes control records in place.
func withoutControl(records []*kgo.Record) []*kgo.Record {
	kept := records[:0]
	for _, r := range records {
		if !r.Attrs.IsControl() {
			kept = append(kept, r)
		}
	}
	return kept
}
