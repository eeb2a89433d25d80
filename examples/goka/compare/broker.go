package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	loyalty "github.com/tributary-io/tributary/examples/goka"
	"github.com/tributary-io/tributary/gokacompat"
)

// partitions of all topics.
const partitions = 3

// cluster is the brokers that both applications run against.
type cluster struct {
	addrs  []string
	client *kgo.Client
	admin  *kadm.Client
}

func connect(addrs []string) (*cluster, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &cluster{addrs, client, kadm.NewClient(client)}, nil
}

// create makes topics; those that are there stay.
func (c *cluster) create(ctx context.Context, policy string, topics ...string) error {
	answers, err := c.admin.CreateTopics(ctx, partitions, -1, map[string]*string{"cleanup.policy": &policy}, topics...)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	for _, a := range answers.Sorted() {
		if a.Err != nil && !errors.Is(a.Err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", a.Topic, a.Err)
		}
	}
	return nil
}

// prepare makes the topics of the application's neighbours, and fills their tables.
func (c *cluster) prepare(ctx context.Context, w loyalty.World) error {
	if err := c.create(ctx, "compact", string(loyalty.Customers), string(loyalty.Tiers)); err != nil {
		return err
	}
	if err := c.create(ctx, "delete", string(loyalty.Purchases)); err != nil {
		return err
	}
	var rows []*kgo.Record
	for tier, rate := range w.Tiers {
		rows = append(rows, record(string(loyalty.Tiers), tier, []byte(strconv.FormatInt(rate, 10))))
	}
	for name, customer := range w.Customers {
		rows = append(rows, record(string(loyalty.Customers), name, text(customer)))
	}
	return c.write(ctx, rows)
}

// buy writes purchases.
func (c *cluster) buy(ctx context.Context, purchases []loyalty.KeyedPurchase) error {
	var rows []*kgo.Record
	for _, p := range purchases {
		rows = append(rows, record(string(loyalty.Purchases), p.Customer, text(p.Purchase)))
	}
	return c.write(ctx, rows)
}

// record is a record in the partition where goka looks for its key.
func record(topic, key string, value []byte) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: gokacompat.GokaPartition([]byte(key), partitions), Key: []byte(key), Value: value}
}

func text(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of plain structs
	}
	return data
}

func (c *cluster) write(ctx context.Context, records []*kgo.Record) error {
	if err := c.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("write input: %w", err)
	}
	return nil
}

// through waits until a group has processed its input and its loop.
func (c *cluster) through(ctx context.Context, group goka.Group) error {
	topics := []string{string(loyalty.Purchases), string(group) + "-loop"} // in this order: purchases fill the loop
	for left := topics; len(left) > 0; {
		done, err := c.processed(ctx, string(group), left[0])
		if err != nil {
			return err
		}
		if done {
			left = left[1:]
			continue
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("group %s has not processed %s: %w", group, left[0], ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// processed tells whether the offsets at the ends of a topic are committed.
func (c *cluster) processed(ctx context.Context, group, topic string) (bool, error) {
	ends, err := c.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return false, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	committed, err := c.admin.FetchOffsets(ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) || kerr.IsRetriable(err) {
		return false, nil // nobody has joined yet, or the coordinator is just being found
	}
	if err != nil {
		return false, fmt.Errorf("fetch offsets of group %s: %w", group, err)
	}
	done := len(ends[topic]) == partitions
	ends.Each(func(end kadm.ListedOffset) {
		at, ok := committed.Lookup(end.Topic, end.Partition)
		if end.Err != nil || end.Offset > 0 && (!ok || at.At < end.Offset) {
			done = false
		}
	})
	return done, nil
}

// read reads a topic to its end, as far as it is committed.
func (c *cluster) read(ctx context.Context, topic string) (all []*kgo.Record, err error) {
	ends, err := c.admin.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	left := map[int32]int64{}
	from := map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		if end.Offset > 0 {
			left[end.Partition], from[end.Partition] = end.Offset, kgo.NewOffset().AtStart()
		}
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	defer client.Close()
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(ctx.Err(), fetches.Err()); err != nil {
			return nil, fmt.Errorf("read %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
			if r.Offset >= left[r.Partition]-1 {
				delete(left, r.Partition)
			}
		})
	}
	return all, nil
}

// outcome is what an application has come to.
type outcome struct {
	Accounts   map[string]loyalty.Account
	Rewards    map[string][]int64 // their numbers, sorted
	Statements map[string]int64   // points
}

func (c *cluster) outcome(ctx context.Context, group goka.Group) (o outcome, err error) {
	o = outcome{map[string]loyalty.Account{}, map[string][]int64{}, map[string]int64{}}
	rows, err := c.read(ctx, string(goka.GroupTable(group)))
	if err != nil {
		return o, err
	}
	for _, r := range rows {
		var a loyalty.Account
		if r.Value == nil {
			delete(o.Accounts, string(r.Key))
		} else if err := json.Unmarshal(r.Value, &a); err != nil {
			return o, fmt.Errorf("account of %s: %w", r.Key, err)
		} else {
			o.Accounts[string(r.Key)] = a
		}
	}
	rewards, err := c.read(ctx, string(loyalty.Rewards(group)))
	if err != nil {
		return o, err
	}
	for _, r := range rewards {
		var reward loyalty.Reward
		if err := json.Unmarshal(r.Value, &reward); err != nil {
			return o, fmt.Errorf("reward of %s: %w", r.Key, err)
		}
		if reward.Statement != "" {
			o.Statements[string(r.Key)] = reward.Points
			continue
		}
		o.Rewards[string(r.Key)] = append(o.Rewards[string(r.Key)], reward.Number)
	}
	for _, numbers := range o.Rewards {
		slices.Sort(numbers)
	}
	return o, nil
}

// expected is what the input comes to if each purchase counts once.
func expected(w loyalty.World, statements bool) outcome {
	o := outcome{w.Accounts(), map[string][]int64{}, map[string]int64{}}
	for customer, n := range w.Rewards() {
		for i := range n {
			o.Rewards[customer] = append(o.Rewards[customer], i+1)
		}
	}
	if !statements {
		return o
	}
	for customer, a := range o.Accounts {
		o.Statements[customer] = a.Points
		a.Statements++
		o.Accounts[customer] = a
	}
	return o
}

// totals are what a person can compare.
func (o outcome) totals() (accounts, points, purchases, rewards, statements int64) {
	for _, a := range o.Accounts {
		points += a.Points
		purchases += a.Purchases
	}
	for _, name := range slices.Collect(maps.Keys(o.Rewards)) {
		rewards += int64(len(o.Rewards[name]))
	}
	return int64(len(o.Accounts)), points, purchases, rewards, int64(len(o.Statements))
}
