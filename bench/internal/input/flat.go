package input

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Flat is an input of small records, for how costs grow: with a number of keys, or with what is live of a key.
type Flat struct {
	Topic      string
	Partitions int32
	Keys       int
	Each       bool          // first comes one record of each key
	Records    int           // of keys at random
	Span       time.Duration // event times are spread over it at random. 0: all are at Base
}

// Total is how many records there are.
func (f Flat) Total() int {
	if f.Each {
		return f.Keys + f.Records
	}
	return f.Records
}

// Write creates the topic and writes the records.
func (f Flat) Write(ctx context.Context, brokers []string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ProducerLinger(20*time.Millisecond), kgo.ProducerBatchMaxBytes(256<<10),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(100_000), kgo.UnknownTopicRetries(100))
	if err != nil {
		return fmt.Errorf("client for %s: %w", f.Topic, err)
	}
	defer client.Close()
	forever := "-1"
	if _, err := kadm.NewClient(client).CreateTopic(ctx, f.Partitions, 1, map[string]*string{"retention.ms": &forever}, f.Topic); err != nil {
		return fmt.Errorf("create topic %s: %w", f.Topic, err)
	}
	var failed atomic.Pointer[error]
	f.each(func(key, value []byte, timestamp int64) {
		r := &kgo.Record{Topic: f.Topic, Key: key, Value: value, Timestamp: time.UnixMilli(timestamp)}
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	})
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("write %s: %w", f.Topic, err)
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("write %s: %w", f.Topic, *err)
	}
	return nil
}

// keyStep is a prime above any number of keys, so that its multiples walk all keys, and not in their order.
const keyStep = 2_147_483_647

// each gives the records. The same arguments give the same.
func (f Flat) each(send func(key, value []byte, timestamp int64)) {
	g := Generator{state: 1}
	for i := range f.Total() {
		key := uint64(i) * keyStep
		if !f.Each || i >= f.Keys {
			key = g.draw()
		}
		timestamp := Base
		if f.Span > 0 {
			timestamp += int64(g.draw() % uint64(f.Span.Milliseconds()))
		}
		k := strconv.AppendUint(append(make([]byte, 0, 12), "k-"...), key%uint64(f.Keys), 10)
		send(k, binary.BigEndian.AppendUint64(nil, uint64(i)), timestamp)
	}
}
