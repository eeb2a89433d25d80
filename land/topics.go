package land

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/internal/topicrights"
)

const topicWait = 2 * time.Minute // for the brokers to tell one another of a new topic

// topics makes the topics of a stream that are missing, and says where those that are there differ from their declaration. They stay as they are:
// they may have another owner.
func (p *preparation) topics(ctx context.Context, s *Stream) error {
	names := []string{s.Topic}
	if err := p.topic(ctx, s.Topic, s.Partitions, s.TopicConfig()); err != nil {
		return err
	}
	if !s.StopOnBadRows {
		if err := p.topic(ctx, s.DeadLetters, s.Partitions, nil); err != nil {
			return err
		}
		names = append(names, s.DeadLetters)
	}
	if err := awaitTopics(ctx, p.client, names); err != nil || s.StopOnBadRows {
		return err
	}
	return p.mayWrite(ctx, s.DeadLetters)
}

// mayWrite refuses a topic that the brokers don't let this client write to. Else the first record that doesn't fit would find out, in a transaction with letters
// of other streams.
func (p *preparation) mayWrite(ctx context.Context, topic string) error {
	err := topicrights.MayWrite(ctx, p.raw, topic)
	switch {
	case errors.Is(err, topicrights.ErrMayNotWrite):
		return fmt.Errorf("the brokers don't let this client write to topic %s, where what doesn't fit goes; it needs Write on it: %w", topic, kerr.TopicAuthorizationFailed)
	case errors.Is(err, topicrights.ErrNoTopic):
		return fmt.Errorf("look at topic %s: %w", topic, kerr.UnknownTopicOrPartition)
	}
	return err
}

func (p *preparation) topic(ctx context.Context, topic string, partitions int32, config map[string]string) error {
	configs := map[string]*string{}
	for k, v := range config {
		configs[k] = &v
	}
	_, err := p.client.CreateTopic(ctx, partitions, -1, configs, topic)
	if err == nil {
		p.log.Info("made the topic", "topic", topic, "partitions", partitions)
		return nil
	}
	// Brokers refuse those who may not create topics before they look whether there is one.
	refused := errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
	if !refused && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	details, listErr := p.client.ListTopics(ctx, topic)
	if refused && (listErr != nil || details[topic].Err != nil || len(details[topic].Partitions) == 0) {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	if listErr != nil {
		return fmt.Errorf("look at topic %s: %w", topic, listErr)
	}
	if n := len(details[topic].Partitions); n != int(partitions) {
		p.log.Warn("a topic has another number of partitions than is declared; all of them are landed", "topic", topic, "partitions", n, "declared", partitions)
	}
	want, declared := config["message.timestamp.type"]
	if !declared {
		return nil
	}
	described, err := p.client.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return fmt.Errorf("describe topic %s: %w", topic, err)
	}
	for _, rc := range described {
		for _, c := range rc.Configs {
			if c.Key == "message.timestamp.type" && c.MaybeValue() != want {
				p.log.Warn("a topic stamps records in another way than is declared: _kafka_timestamp is what the topic has", "topic", topic, "is", c.MaybeValue(), "declared", want)
			}
		}
	}
	return nil
}

func awaitTopics(ctx context.Context, client *kadm.Client, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, topicWait)
	defer cancel()
	for {
		listed, err := client.ListEndOffsets(ctx, names...)
		if err == nil {
			err = listed.Error()
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, kerr.UnknownTopicOrPartition) && !kerr.IsRetriable(err) {
			return fmt.Errorf("look at the topics: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the topics were made, but the brokers don't serve them: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
