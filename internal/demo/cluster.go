package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	app "github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
)

// Cluster is a broker and a registry: embedded ones below a folder, or real ones.
type Cluster struct {
	Brokers  []string
	Registry *serde.Registry
	Embedded bool

	security  []kgo.Opt // TLS and SASL of a real cluster
	client    *kgo.Client
	broker    *embedded.Broker
	registry  *embedded.Registry
	schemaIDs shop.SchemaIDs
}

// Connect connects to the brokers and the registry that are given, and starts embedded ones below dir in place of those that are
// not. security are options of all clients of a real cluster: TLS, SASL.
func Connect(ctx context.Context, dir string, brokers []string, registryURL string, log *slog.Logger, security ...kgo.Opt) (_ *Cluster, err error) {
	c := &Cluster{Brokers: brokers, security: security}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if len(brokers) == 0 {
		c.Embedded = true
		if c.broker, err = embedded.StartBroker(embedded.BrokerConfig{Dir: filepath.Join(dir, "broker"), Logger: log}); err != nil {
			return nil, err
		}
		c.Brokers = c.broker.Addrs()
	}
	if registryURL == "" {
		if c.registry, err = embedded.StartRegistry(embedded.RegistryConfig{Dir: filepath.Join(dir, "registry")}); err != nil {
			return nil, err
		}
		registryURL = c.registry.URL()
	}
	if c.Registry, err = serde.NewRegistry(registryURL); err != nil {
		return nil, err
	}
	c.client, err = kgo.NewClient(c.options(kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerLinger(5*time.Millisecond), kgo.UnknownTopicRetries(-1))...)
	if err != nil {
		return nil, err
	}
	return c, c.reach(ctx)
}

// options of a client are those that reach the brokers, and more.
func (c *Cluster) options(more ...kgo.Opt) []kgo.Opt {
	return slices.Concat([]kgo.Opt{kgo.SeedBrokers(c.Brokers...)}, c.security, more)
}

// reach fails early, and says what to do, where nobody answers.
func (c *Cluster) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := c.client.Ping(ctx); err != nil {
		return fmt.Errorf("no broker answers at %v (is it up, and is this its client listener?): %w", c.Brokers, err)
	}
	if err := c.Registry.Ping(ctx); err != nil {
		return fmt.Errorf("the schema registry does not answer: %w", err)
	}
	return nil
}

// Close disconnects, and stops what was started.
func (c *Cluster) Close() error {
	var errs []error
	if c.client != nil {
		c.client.Close()
	}
	if c.Registry != nil {
		c.Registry.Close()
	}
	if c.registry != nil {
		errs = append(errs, c.registry.Close())
	}
	if c.broker != nil {
		errs = append(errs, c.broker.Close())
	}
	return errors.Join(errs...)
}

// Prepare makes the topics and registers the schemas. What is there already is checked and left as it is.
func (c *Cluster) Prepare(ctx context.Context) error {
	streams := []schemas.Stream{schemas.MustStream(app.EventTopic), schemas.MustStream(app.CustomerTopic)}
	admin := kadm.NewClient(c.client)
	for _, s := range streams {
		if err := createTopic(ctx, admin, s.Topic, s.Partitions, s.TopicConfig()); err != nil {
			return err
		}
		if s.DeadLetters != "" {
			if err := createTopic(ctx, admin, s.DeadLetters, s.Partitions, nil); err != nil {
				return err
			}
		}
	}
	if err := c.awaitTopics(ctx, streams); err != nil {
		return err
	}
	ids := make([]int32, len(streams))
	for i, s := range streams {
		id, err := c.Registry.Register(ctx, serde.Subject(s.Topic, false), s.Schema)
		if err != nil {
			return fmt.Errorf("register the schema of %s: %w", s.Topic, err)
		}
		ids[i] = int32(id)
	}
	c.schemaIDs = shop.SchemaIDs{OrderEvents: ids[0], Customers: ids[1]}
	return nil
}

// awaitTopics waits until the brokers know the topics: a cluster takes a moment to tell them all.
func (c *Cluster) awaitTopics(ctx context.Context, streams []schemas.Stream) error {
	var names []string
	for _, s := range streams {
		names = append(names, s.Topic)
		if s.DeadLetters != "" {
			names = append(names, s.DeadLetters)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		_, err := c.EndOffsets(ctx, names...)
		if err == nil {
			return nil
		}
		if !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, kerr.LeaderNotAvailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the topics were made, but the brokers don't serve them: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// createTopic makes a topic, or checks the number of partitions of one that is there.
func createTopic(ctx context.Context, admin *kadm.Client, topic string, partitions int32, config map[string]string) error {
	configs := map[string]*string{}
	for k, v := range config {
		configs[k] = &v
	}
	_, err := admin.CreateTopic(ctx, partitions, -1, configs, topic)
	if err == nil {
		return nil
	}
	if !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	details, err := admin.ListTopics(ctx, topic)
	if err != nil {
		return fmt.Errorf("look at topic %s: %w", topic, err)
	}
	if got := len(details[topic].Partitions); got != int(partitions) {
		return fmt.Errorf("topic %s has %d partitions, not %d: delete it, or use another cluster", topic, got, partitions)
	}
	return nil
}

// EndOffsets returns where what is committed of each partition of the topics ends, by topic; partitions are in order.
func (c *Cluster) EndOffsets(ctx context.Context, topics ...string) (map[string][]int64, error) {
	return endsOf(kadm.NewClient(c.client).ListCommittedOffsets(ctx, topics...))
}

func endsOf(listed kadm.ListedOffsets, err error) (map[string][]int64, error) {
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	ends := map[string][]int64{}
	for topic, partitions := range listed {
		ends[topic] = make([]int64, len(partitions))
		for p, o := range partitions {
			ends[topic][p] = o.Offset
		}
	}
	return ends, nil
}

// unsettled tells whether an error of Lag goes away by itself: an internal topic is not made yet, or the cluster is still making itself.
func unsettled(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || kerr.IsRetriable(err)
}

// Lag returns how many offsets of the topics the group has still to commit, over all instances. What is behind an open transaction counts, too: one that a
// killed instance has left hides what others have committed behind it, until it times out. See unsettled for its errors.
func (c *Cluster) Lag(ctx context.Context, group string, topics ...string) (int64, error) {
	ends, err := endsOf(kadm.NewClient(c.client).ListEndOffsets(ctx, topics...))
	if err != nil {
		return 0, err
	}
	committed, err := kadm.NewClient(c.client).FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return 0, fmt.Errorf("fetch the offsets of group %s: %w", group, err)
	}
	var lag int64
	for topic, partitions := range ends {
		for p, end := range partitions {
			at := int64(0)
			if o, ok := committed.Lookup(topic, int32(p)); ok {
				at = max(at, o.At)
			}
			lag += max(0, end-at)
		}
	}
	return lag, nil
}

// Count returns how many committed records the topic holds.
func (c *Cluster) Count(ctx context.Context, topic string) (int64, error) {
	ends, err := c.EndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	open := map[int32]int64{} // ends of the partitions that are not read to their end
	for p, end := range ends[topic] {
		if end > 0 {
			open[int32(p)] = end
		}
	}
	// Control records are kept, since the last record of a partition usually is one.
	reader, err := kgo.NewClient(c.options(kgo.ConsumeTopics(topic), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	var n int64
	for len(open) > 0 {
		fetches := reader.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return 0, fmt.Errorf("count the records of %s: %w", topic, errs[0].Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				n++
			}
			if r.Offset+1 >= open[r.Partition] {
				delete(open, r.Partition)
			}
		})
	}
	return n, nil
}
