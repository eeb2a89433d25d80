package topics

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// DefaultMaxMessageBytes is what a broker takes in one batch unless it or the topic is configured otherwise.
const DefaultMaxMessageBytes = 1_048_588

// MaxMessageBytes asks for a topic's max.message.bytes: the largest batch, in bytes, that its brokers take. Where the settings may not be
// read (DESCRIBE_CONFIGS on the topic), or the broker doesn't know the topic or the setting, it is the default. An error says that no broker
// answers at the moment.
func MaxMessageBytes(ctx context.Context, client *kgo.Client, topic string) (int32, error) {
	described, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, topic)
	var auth *kadm.AuthError
	if errors.As(err, &auth) {
		return DefaultMaxMessageBytes, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read max.message.bytes of topic %s: %w", topic, err)
	}
	rc, err := described.On(topic, nil)
	if err != nil || rc.Err != nil {
		return DefaultMaxMessageBytes, nil
	}
	return maxMessageBytes(rc.Configs), nil
}

func maxMessageBytes(configs []kadm.Config) int32 {
	for _, c := range configs {
		if c.Key != "max.message.bytes" || c.Value == nil {
			continue
		}
		if n, err := strconv.ParseInt(*c.Value, 10, 32); err == nil && n > 0 {
			return int32(n)
		}
	}
	return DefaultMaxMessageBytes
}
