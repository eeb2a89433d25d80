package embedded

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func startBroker(t *testing.T, cfg BrokerConfig) *Broker {
	t.Helper()
	b, err := StartBroker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func client(t *testing.T, b *Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.Addrs()...))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func createTopic(t *testing.T, c *kgo.Client, topic string, configs map[string]*string) {
	t.Helper()
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, configs, topic); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsOutliveTheBroker(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, BrokerConfig{Dir: dir})
	c := client(t, b)
	createTopic(t, c, "orders", nil)
	if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	b = startBroker(t, BrokerConfig{Dir: dir})
	defer b.Close()
	if got := consume(t, b, "orders", 1); string(got[0].Value) != "x" {
		t.Fatalf("got %q", got[0].Value)
	}
}

func TestCompactedTopicsKeepOldRecords(t *testing.T) {
	b := startBroker(t, BrokerConfig{})
	defer b.Close()
	c := client(t, b)
	defer c.Close()
	for policy, keeps := range map[string]bool{"compact": true, "compact,delete": false} {
		topic := "table-" + policy[len(policy)-6:]
		createTopic(t, c, topic, map[string]*string{"cleanup.policy": &policy, "retention.ms": kadm.StringPtr("1000")})
		for _, value := range []string{"old", "new"} {
			r := &kgo.Record{Topic: topic, Key: []byte(value), Value: []byte(value)}
			if value == "old" {
				r.Timestamp = time.UnixMilli(1)
			}
			if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		b.Cluster().ApplyRetention()
		if got := consume(t, b, topic, 1); keeps != (string(got[0].Value) == "old") {
			t.Errorf("policy %s: the first record is %q", policy, got[0].Value)
		}
	}
}

// What an open transaction writes must not cost what was committed before it: the transaction may be aborted.
func TestOpenTransactionsLeaveCompactedTopicsAlone(t *testing.T) {
	b := startBroker(t, BrokerConfig{})
	defer b.Close()
	c := client(t, b)
	defer c.Close()
	compact := "compact"
	createTopic(t, c, "table", map[string]*string{"cleanup.policy": &compact})
	if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "table", Key: []byte("k"), Value: []byte("committed")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	writer := client(t, b, kgo.TransactionalID("writer"))
	defer writer.Close()
	if err := writer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k", "other"} {
		if err := writer.ProduceSync(t.Context(), &kgo.Record{Topic: "table", Key: []byte(key), Value: []byte("open")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(1500 * time.Millisecond) // for a cleaner that doesn't wait
	if err := writer.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	reader := client(t, b, kgo.ConsumeTopics("table"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got := reader.PollFetches(ctx).Records(); len(got) != 1 || string(got[0].Value) != "committed" {
		t.Errorf("read %d records, want the one that was committed", len(got))
	}
}

func TestDirectoryInUseIsRefused(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, BrokerConfig{Dir: dir})
	defer b.Close()
	_, err := StartBroker(BrokerConfig{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Fatalf("got %v, want an error that says the directory is in use", err)
	}
}

func TestTopicsAreNotMadeByThemselves(t *testing.T) {
	b := startBroker(t, BrokerConfig{})
	defer b.Close()
	c := client(t, b, kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(1))
	defer c.Close()
	if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "nosuch", Value: []byte("x")}).FirstErr(); err == nil {
		t.Fatal("a record went to a topic that nobody created")
	}
}

func TestLogAppendTimeIsTheBrokersClock(t *testing.T) {
	b := startBroker(t, BrokerConfig{})
	defer b.Close()
	c := client(t, b)
	defer c.Close()
	createTopic(t, c, "created", nil)
	createTopic(t, c, "appended", map[string]*string{"message.timestamp.type": kadm.StringPtr("LogAppendTime")})
	long := time.UnixMilli(1_000)
	before := time.Now().Truncate(time.Millisecond)
	for _, topic := range []string{"created", "appended"} {
		for range 2 { // compressible, so that the codec is in the batch too
			r := &kgo.Record{Topic: topic, Value: []byte(strings.Repeat("x", 1000)), Timestamp: long}
			if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, r := range consume(t, b, "created", 2) {
		if !r.Timestamp.Equal(long) {
			t.Errorf("CreateTime topic: got %v, want the producer's %v", r.Timestamp, long)
		}
	}
	for _, r := range consume(t, b, "appended", 2) {
		if r.Timestamp.Before(before) || r.Timestamp.After(time.Now()) {
			t.Errorf("LogAppendTime topic: got %v, want the time of the append", r.Timestamp)
		}
	}
}

func consume(t *testing.T, b *Broker, topic string, n int) []*kgo.Record {
	t.Helper()
	c := client(t, b, kgo.ConsumeTopics(topic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []*kgo.Record
	for len(got) < n {
		fs := c.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			t.Fatalf("%d of %d records: %v", len(got), n, err)
		}
		got = append(got, fs.Records()...)
	}
	return got
}
