package embedded

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// killed returns a broker's directory as kill -9 would leave it now.
func killed(t *testing.T, dir string) string {
	t.Helper()
	left := filepath.Join(t.TempDir(), "left")
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return left
}

func produce(t *testing.T, c *kgo.Client, topic, value string) {
	t.Helper()
	if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func commit(t *testing.T, b *Broker, id, topic, value string) {
	t.Helper()
	c := client(t, b, kgo.TransactionalID(id))
	defer c.Close()
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, c, topic, value)
	if err := c.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
}

// committed reads the topic up to a record that says end.
func committed(t *testing.T, b *Broker, topic, end string) []string {
	t.Helper()
	c := client(t, b, kgo.ConsumeTopics(topic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(100*time.Millisecond))
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	for !slices.Contains(got, end) {
		fs := c.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		for _, r := range fs.Records() {
			got = append(got, string(r.Value))
		}
	}
	return got
}

// TestStopsInATransaction ends the broker while a transaction is open, and kills it once the same producer has committed another.
func TestStopsInATransaction(t *testing.T) {
	for name, stop := range map[string]func(t *testing.T, b *Broker, dir string) string{
		"closed": func(t *testing.T, b *Broker, dir string) string {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			return dir
		},
		"killed": func(t *testing.T, _ *Broker, dir string) string { return killed(t, dir) },
		"closed, and killed after the next start": func(t *testing.T, b *Broker, dir string) string {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			again := startBroker(t, BrokerConfig{Dir: dir})
			defer again.Close()
			return killed(t, dir)
		},
		"killed before the index was written": func(t *testing.T, _ *Broker, dir string) string {
			dir = killed(t, dir)
			indexes, err := filepath.Glob(filepath.Join(dir, "kafka", "partitions", "*", "*.idx"))
			if err != nil || len(indexes) != 1 {
				t.Fatal(indexes, err)
			}
			info, err := os.Stat(indexes[0])
			if err == nil {
				err = os.Truncate(indexes[0], info.Size()-indexEntrySize-5)
			}
			if err != nil {
				t.Fatal(err)
			}
			return dir
		},
		"killed while the topic was deleted": func(t *testing.T, _ *Broker, dir string) string {
			dir = killed(t, dir)
			partitions := filepath.Join(dir, "kafka", "partitions")
			if err := os.CopyFS(filepath.Join(partitions, "gone-0"), os.DirFS(filepath.Join(partitions, "orders-0"))); err != nil {
				t.Fatal(err)
			}
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := startBroker(t, BrokerConfig{Dir: dir})
			defer b.Close()
			admin := client(t, b)
			defer admin.Close()
			createTopic(t, admin, "orders", nil)
			commit(t, b, "writer", "orders", "before")
			open := client(t, b, kgo.TransactionalID("writer"))
			defer open.Close()
			if err := open.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			produce(t, open, "orders", "open")
			want := []string{"before", "after"}

			dir = stop(t, b, dir)
			again := startBroker(t, BrokerConfig{Dir: dir})
			defer again.Close()
			commit(t, again, "writer", "orders", "after")
			if got := committed(t, again, "orders", "after"); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			third := startBroker(t, BrokerConfig{Dir: killed(t, dir)})
			defer third.Close()
			if got := committed(t, third, "orders", "after"); !slices.Equal(got, want) {
				t.Errorf("after another crash: got %q, want %q", got, want)
			}
		})
	}
}

// TestMendKeepsTransactionTimeouts of the producers whose transactions it aborts, also where the broker takes short ones only.
func TestMendKeepsTransactionTimeouts(t *testing.T) {
	dir, configs := t.TempDir(), map[string]string{"transaction.max.timeout.ms": "30000"}
	b := startBroker(t, BrokerConfig{Dir: dir, Configs: configs})
	defer b.Close()
	c := client(t, b, kgo.TransactionalID("writer"), kgo.TransactionTimeout(20*time.Second))
	defer c.Close()
	createTopic(t, c, "orders", nil)
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, c, "orders", "open")
	for range 2 {
		dir = killed(t, dir)
		again := startBroker(t, BrokerConfig{Dir: dir, Configs: configs})
		defer again.Close()
		admin := client(t, again)
		defer admin.Close()
		got, err := kadm.NewClient(admin).DescribeTransactions(t.Context(), "writer")
		if err != nil || got["writer"].TimeoutMillis != 20_000 {
			t.Errorf("the transaction's timeout is %d ms, %v", got["writer"].TimeoutMillis, err)
		}
	}
}

