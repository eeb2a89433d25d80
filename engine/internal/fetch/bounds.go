package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Edge is an end of a partition's log.
type Edge int

// The edges. High is the high watermark: everything before it is replicated, but may belong to open transactions; Stable is the last
// stable offset, before which all is decided.
const (
	Start Edge = iota
	High
	Stable
)

// missingLimit is how long a topic may be unknown to brokers before it counts as gone: they may have just started, or it was just made.
const missingLimit = 30 * time.Second

// Bounds returns an edge of each partition's log; a partition may be named twice. Failures of brokers are tried again until ctx ends.
func Bounds(ctx context.Context, client *kgo.Client, edge Edge, parts []Partition) (map[Partition]int64, error) {
	return listOffsets(ctx, client, edge.query(), parts)
}

// Since returns, of each partition, the offset of the first record with a timestamp, in ms, from then on; -1 if there is none. Failures of
// brokers are tried again until ctx ends.
func Since(ctx context.Context, client *kgo.Client, timestamp int64, parts []Partition) (map[Partition]int64, error) {
	return listOffsets(ctx, client, query{max(timestamp, 0), readCommitted}, parts)
}

// query is what ListOffsets is asked for: a timestamp, or what stands for an edge.
type query struct {
	timestamp int64
	isolation int8
}

const readCommitted = 1

func (e Edge) query() query {
	switch e {
	case Start:
		return query{timestamp: -2}
	case Stable:
		return query{timestamp: -1, isolation: readCommitted}
	}
	return query{timestamp: -1}
}

func listOffsets(ctx context.Context, client *kgo.Client, q query, parts []Partition) (map[Partition]int64, error) {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b Partition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	parts = slices.Compact(parts) // brokers refuse a request that names one twice
	var missingSince time.Time
	for {
		found, err := listOnce(ctx, client, q, parts)
		if err == nil {
			return found, nil
		}
		missing := errors.Is(err, kerr.UnknownTopicOrPartition)
		if !missing {
			missingSince = time.Time{}
		} else if missingSince.IsZero() {
			missingSince = time.Now()
		}
		var answer *kerr.Error
		if permanent(err) || errors.As(err, &answer) && !answer.Retriable || missing && time.Since(missingSince) > missingLimit {
			return nil, fmt.Errorf("list offsets: %w", err)
		}
		pause(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("list offsets: %w", errors.Join(ctx.Err(), err))
		}
	}
}

func listOnce(ctx context.Context, client *kgo.Client, q query, parts []Partition) (map[Partition]int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = q.isolation
	for topic, partitions := range byTopic(parts) {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, p := range partitions {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp = p, q.timestamp
			t.Partitions = append(t.Partitions, rp)
		}
		req.Topics = append(req.Topics, t)
	}
	found := make(map[Partition]int64, len(parts))
	if len(parts) == 0 {
		return found, nil
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			at := Partition{t.Topic, p.Partition}
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
			found[at] = p.Offset
		}
	}
	for _, p := range parts {
		if _, ok := found[p]; !ok {
			return nil, fmt.Errorf("the broker's answer lacks %s", p)
		}
	}
	return found, nil
}
