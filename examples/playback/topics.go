package playback

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Topic is where players' events are, and DeadLetters where those go that can't be read.
const (
	Topic       = "streaming.playback_events"
	DeadLetters = "streaming.playback_events.dlq"

	partitions = 6
	retention  = "604800000" // 7 days, in ms
)

// CreateTopics makes the events' topic and that of dead letters, where they aren't there.
func CreateTopics(ctx context.Context, s Settings) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	// Retention goes by the broker's time of arrival: by the time of events, a replay of old ones would be deleted at once.
	kept, forever, arrival := retention, "-1", "LogAppendTime"
	for topic, keep := range map[string]*string{s.Topic: &kept, DeadLetters: &forever} {
		configs := map[string]*string{"retention.ms": keep, "message.timestamp.type": &arrival}
		_, err := kadm.NewClient(client).CreateTopic(ctx, partitions, int16(s.Replication), configs, topic)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return nil
}

// CreateViewTopics makes the topics of the views, which keep the newest value of each key.
func CreateViewTopics(ctx context.Context, s Settings) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	compact := "compact"
	for _, topic := range []string{SessionTopic, WatchTopic, ViewersTopic} {
		_, err := kadm.NewClient(client).CreateTopic(ctx, partitions, int16(s.Replication), map[string]*string{"cleanup.policy": &compact}, topic)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return nil
}
