package workload

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// watcher tells from the brokers whether an application is through with its input.
type watcher struct {
	admin *kadm.Client
	group string
	topic string
	ends  kadm.ListedOffsets
	total int64
}

func watch(ctx context.Context, admin *kadm.Client, group, topic string) (*watcher, error) {
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ends of %s: %w", topic, err)
	}
	w := &watcher{admin: admin, group: group, topic: topic, ends: ends}
	ends.Each(func(o kadm.ListedOffset) { w.total += o.Offset })
	return w, nil
}

// marker is how many offsets at a repartition topic's end may hold no records: those of the transaction that is under way.
const marker = 3

// done tells whether the group's committed offsets are at the end of the input, and of the repartition topics behind it.
func (w *watcher) done(ctx context.Context) (bool, error) {
	committed, err := w.admin.FetchOffsets(ctx, w.group)
	if err != nil {
		return false, fmt.Errorf("committed offsets of %s: %w", w.group, err)
	}
	sum := int64(0)
	var between []string
	for topic, parts := range committed {
		for _, o := range parts {
			if topic == w.topic {
				sum += max(0, o.At)
			}
		}
		if strings.HasSuffix(topic, "-repartition") {
			between = append(between, topic)
		}
	}
	if sum < w.total {
		return false, nil
	}
	if len(between) == 0 {
		return true, nil
	}
	ends, err := w.admin.ListEndOffsets(ctx, between...)
	if err != nil {
		return false, fmt.Errorf("ends of %v: %w", between, err)
	}
	through := true
	ends.Each(func(end kadm.ListedOffset) {
		at, ok := committed.Lookup(end.Topic, end.Partition)
		through = through && (end.Offset == 0 || ok && end.Offset-at.At <= marker)
	})
	return through, nil
}
