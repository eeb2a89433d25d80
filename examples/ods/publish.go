package ods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/serde"
)

const (
	publisherID = "ods-publish" // the publisher's transactional id
	// OffsetHeader is the header of a published record with the offset of the event's first record in the raw topic.
	OffsetHeader = "ods.raw_offset"
	// publishBatch is how many records are published in one transaction.
	publishBatch = 10_000
)

// Publish writes the staged events that StagedTopic doesn't have yet, each once, and returns how many those were. An event stays in its raw
// partition, and the order of its order.
//
// The topic is the publisher's memory: the last committed record of a partition says up to which raw offset it has been published. The
// transactional id shuts out a publisher that still runs, and what a killed one has left open is aborted, before the topic is asked.
func (p *Platform) Publish(ctx context.Context) (int64, error) {
	if err := p.Declare(ctx, StagedTopic); err != nil {
		return 0, err
	}
	client, err := p.producer(kgo.TransactionalID(publisherID))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if _, _, err := client.ProducerID(ctx); err != nil {
		return 0, fmt.Errorf("publish: begin as %s: %w", publisherID, err)
	}
	cursors, err := p.cursors(ctx, client)
	if err != nil {
		return 0, fmt.Errorf("publish: %w", err)
	}
	rows, err := p.unpublished(ctx, cursors)
	if err != nil {
		return 0, fmt.Errorf("publish: %w", err)
	}
	encode, release, err := p.stagedSerde(ctx)
	if err != nil {
		return 0, fmt.Errorf("publish: %w", err)
	}
	defer release()
	var published int64
	for chunk := range slices.Chunk(rows, publishBatch) {
		if err := publishChunk(ctx, client, encode, chunk); err != nil {
			return published, fmt.Errorf("publish: %w", err)
		}
		published += int64(len(chunk))
	}
	return published, nil
}

// stagedSerde encodes values of StagedTopic by its declared schema.
func (p *Platform) stagedSerde(ctx context.Context) (serde.Serde[shop.OrderEvent], func(), error) {
	stream, err := p.declared(StagedTopic)
	if err != nil {
		return nil, nil, err
	}
	registry, err := p.registry()
	if err != nil {
		return nil, nil, err
	}
	s := serde.Bind(serde.Avro[shop.OrderEvent](registry, stream.Schema), StagedTopic, false)
	if err := serde.Prepare(ctx, s); err != nil {
		registry.Close()
		return nil, nil, err
	}
	return s, registry.Close, nil
}

// publishChunk writes records in one transaction.
func publishChunk(ctx context.Context, client *kgo.Client, encode serde.Serde[shop.OrderEvent], rows []Staged) error {
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	records := make([]*kgo.Record, len(rows))
	for i := range rows {
		r := &rows[i]
		value, err := encode.Append(nil, shop.OrderEvent{EventID: r.EventID, OrderID: r.OrderID, CustomerID: r.CustomerID, Status: r.Status,
			Amount: serde.DecimalOf(r.AmountCents), EventTime: r.EventTime, Coupon: r.Coupon})
		if err != nil {
			return errors.Join(fmt.Errorf("event %s: %w", r.EventID, err), abort(ctx, client))
		}
		records[i] = &kgo.Record{Topic: StagedTopic, Partition: r.Partition, Key: []byte(r.OrderID), Value: value, Timestamp: r.EventTime,
			Headers: []kgo.RecordHeader{{Key: OffsetHeader, Value: strconv.AppendInt(nil, r.Offset, 10)}}}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return errors.Join(err, abort(ctx, client))
	}
	return client.EndTransaction(ctx, kgo.TryCommit)
}

// abort takes back what was written; it is tried also after an interrupt.
func abort(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(client.AbortBufferedRecords(ctx), client.EndTransaction(ctx, kgo.TryAbort))
}

