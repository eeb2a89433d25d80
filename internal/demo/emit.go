package demo

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/examples/shop"
)

// positionHeader tells of each emitted record which day it belongs to and how many of the day's records its partition has up to it,
// as in "2026-06-01/17". By the last record of a partition an interrupted emission knows where to go on.
const positionHeader = "demo.position"

// Emission is how far a day's emission has come. Its counters may be read while it runs.
type Emission struct {
	Produced atomic.Int64 // records acknowledged by this run
	Skipped  atomic.Int64 // records that an earlier run has produced
}

// Emit produces the customers and the events of the spec's day, each record once, however often it is interrupted and called again.
// It refuses a day before one that the topic already has.
func Emit(ctx context.Context, client *kgo.Client, spec shop.Spec, ids shop.SchemaIDs, e *Emission) error {
	mark := customersMark(spec)
	done, err := emitted(ctx, client, shop.CustomerTopic, func(_ int32, last string, count int64) (int64, error) {
		if last != mark {
			return 0, fmt.Errorf("it holds the customers of other settings (%s, not %s): use the same --orders and --seed, or another --dir", last, mark)
		}
		return count, nil
	})
	if err == nil {
		err = emit(ctx, client, mark, spec.CustomerRecords(ids), done, e)
	}
	if err != nil {
		return fmt.Errorf("emit to %s: %w", shop.CustomerTopic, err)
	}
	if done, err = emitted(ctx, client, shop.OrderTopic, dayProgress(spec)); err == nil {
		err = emit(ctx, client, spec.Date.Format(time.DateOnly), spec.Records(ids), done, e)
	}
	if err != nil {
		return fmt.Errorf("emit to %s: %w", shop.OrderTopic, err)
	}
	return nil
}

// dayProgress tells from a partition's last record how many of the spec's day it has. The day before must be complete, and there
// must be none after.
func dayProgress(spec shop.Spec) func(partition int32, last string, count int64) (int64, error) {
	day := spec.Date.Format(time.DateOnly)
	return func(partition int32, last string, count int64) (int64, error) {
		if last == day {
			return count, nil
		}
		before := spec
		var err error
		if before.Date, err = shop.ParseDate(last); err != nil {
			return 0, fmt.Errorf("its last record says %q: %w", last, err)
		}
		if last > day {
			return 0, fmt.Errorf("it already has records of %s: days are emitted in their order, so choose that or a later one", last)
		}
		var total int64
		for e := range before.Events() {
			if e.Partition == partition {
				total++
			}
		}
		if count < total {
			return 0, fmt.Errorf("the emission of %s was interrupted after %d of %d records: finish it first, with --date %s", last, count, total, last)
		}
		return 0, nil
	}
}

// customersMark names the customers of a spec, who are the same on all its days.
func customersMark(spec shop.Spec) string {
	return fmt.Sprintf("customers-%d-%d", spec.Orders, spec.Seed)
}

// emit produces the records that are not done yet, each with its mark.
func emit(ctx context.Context, client *kgo.Client, mark string, records iter.Seq[shop.Record], done counts, e *Emission) error {
	p := producer{client: client, e: e}
	var seen counts
	for r := range records {
		seen[r.Partition]++
		if seen[r.Partition] <= done[r.Partition] {
			e.Skipped.Add(1)
			continue
		}
		if err := p.produce(ctx, &r, mark+"/"+strconv.FormatInt(seen[r.Partition], 10)); err != nil {
			break
		}
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return p.failure()
}

// counts counts records by partition.
type counts [shop.Partitions]int64

// producer produces records and remembers the first failure.
type producer struct {
	client *kgo.Client
	e      *Emission
	failed atomic.Bool
	mu     sync.Mutex
	err    error
}

func (p *producer) produce(ctx context.Context, r *shop.Record, position string) error {
	p.client.Produce(ctx, &kgo.Record{
		Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp),
		Headers: []kgo.RecordHeader{{Key: positionHeader, Value: []byte(position)}},
	}, p.acknowledged)
	if p.failed.Load() {
		return p.failure()
	}
	return nil
}

func (p *producer) acknowledged(r *kgo.Record, err error) {
	if err == nil {
		p.e.Produced.Add(1)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = fmt.Errorf("partition %d: %w", r.Partition, err)
	}
	p.failed.Store(true)
}

func (p *producer) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// emitted returns how many records each partition has, as progress tells from its last one: from the mark and the count in it.
func emitted(ctx context.Context, client *kgo.Client, topic string, progress func(partition int32, mark string, count int64) (int64, error)) (done counts, err error) {
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return done, err
	}
	last := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			last[o.Partition] = kgo.NewOffset().At(o.Offset - 1)
		}
	})
	if len(last) == 0 {
		return done, nil
	}
	positions, err := readPositions(ctx, client, topic, last)
	if err != nil {
		return done, err
	}
	for partition, position := range positions {
		mark, count, ok := strings.Cut(position, "/")
		n, err := strconv.ParseInt(count, 10, 64)
		if !ok || err != nil || int(partition) >= len(done) {
			return done, fmt.Errorf("partition %d was not written by the demonstration: use another cluster, or delete the topic", partition)
		}
		if done[partition], err = progress(partition, mark, n); err != nil {
			return done, fmt.Errorf("partition %d: %w", partition, err)
		}
	}
	return done, nil
}

// readPositions reads one record at each of the offsets and returns its position header.
func readPositions(ctx context.Context, client *kgo.Client, topic string, at map[int32]kgo.Offset) (map[int32]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	reader, err := kgo.NewClient(append(client.Opts(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: at}))...)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	positions := map[int32]string{}
	for len(positions) < len(at) {
		fetches := reader.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return nil, fmt.Errorf("read the last records: %w", errs[0].Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			for _, h := range r.Headers {
				if h.Key == positionHeader {
					positions[r.Partition] = string(h.Value)
				}
			}
			if _, ok := positions[r.Partition]; !ok {
				positions[r.Partition] = ""
			}
		})
	}
	return positions, nil
}
