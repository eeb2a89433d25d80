package playback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Rebuild lands what the topic still holds, from its start to its present end, into a new table: within the topic's retention the
// landing table can be made again from nothing. It returns when the new table has it all. The old table stays as it is.
func Rebuild(ctx context.Context, s Settings, into string, log *slog.Logger) error {
	if into == "" || into == s.Table {
		return errors.New("rebuild into another table than the landing table, and change their names once it is whole")
	}
	application := "playback-rebuild-" + into
	if err := claim(ctx, s, application, into, log); err != nil {
		return err
	}
	end, err := endOffsets(ctx, s)
	if err != nil {
		return err
	}
	s.StateDir, s.MaxAge = s.StateDir+"-rebuild", min(s.MaxAge, 5*time.Second)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	whole := make(chan error, 1)
	go func() {
		whole <- waitFor(ctx, s, into, end, log)
		stop()
	}()
	if err := run(ctx, s, application, into, log); err != nil {
		return err
	}
	return <-whole
}

// ends are the offsets behind the newest records of a topic's partitions.
type ends struct {
	topic   kadm.TopicID
	offsets map[int32]int64
}

func endOffsets(ctx context.Context, s Settings) (*ends, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(ctx, s.Topic)
	var listed kadm.ListedOffsets
	if err == nil {
		listed, err = admin.ListEndOffsets(ctx, s.Topic)
	}
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("find the end of topic %s: %w", s.Topic, err)
	}
	out := &ends{topics[s.Topic].ID, map[int32]int64{}}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			out.offsets[o.Partition] = o.Offset
		}
	})
	return out, nil
}

// waitFor returns when a table has landed the topic up to the offsets, and tells of its progress meanwhile.
func waitFor(ctx context.Context, s Settings, table string, end *ends, log *slog.Logger) error {
	var total int64
	for _, n := range end.offsets {
		total += n
	}
	for told := time.Now(); ; {
		var landed int64
		landings, err := Landings(ctx, s, table)
		for _, l := range landings {
			if l.TopicID == end.topic {
				landed += min(l.Next, end.offsets[l.Partition])
			}
		}
		if err == nil && landed == total {
			log.Info("landed all", "table", table, "offsets", total)
			return nil
		}
		if time.Since(told) > 5*time.Second {
			log.Info("landing", "table", table, "offsets", landed, "of", total)
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopped at %d of %d offsets", landed, total)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// WaitLanded returns when the landing table has all that the topic holds now.
func WaitLanded(ctx context.Context, s Settings, log *slog.Logger) error {
	end, err := endOffsets(ctx, s)
	if err != nil {
		return err
	}
	return waitFor(ctx, s, s.Table, end, log)
}
