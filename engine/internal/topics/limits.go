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

// MaxMessageBytes asks for the max.message.bytes of topics: the largest batch, in bytes, that their brokers take. Topics are missing in the
// answer that the broker doesn't know, perhaps since they are too new; all are if the settings of one may not be read (DESCRIBE_CONFIGS on the topic).
// An error says that no broker answers at the moment.
func MaxMessageBytes(ctx context.Context, client *kgo.Client, names ...string) (map[string]int32, error) {
	limits := make(map[string]int32, len(names))
	if len(names) == 0 {
		return limits, nil
	}
	described, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, names...)
	var auth *kadm.AuthError
	if errors.As(err, &auth) {
		return limits, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read max.message.bytes of topics %v: %w", names, err)
	}
	for _, rc := range described {
		if rc.Err == nil {
			limits[rc.Name] = maxMessageBytes(rc.Configs)
		}
	}
	return limits, nil
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
