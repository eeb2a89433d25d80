package land

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake"
)

// landedPace is how often RunUntilLanded looks at the tables.
const landedPace = 100 * time.Millisecond

// RunUntilLanded is Run until all that the topics hold now has landed, or gone to the dead letters; then it ends in good order. What comes
// meanwhile may land or not. An instance that shares the topics with others waits for what they land, too. The last batch waits for its limits, so
// give Config.Batch.Every a second or so. Streams that a fault keeps from landing, and that several tries don't bring on, are in the error; the others
// land all the same.
func (s *Sink) RunUntilLanded(ctx context.Context) error {
	ends, err := s.ends(ctx)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	g.Go(func() error { defer stop(); return s.Run(running) })
	var faulty error
	for landed := false; !landed && running.Err() == nil; {
		select {
		case <-running.Done():
		case <-time.After(landedPace):
			// Tables are opened, and what is declared of them published, before an instance is ready, also where nothing waits to land.
			if !s.Stats().State.Ready() {
				continue
			}
			var waiting []string
			waiting, err = s.unlanded(running, ends)
			landed, faulty = s.settled(waiting)
			landed = landed || err != nil
		}
	}
	if running.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // what ended Run counts
	}
	stop()
	return errors.Join(err, faulty, g.Wait(), ctx.Err())
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
		err = readable(starts)
	}
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	listed, err := client.ListCommittedOffsets(ctx, names...)
	if err == nil {
		err = readable(listed)
	}
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	out := make([]map[int32]int64, len(names))
	for i, topic := range names {
		out[i] = map[int32]int64{}
		for partition, end := range listed[topic] {
			if end.Err == nil && end.Offset > starts[topic][partition].Offset {
				out[i][partition] = end.Offset
			}
		}
	}
	return out, nil
}

// readable leaves out topics that aren't there: their streams are faults of their own.
func readable(listed kadm.ListedOffsets) (err error) {
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err != nil && !errors.Is(o.Err, kerr.UnknownTopicOrPartition) {
			err = fmt.Errorf("%s-%d: %w", o.Topic, o.Partition, o.Err)
		}
	})
	return err
}

// faultPatience is how long a fault may last that heals by itself: for a few tries.
const faultPatience = 5 * time.Second

// settled tells whether nothing more will land of the streams that wait, and what has kept them, and others, from it.
func (s *Sink) settled(waiting []string) (done bool, faulty error) {
	var errs []error
	done = true
	holds := s.faults.holds()
	for _, topic := range waiting {
		h, held := holds[topic]
		done = done && held && h.fault != nil && s.cfg.now().Sub(h.since) > faultPatience
	}
	for topic, h := range holds {
		if h.fault != nil {
			errs = append(errs, fmt.Errorf("%s has not landed: parked since %s: %w", topic, stamp(h.since), h.fault))
		}
	}
	return done, errors.Join(errs...)
}

// unlanded are the topics whose tables have not come to the ends.
func (s *Sink) unlanded(ctx context.Context, ends []map[int32]int64) (topics []string, err error) {
	for i := range s.cfg.Streams {
		if len(ends[i]) == 0 {
			continue
		}
		landed, err := s.landed(ctx, &s.cfg.Streams[i], ends[i])
		if err != nil {
			return nil, err
		}
		if !landed {
			topics = append(topics, s.cfg.Streams[i].Topic)
		}
	}
	return topics, nil
}

// landed tells whether a stream's table has come to the ends.
func (s *Sink) landed(ctx context.Context, stream *Stream, ends map[int32]int64) (bool, error) {
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
	for partition, end := range ends {
		if next[partition] < end {
			return false, nil
		}
	}
	return true, nil
}
