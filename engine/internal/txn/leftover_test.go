package txn

import (
	"hash/crc32"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// What a coordinator left open isn't ended with what comes after it, but as its own transaction was. Here nobody ever told the coordinator of it, which
// brokers of old allowed, and today's do when they are told to.
func TestSettleLeftover(t *testing.T) {
	k := realkafka.StartWith(t, 1, map[string]string{"transaction.partition.verification.enable": "false"})
	c := &brokertest.Cluster{Addrs: k.Addrs()}
	t.Run("of an aborted transaction", func(t *testing.T) { settleAborted(newFixture(t, c, "leftover")) })
	t.Run("of a committed transaction", func(t *testing.T) {
		settleCommitted(newFixture(t, c, "leftover-committed"), func(f *fixture, p *Producer) *Producer {
			if err := p.Reset(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
			return p
		})
	})
	t.Run("of a committed transaction, with nothing after it", func(t *testing.T) {
		settleCommitted(newFixture(t, c, "leftover-last"), func(f *fixture, p *Producer) *Producer {
			if err := p.AwaitMarks(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
			return p
		})
	})
	t.Run("of a dead process's committed transaction", func(t *testing.T) {
		settleCommitted(newFixture(t, c, "leftover-inherited"), func(f *fixture, _ *Producer) *Producer { return f.producer() })
	})
	t.Run("of a committed transaction, and another was begun", func(t *testing.T) {
		settleCommitted(newFixture(t, c, "leftover-followed"), func(f *fixture, p *Producer) *Producer {
			f.produceTo(p, 0, "lost")
			if err := p.client.Flush(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
			if err := p.Reset(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
			return p
		})
	})
}

func settleAborted(f *fixture) {
	p := f.producer()
	f.produce(p, "first")
	f.commit(p, 1)
	if err := p.Reset(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.settles(p, Leftover{})
	f.leaveOpen(p, "ghost", 7)
	if err := p.Reset(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.settles(p, Leftover{Aborted: []string{f.name + "-1"}, Groups: []string{f.name}})
	f.settles(p, Leftover{})
	f.produce(p, "next")
	f.commit(p, 2)
	f.want(2, "first", "next")
	f.wantOther(offsets.None)
}

// settleCommitted lets a coordinator commit a transaction without the mark of its end in partition 1, and in what is pending of the group. restart
// gives the producer that finds it.
func settleCommitted(f *fixture, restart func(*fixture, *Producer) *Producer) {
	p := f.producer()
	f.leaveOpen(p, "left", 7)
	f.produceTo(p, 0, "marked")
	if outcome, err := p.Commit(f.t.Context()); outcome != Committed || err != nil {
		f.t.Fatalf("commit: %v, %v", outcome, err)
	}
	p = restart(f, p)
	f.settles(p, Leftover{Committed: []string{f.name + "-1"}, Groups: []string{f.name}})
	f.settles(p, Leftover{})
	f.produce(p, "next")
	f.commit(p, 2)
	f.want(2, "left", "next")
	f.wantOther(7)
}

func (f *fixture) other() offsets.Partition {
	p := f.part
	p.Partition = 1
	return p
}

func (f *fixture) wantOther(want int64) {
	f.t.Helper()
	at, err := offsets.Fetch(f.t.Context(), f.client, f.name, []offsets.Partition{f.other()})
	if err != nil || at[0].Offset != want {
		f.t.Errorf("the open offset: %v, %v; want %d", at, err, want)
	}
}

func (f *fixture) settles(p *Producer, want Leftover) {
	f.t.Helper()
	found, err := p.Settle(f.t.Context(), map[string]int32{f.name: 2}, Reader{f.name, []offsets.Partition{f.part, f.other()}})
	if err != nil {
		f.t.Fatal(err)
	}
	if d := cmp.Diff(want, found); d != "" {
		f.t.Errorf("found (-want +got):\n%s", d)
	}
}

// leaveOpen writes a record to partition 1, and an offset of it, as parts of a transaction that the coordinator knows nothing of.
func (f *fixture) leaveOpen(p *Producer, value string, at int64) {
	f.t.Helper()
	id, epoch, err := p.client.ProducerID(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	old := kversion.Stable()
	old.SetMaxKeyVersion(int16(kmsg.Produce), 11)
	old.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4)
	client := f.c.Client(f.t, kgo.MaxVersions(old))
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = &f.name, -1, 5000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = f.name
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = 1, transactionalBatch(id, epoch, value)
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	err = retry(f.t.Context(), func() error { // the topic may be just made, without a leader yet
		resp, err := req.RequestWith(f.t.Context(), client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	})
	if err != nil {
		f.t.Fatal(err)
	}
	raw := &Producer{cfg: p.cfg, client: client}
	if err := raw.commitOffsets(f.t.Context(), id, epoch, Offsets{Group: f.name, Member: outsider, Positions: []offsets.Position{{Partition: f.other(), Offset: at}}}); err != nil {
		f.t.Fatal(err)
	}
}

// transactionalBatch is one record in Kafka's batch format, version 2.
func transactionalBatch(id int64, epoch int16, value string) []byte {
	now := time.Now().UnixMilli()
	r := kmsg.Record{Value: []byte(value)}
	r.Length = int32(len(r.AppendTo(nil))) - 1 // without the length itself, a byte for records this small
	b := kmsg.RecordBatch{
		Magic: 2, Attributes: 0x10, FirstTimestamp: now, MaxTimestamp: now, ProducerID: id, ProducerEpoch: epoch, NumRecords: 1,
		Records: r.AppendTo(nil),
	}
	raw := b.AppendTo(nil)
	b.Length = int32(len(raw)) - 12
	b.CRC = int32(crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}
