package land

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake"
)

// landedPace is how often RunUntilLanded looks at the tables.
const landedPace = 100 * time.Millisecond

// RunUntilLanded is Run until all that the topics hold now has landed, or gone to the dead letters; then it ends in good order. What comes
// meanwhile may land or not. An instance that shares the topics with others waits for what they land, too. The last batch waits for its limits, so
// give Config.Batch.Every a second or so.
func (s *Sink) RunUntilLanded(ctx context.Context) error {
	ends, err := s.ends(ctx)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	g.Go(func() error { defer stop(); return s.Run(running) })
	for landed := false; !landed && running.Err() == nil; {
		select {
		case <-running.Done():
		case <-time.After(landedPace):
			// Tables are opened, and what is declared of them published, before an instance is ready, also where nothing waits to land.
			if !s.Stats().State.Ready() {
				continue
			}
			landed, err = s.landed(running, ends)
			landed = landed || err != nil
		}
	}
	if running.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // what ended Run counts
	}
	stop()
	return errors.Join(err, g.Wait(), ctx.Err())
}

// ends are the ends of what can be read of each stream's partitions, in the order of the streams; partitions that hold nothing are left out.
func (s *Sink) ends(ctx context.Context) ([]map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	names := make([]string, len(s.cfg.Streams))
	for i := range s.cfg.Streams {
		names[i] = s.cfg.Streams[i].Topic
	}
	client := kadm.NewClient(s.client)
	starts, err := client.ListStartOffsets(ctx, names...)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	listed, err := client.ListCommittedOffsets(ctx, names...)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	out := make([]map[int32]int64, len(names))
	for i, topic := range names {
		out[i] = map[int32]int64{}
		for partition, end := range listed[topic] {
			if end.Offset > starts[topic][partition].Offset {
				out[i][partition] = end.Offset
			}
		}
	}
	return out, nil
}

// landed tells whether each table has come to the ends.
func (s *Sink) landed(ctx context.Context, ends []map[int32]int64) (bool, error) {
	for i := range s.cfg.Streams {
		stream := &s.cfg.Streams[i]
		if len(ends[i]) == 0 {
			continue
		}
		_, progress, err := lake.ReadProgress(ctx, s.cfg.TablePlace(stream))
		if errors.Is(err, lake.ErrNoTable) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		next := map[int32]int64{}
		for _, p := range progress {
			if p.Topic == stream.Topic {
				next[p.Partition] = max(next[p.Partition], p.Next)
			}
		}
		for partition, end := range ends[i] {
			if next[partition] < end {
				return false, nil
			}
		}
	}
	return true, nil
}
