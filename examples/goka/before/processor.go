package before

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	loyalty "github.com/tributary-io/tributary/examples/goka"
)

// Config is where an instance finds things.
type Config struct {
	Brokers  []string
	Group    goka.Group
	StateDir string
	// Storage builds the storages; nil is goka's LevelDB in StateDir.
	Storage storage.Builder
	// Replication is that of topics which goka creates; 0 is 1.
	Replication int
}

// New makes a processor. Its Run ends with its context.
func New(cfg Config) (*goka.Processor, error) {
	client := goka.DefaultConfig()
	client.Consumer.Offsets.Initial = sarama.OffsetOldest
	// Only what was committed: the tables may have been written by applications with transactions.
	client.Consumer.IsolationLevel = sarama.ReadCommitted
	goka.ReplaceGlobalConfig(client)

	topics := goka.NewTopicManagerConfig()
	topics.Table.Replication, topics.Stream.Replication = max(cfg.Replication, 1), max(cfg.Replication, 1)
	if cfg.Storage == nil {
		cfg.Storage = storage.DefaultBuilder(cfg.StateDir)
	}
	p, err := goka.NewProcessor(cfg.Brokers, loyalty.Group(cfg.Group),
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithTopicManagerConfig(topics)),
		goka.WithStorageBuilder(cfg.Storage))
	if err != nil {
		return nil, fmt.Errorf("goka processor of %s: %w", cfg.Group, err)
	}
	return p, nil
}
