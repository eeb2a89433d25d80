package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/processors"
)

// behind is what an application has read of the topic, for a table whose rows come through an internal topic: the table's progress is that of
// the internal topic. The application's committed offsets say how far it has read; they move in one transaction with what it writes to the
// internal topic. What is there behind the table's progress waits to be landed.
//
// What is looked at first must not be farther than what is looked at later: the offsets, then the table's progress, then the internal topic
// from there on, and last the table's rows. A record that is purged from the internal topic meanwhile has landed by then.
type behind struct {
	bound   map[int32]int64 // of the topic, next offset that the application reads
	waiting offsets         // of the topic, which are in the internal topic and not in the table
}

// lookBehind returns nil where the table's progress leads to no application that reads the topic.
func lookBehind(ctx context.Context, cfg Config) (*behind, error) {
	_, all, err := lake.ReadProgress(ctx, cfg.Table)
	if err != nil {
		return nil, err
	}
	group := ""
	for _, p := range all {
		if p.Application != "" && p.Topic != cfg.Topic {
			group = p.Application
		}
	}
	if group == "" {
		return nil, nil
	}
	b := &behind{waiting: offsets{}}
	if b.bound, err = committedOffsets(ctx, cfg, group); err != nil || b.bound == nil {
		return nil, err
	}
	_, all, err = lake.ReadProgress(ctx, cfg.Table)
	if err != nil {
		return nil, err
	}
	next := map[string]map[int32]int64{}
	for _, p := range all {
		if p.Application != group {
			continue
		}
		if next[p.Topic] == nil {
			next[p.Topic] = map[int32]int64{}
		}
		next[p.Topic][p.Partition] = max(next[p.Topic][p.Partition], p.Next)
	}
	for topic, from := range next {
		if err := b.readTail(ctx, cfg, topic, from); err != nil {
			return nil, fmt.Errorf("internal topic %s: %w", topic, err)
		}
	}
	return b, nil
}

func committedOffsets(ctx context.Context, cfg Config, group string) (map[int32]int64, error) {
	client, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	fetched, err := kadm.NewClient(client).FetchOffsets(ctx, group)
	if err == nil {
		err = fetched.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of application %s: %w", group, err)
	}
	var out map[int32]int64
	fetched.Each(func(o kadm.OffsetResponse) {
		if o.Topic == cfg.Topic && o.At >= 0 {
			if out == nil {
				out = map[int32]int64{}
			}
			out[o.Partition] = o.At
		}
	})
	return out, nil
}

// readTail reads which records of the topic are in the internal topic behind the table's progress. What the application's offsets say that it has
// read was committed with them, perhaps behind another instance's transaction that is still open.
func (b *behind) readTail(ctx context.Context, cfg Config, topic string, from map[int32]int64) error {
	n := int64(0)
	for rec, err := range committed(ctx, cfg.Client, topic, from, cfg.waits) {
		if err != nil {
			return err
		}
		if rec.Offset < from[rec.Partition] {
			continue
		}
		i := slices.IndexFunc(rec.Headers, func(h kgo.RecordHeader) bool { return h.Key == processors.CoordinatesHeader })
		if i < 0 {
			return fmt.Errorf("partition %d offset %d has no header %s", rec.Partition, rec.Offset, processors.CoordinatesHeader)
		}
		c, err := processors.DecodeCoordinates(rec.Headers[i].Value)
		if err != nil {
			return fmt.Errorf("partition %d offset %d: %w", rec.Partition, rec.Offset, err)
		}
		if c.Topic == cfg.Topic {
			b.waiting.add(Coordinates{c.Partition, c.Offset})
		}
		n++
		cfg.progress("records of the internal topic", n)
	}
	return nil
}
