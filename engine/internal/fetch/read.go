package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Span is a part of a partition's log: offsets From (inclusive) to To (exclusive).
type Span struct {
	Partition
	ID       [16]byte // of the topic
	From, To int64
}

// OutOfRangeError says that the log no longer has, or doesn't have yet, the offset to read from.
type OutOfRangeError struct {
	Partition  Partition
	Offset     int64
	Start, End int64 // of the log
}

func (e *OutOfRangeError) Error() string {
	return fmt.Sprintf("%s: offset %d is outside of the log, which has %d to %d", e.Partition, e.Offset, e.Start, e.End)
}

// ReadConfig says how Read fetches.
type ReadConfig struct {
	MaxBytes int32         // of one fetch
	MaxWait  time.Duration // of one fetch where there is nothing yet
}

// retryPause is the time between attempts while a partition has no leader, or its leader can't be reached.
const retryPause = 100 * time.Millisecond

// chunk is what one fetch brought.
type chunk struct {
	records []*kgo.Record
	next    int64
	err     error
}

// Read reads a span in order and calls apply with what each fetch brought: the records, and the position behind all that it covers. It
// returns once the position has reached span.To, so a span that ends in markers or aborted records ends as well. One fetch is made
// ahead while apply runs. Failures of brokers are tried again until ctx ends; apply's errors and *OutOfRangeError end it at once.
//
// The records are apply's until it returns, then their memory is used for others. The bytes of their keys, values and headers aren't used again.
func Read(ctx context.Context, client *kgo.Client, cfg ReadConfig, span Span, apply func(records []*kgo.Record, next int64) error) error {
	if span.From >= span.To {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks, applied := make(chan chunk), make(chan struct{}, 1)
	go func() {
		defer close(chunks)
		r := reader{client: client, cfg: cfg, span: span, leader: -1, applied: applied}
		r.run(ctx, chunks)
	}()
	defer func() {
		cancel()
		for range chunks { // let the reader end
		}
	}()
	for c := range chunks {
		if c.err != nil {
			return c.err
		}
		if err := apply(c.records, c.next); err != nil {
			return err
		}
		applied <- struct{}{}
	}
	return ctx.Err()
}

// reader fetches a span, one request at a time.
type reader struct {
	client  *kgo.Client
	cfg     ReadConfig
	span    Span
	leader  int32           // -1: unknown
	applied <-chan struct{} // says for each chunk that it was applied
	memory  recordMemory
	lent    bool // the memory, to a chunk that may not have been applied
}

func (r *reader) run(ctx context.Context, chunks chan<- chunk) {
	for r.span.From < r.span.To && ctx.Err() == nil {
		c := r.fetch(ctx)
		var outside *OutOfRangeError
		if c.err != nil && !errors.As(c.err, &outside) && !permanent(c.err) {
			r.leader = -1
			pause(ctx)
			continue
		}
		if c.err == nil && c.next == r.span.From {
			continue // nothing yet: an open transaction holds the rest back
		}
		r.span.From = c.next
		select {
		case chunks <- c:
			r.lent = true
		case <-ctx.Done():
			return
		}
		if c.err != nil {
			return
		}
	}
}

func permanent(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, kgo.ErrClientClosed)
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retryPause):
	}
}

// fetch asks the leader for what comes next.
func (r *reader) fetch(ctx context.Context) chunk {
	if r.leader < 0 {
		leader, err := leaderOf(ctx, r.client, r.span.Partition)
		if err != nil {
			return chunk{err: err}
		}
		r.leader = leader
	}
	resp, err := r.client.Broker(int(r.leader)).Request(ctx, r.request())
	if err != nil {
		return chunk{err: err}
	}
	fetched := resp.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(fetched.ErrorCode); err != nil {
		return chunk{err: err}
	}
	if len(fetched.Topics) != 1 || len(fetched.Topics[0].Partitions) != 1 {
		return chunk{err: errors.New("the fetch's answer lacks the partition")}
	}
	p := &fetched.Topics[0].Partitions[0]
	if errors.Is(kerr.ErrorForCode(p.ErrorCode), kerr.OffsetOutOfRange) {
		return chunk{err: r.outside(ctx)}
	}
	if err := r.takeMemory(ctx); err != nil {
		return chunk{err: err}
	}
	return r.decode(p)
}

// takeMemory waits until nobody reads the records of the chunk before. Decoding beside apply would need the memory twice, and several stores are
// restored at a time.
func (r *reader) takeMemory(ctx context.Context) error {
	if r.lent {
		select {
		case <-r.applied:
			r.lent = false
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.memory.reset()
	return nil
}

// outside looks the log's bounds up: the answer of a fetch out of range doesn't tell them.
func (r *reader) outside(ctx context.Context) error {
	at := []Partition{r.span.Partition}
	start, err := listOnce(ctx, r.client, Start.query(), at)
	if err != nil {
		return err
	}
	end, err := listOnce(ctx, r.client, High.query(), at)
	if err != nil {
		return err
	}
	return &OutOfRangeError{Partition: r.span.Partition, Offset: r.span.From, Start: start[at[0]], End: end[at[0]]}
}

func (r *reader) request() *kmsg.FetchRequest {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = r.span.Partition.Partition, r.span.From, r.cfg.MaxBytes
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = r.span.Topic, r.span.ID, []kmsg.FetchRequestTopicPartition{p}
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(r.cfg.MaxWait.Milliseconds()), 1, r.cfg.MaxBytes
	req.IsolationLevel = 1 // read_committed
	req.SessionEpoch = -1  // no fetch session
	req.Topics = append(req.Topics, t)
	return req
}

func (r *reader) decode(p *kmsg.FetchResponseTopicPartition) chunk {
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: r.span.From, IsolationLevel: kgo.ReadCommitted(), Topic: r.span.Topic, Partition: r.span.Partition.Partition,
		Pools: []kgo.Pool{&r.memory},
	}, p, kgo.DefaultDecompressor(), nil)
	if fp.Err != nil {
		return chunk{err: fp.Err}
	}
	records := fp.Records
	for len(records) > 0 && records[len(records)-1].Offset >= r.span.To {
		records = records[:len(records)-1] // written after the span was decided
	}
	return chunk{records: records, next: min(next, r.span.To)}
}

// leaderOf asks who leads a partition now.
func leaderOf(ctx context.Context, client *kgo.Client, p Partition) (int32, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(p.Topic)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return -1, err
	}
	for _, topic := range resp.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
			return -1, err
		}
		for _, part := range topic.Partitions {
			if part.Partition == p.Partition && part.Leader >= 0 {
				return part.Leader, nil
			}
		}
	}
	return -1, fmt.Errorf("%s: %w", p, kerr.LeaderNotAvailable)
}
