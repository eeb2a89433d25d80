package offsets

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) { realkafka.Main(m) }

// outsider commits without membership, which is allowed while a group has no members.
var outsider = Member{Generation: -1}

func TestCommitAndFetch(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		client := c.Client(t)
		id := c.CreateTopic(t, "commit-and-fetch", 3)
		part := func(p int32) Partition { return Partition{"commit-and-fetch", id, p} }
		meta := Metadata{PartitionTime: 7}.Encode()
		if err := Commit(t.Context(), client, "g1", outsider, []Position{{part(0), 5, meta}, {part(2), 9, ""}}); err != nil {
			t.Fatal(err)
		}
		got, err := Fetch(t.Context(), client, "g1", []Partition{part(2), part(1), part(0)})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]Position{{part(2), 9, ""}, {part(1), None, ""}, {part(0), 5, meta}}, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestCommitOfAStrangerIsRefused(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		client := c.Client(t)
		id := c.CreateTopic(t, "stranger", 1)
		err := Commit(t.Context(), client, "g2", Member{ID: "nobody", Generation: 3}, []Position{{Partition{"stranger", id, 0}, 1, ""}})
		if !LostMembership(err) {
			t.Fatalf("got %v, want an error of lost membership", err)
		}
	})
}

// An offset in an open transaction holds Fetch up; once the transaction is aborted, the old one comes.
func TestFetchWaitsForOpenTransactions(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		client := c.Client(t)
		part := Partition{"unstable", c.CreateTopic(t, "unstable", 1), 0}
		if err := Commit(t.Context(), client, "g3", outsider, []Position{{part, 1, ""}}); err != nil {
			t.Fatal(err)
		}
		pid, epoch := openOffsetTransaction(t, client, "g3", part, 2)

		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if got, err := Fetch(short, client, "g3", []Partition{part}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, %v while a transaction is open, want to wait", got, err)
		}
		endTransaction(t, client, pid, epoch, false)
		got, err := Fetch(t.Context(), client, "g3", []Partition{part})
		if err != nil || got[0].Offset != 1 {
			t.Fatalf("got %v, %v after the abort, want offset 1", got, err)
		}
	})
}

const rawTxn = "offsets-test-txn"

// openOffsetTransaction opens a transaction that holds an offset, by raw requests of the first transaction protocol.
func openOffsetTransaction(t *testing.T, client *kgo.Client, group string, p Partition, offset int64) (int64, int16) {
	t.Helper()
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionalID, init.TransactionTimeoutMillis = kmsg.StringPtr(rawTxn), 60_000
	started, err := init.RequestWith(t.Context(), client)
	if err != nil || started.ErrorCode != 0 {
		t.Fatal(err, kerr.ErrorForCode(started.ErrorCode))
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = rawTxn, started.ProducerID, started.ProducerEpoch, group
	if added, err := add.RequestWith(t.Context(), client); err != nil || added.ErrorCode != 0 {
		t.Fatal(err, kerr.ErrorForCode(added.ErrorCode))
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = rawTxn, group, started.ProducerID, started.ProducerEpoch
	commit.Generation = -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = p.Topic, p.ID
	part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	part.Partition, part.Offset = p.Partition, offset
	topic.Partitions = append(topic.Partitions, part)
	commit.Topics = append(commit.Topics, topic)
	done, err := commit.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(done.Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
	return started.ProducerID, started.ProducerEpoch
}

func endTransaction(t *testing.T, client *kgo.Client, pid int64, epoch int16, commit bool) {
	t.Helper()
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = rawTxn, pid, epoch, commit
	if ended, err := end.RequestWith(t.Context(), client); err != nil || ended.ErrorCode != 0 {
		t.Fatal(err, kerr.ErrorForCode(ended.ErrorCode))
	}
}