// unpublished are the staged rows behind the cursors, in the order of the raw topic.
func (p *Platform) unpublished(ctx context.Context, cursors map[int32]int64) (rows []Staged, err error) {
	for row, err := range lake.ReadRows(ctx, p.place(StagingTable)) {
		if err != nil {
			return nil, fmt.Errorf("staging table: %w", err)
		}
		partition, _ := row["raw_partition"].(int32)
		offset, _ := row["raw_offset"].(int64)
		cursor, ok := cursors[partition]
		if !ok {
			return nil, fmt.Errorf("the raw topic has a partition %d, %s has none: add partitions to it", partition, StagedTopic)
		}
		if offset <= cursor {
			continue
		}
		r, err := staged(row)
		if err != nil {
			return nil, fmt.Errorf("staging table: event %v: %w", row["event_id"], err)
		}
		r.Partition, r.Offset = partition, offset
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Staged) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return rows, nil
}

// cursors are the raw offsets up to which each partition has been published; -1 for one where nothing has.
func (p *Platform) cursors(ctx context.Context, client *kgo.Client) (map[int32]int64, error) {
	spans, err := spans(ctx, client)
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for _, s := range spans {
		if out[s.partition], err = p.cursor(ctx, s.partition, s.start, s.end); err != nil {
			return nil, fmt.Errorf("%s partition %d: %w", StagedTopic, s.partition, err)
		}
	}
	return out, nil
}

// cursor reads a partition from its end backwards, in growing steps, until it finds a committed record.
func (p *Platform) cursor(ctx context.Context, partition int32, start, end int64) (int64, error) {
	for step := int64(64); end > start; step *= 16 {
		from := max(start, end-step)
		last, err := p.lastRecord(ctx, partition, from, end)
		if err != nil {
			return 0, err
		}
		if last != nil {
			return rawOffset(last)
		}
		if from == start {
			break
		}
	}
	if start > 0 {
		return 0, errors.New("its records are gone, and with them what has been published: keep the topic for ever, or delete it to publish everything again")
	}
	return -1, nil
}

func rawOffset(r *kgo.Record) (int64, error) {
	for _, h := range r.Headers {
		if h.Key == OffsetHeader {
			return strconv.ParseInt(string(h.Value), 10, 64)
		}
	}
	return 0, fmt.Errorf("the record at offset %d has no header %s: somebody else writes to this topic", r.Offset, OffsetHeader)
}

// lastRecord is the last committed record from an offset to the end; nil if there is none.
func (p *Platform) lastRecord(ctx context.Context, partition int32, from, end int64) (last *kgo.Record, err error) {
	for r, err := range p.committed(ctx, partition, from, end) {
		if err != nil {
			return nil, err
		}
		last = r
	}
	return last, nil
}

// Published reads StagedTopic as its readers do: what is committed now, partition by partition.
func (p *Platform) Published(ctx context.Context) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		client, err := p.producer()
		if err != nil {
			yield(nil, err)
			return
		}
		defer client.Close()
		spans, err := spans(ctx, client)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, s := range spans {
			for r, err := range p.committed(ctx, s.partition, s.start, s.end) {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

// committed reads the committed records of a partition of StagedTopic from an offset to the end.
func (p *Platform) committed(ctx context.Context, partition int32, from, end int64) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		if from >= end {
			return
		}
		// Control records end transactions: with them each offset up to the end is heard of.
		client, err := kgo.NewClient(kgo.SeedBrokers(p.Brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{StagedTopic: {partition: kgo.NewOffset().At(from)}}))
		if err != nil {
			yield(nil, err)
			return
		}
		defer client.Close()
		for next := from; next < end; {
			fetches := client.PollFetches(ctx)
			for _, e := range fetches.Errors() {
				yield(nil, e.Err)
				return
			}
			for _, r := range fetches.Records() {
				next = r.Offset + 1
				if !r.Attrs.IsControl() && r.Offset < end && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// span is what can be read of a partition.
type span struct {
	partition  int32
	start, end int64
}

// spans are what can be read of StagedTopic.
func spans(ctx context.Context, client *kgo.Client) (out []span, err error) {
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, StagedTopic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, StagedTopic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	for partition, end := range ends[StagedTopic] {
		out = append(out, span{partition, starts[StagedTopic][partition].Offset, end.Offset})
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.partition, b.partition) })
	return out, nil
}