// TestTornLogsAreMended has a crash leave parts of entries in the logs of groups and producers: what is written behind them counts.
func TestTornLogsAreMended(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, BrokerConfig{Dir: dir})
	defer b.Close()
	at := func(b *Broker, offset int64) {
		c := client(t, b)
		defer c.Close()
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: "orders", Partition: 0, At: offset, LeaderEpoch: -1})
		if err := kadm.NewClient(c).CommitAllOffsets(t.Context(), "readers", offsets); err != nil {
			t.Fatal(err)
		}
	}
	admin := client(t, b)
	defer admin.Close()
	createTopic(t, admin, "orders", nil)
	commit(t, b, "writer", "orders", "x")
	at(b, 1)
	dir = killed(t, dir)
	for _, log := range []string{"groups.log", "pids.log"} {
		path := filepath.Join(dir, "kafka", log)
		whole, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(whole, whole[:15]...), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again := startBroker(t, BrokerConfig{Dir: dir})
	defer again.Close()
	at(again, 2)
	third := startBroker(t, BrokerConfig{Dir: killed(t, dir)})
	defer third.Close()
	c := client(t, third)
	defer c.Close()
	got, err := kadm.NewClient(c).FetchOffsets(t.Context(), "readers")
	if o, _ := got.Lookup("orders", 0); err != nil || o.At != 2 {
		t.Errorf("got offset %d, %v, want 2", o.At, err)
	}
}

// TestCrashKeepsSequenceNumbers has a batch sent again after a crash, since its answer was lost: it is written once, also where an earlier stop had written
// older sequence numbers down, and the next one is taken.
func TestCrashKeepsSequenceNumbers(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, BrokerConfig{Dir: dir})
	defer b.Close()
	admin := client(t, b)
	defer admin.Close()
	createTopic(t, admin, "orders", nil)
	commit(t, b, "writer", "orders", "x") // another's
	send := func(b *Broker, batch []byte) (offset int64, err error) {
		c := client(t, b)
		defer c.Close()
		req := kmsg.NewPtrProduceRequest()
		req.Acks, req.TimeoutMillis = -1, 10_000
		topic, part := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		topic.Topic, topic.TopicID = "orders", b.Cluster().TopicInfo("orders").TopicID
		part.Records = slices.Concat(make([]byte, 8), batch[8:])
		topic.Partitions = append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
		resp, err := req.RequestWith(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		answer := resp.Topics[0].Partitions[0]
		return answer.BaseOffset, kerr.ErrorForCode(answer.ErrorCode)
	}
	batches := func(dir string) [][]byte {
		segment, err := os.ReadFile(filepath.Join(dir, "kafka", "partitions", "orders-0", "0.dat"))
		if err != nil {
			t.Fatal(err)
		}
		return wholeBatches(segment)
	}
	produce(t, admin, "orders", "1")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = startBroker(t, BrokerConfig{Dir: dir})
	defer b.Close()
	first := batches(dir)[2]
	next := func(n int) []byte { // the producer's n-th batch
		batch := slices.Clone(first)
		binary.BigEndian.PutUint32(batch[batchSequenceAt:], uint32(n))
		binary.BigEndian.PutUint32(batch[batchCRCAt:], crc32.Checksum(batch[batchAttributesAt:], castagnoli))
		return batch
	}
	for n := 1; n < 8; n++ {
		if offset, err := send(b, next(n)); err != nil || offset != int64(2+n) {
			t.Fatalf("batch %d: offset %d, %v", n, offset, err)
		}
	}
	again := startBroker(t, BrokerConfig{Dir: killed(t, dir)})
	defer again.Close()
	for _, n := range []int{7, 8, 5} {
		if offset, err := send(again, next(n)); err != nil || offset != int64(2+n) {
			t.Errorf("batch %d after the crash: offset %d, %v, want %d", n, offset, err, 2+n)
		}
	}
}

// TestMendFindsDirectoriesByAnyName has a directory whose name is a pattern that matches others.
func TestMendFindsDirectoriesByAnyName(t *testing.T) {
	for _, name := range []string{"data[1]", "data["} {
		dir := filepath.Join(t.TempDir(), name)
		b := startBroker(t, BrokerConfig{Dir: dir})
		defer b.Close()
		c := client(t, b, kgo.TransactionalID("writer"))
		defer c.Close()
		createTopic(t, c, "orders", nil)
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, c, "orders", "open")
		if open, err := mend(filepath.Join(dir, "kafka")); err != nil || len(open) != 1 {
			t.Errorf("%s: open transactions %v, %v", name, open, err)
		}
	}
}
