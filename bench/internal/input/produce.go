package input

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The topics, named as the peers' programs name them.
const (
	Orders           = "orders"             // by order
	OrdersByCustomer = "orders-by-customer" // the same events
	CustomerTable    = "customers"
	Empty            = "empty"
)

// Partitions is the number of partitions of every topic.
const Partitions = 6

// CreateTopic makes a topic whose records are never taken by retention: event times lie in the past.
func CreateTopic(ctx context.Context, admin *kadm.Client, names ...string) error {
	forever := "-1"
	for _, name := range names {
		_, err := admin.CreateTopic(ctx, Partitions, 1, map[string]*string{"retention.ms": &forever}, name)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}
	return nil
}

// Produce creates the topics and writes records events, each by order and by customer, and the customers.
func Produce(ctx context.Context, brokers []string, records, keys int, seed uint64) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ProducerLinger(20*time.Millisecond), kgo.ProducerBatchMaxBytes(256<<10),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(200_000),
		kgo.UnknownTopicRetries(100)) // a broker on a busy machine takes a while to know of its topics
	if err != nil {
		return fmt.Errorf("client for the input: %w", err)
	}
	defer client.Close()
	if err := CreateTopic(ctx, kadm.NewClient(client), Orders, OrdersByCustomer, CustomerTable, Empty); err != nil {
		return err
	}
	var failed atomic.Pointer[error]
	send := func(topic, key string, value []byte, ts int64) {
		r := &kgo.Record{Topic: topic, Key: []byte(key), Value: value, Timestamp: time.UnixMilli(ts)}
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	for c := range Customers {
		send(CustomerTable, CustomerKey(c), CustomerValue(c), Base-1000)
	}
	g := NewGenerator(seed, keys, records)
	for range records {
		e := g.Next()
		send(Orders, OrderKey(e.Order), e.Value, e.Timestamp)
		send(OrdersByCustomer, CustomerKey(e.Order), e.Value, e.Timestamp)
	}
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("write the input: %w", err)
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("write the input: %w", *err)
	}
	return nil
}
