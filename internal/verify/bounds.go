package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/lake"
)

// progress reads the next offset to land of each partition of the topic, as the table has it; nil if it says nothing of the topic.
// Several sinks may land the topic in one table: then records up to the farthest are looked for.
func progress(ctx context.Context, cfg Config) (map[int32]int64, error) {
	_, all, err := lake.ReadProgress(ctx, cfg.Table)
	if err != nil {
		return nil, err
	}
	var bound map[int32]int64
	for _, p := range all {
		if p.Topic != cfg.Topic {
			continue
		}
		if bound == nil {
			bound = map[int32]int64{}
		}
		bound[p.Partition] = max(bound[p.Partition], p.Next)
	}
	return bound, nil
}

// waits tells of a record that the table says it hasn't come to. A partition of which it says nothing, beside others, has not begun.
func waits(rec *kgo.Record, bound map[int32]int64) bool {
	return bound != nil && rec.Offset >= bound[rec.Partition]
}

// history is what a topic may have had once.
type history struct {
	starts    map[int32]int64
	compacted bool
}

// look finds out what the topic may have lost, after it was read.
func look(ctx context.Context, cfg Config) (*history, error) {
	client, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, cfg.Topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list the starts of %s: %w", cfg.Topic, err)
	}
	h := &history{starts: map[int32]int64{}}
	starts.Each(func(o kadm.ListedOffset) { h.starts[o.Partition] = o.Offset })
	described, err := admin.DescribeTopicConfigs(ctx, cfg.Topic)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", cfg.Topic, err)
	}
	rc, err := described.On(cfg.Topic, nil)
	if err = errors.Join(err, rc.Err); err != nil {
		return nil, fmt.Errorf("describe %s: %w", cfg.Topic, err)
	}
	for _, c := range rc.Configs {
		if c.Key == "cleanup.policy" {
			h.compacted = strings.Contains(c.MaybeValue(), "compact")
		}
	}
	return h, nil
}

// took tells whether the topic may have had a record there that it has no more.
func (h *history) took(partition int32, offset int64) bool {
	start, there := h.starts[partition]
	return there && (h.compacted || offset < start)
}
