package txn

import (
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// What a coordinator left open isn't committed with what comes after it. Here nobody ever told the coordinator of it, which brokers of old
// allowed, and today's do when they are told to.
func TestSettleLeftover(t *testing.T) {
	k := realkafka.StartWith(t, 1, map[string]string{"transaction.partition.verification.enable": "false"})
	f := newFixture(t, &brokertest.Cluster{Addrs: k.Addrs()}, "leftover")
	p := f.producer()
	f.produce(p, "first")
	f.commit(p, 1)
	if err := p.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.settles(p, nil, nil)
	f.leaveOpen(p, "ghost", 7)
	if err := p.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.settles(p, []string{"leftover-1"}, []string{"leftover"})
	f.settles(p, nil, nil)
	f.produce(p, "next")
	f.commit(p, 2)
	f.want(2, "first", "next")
	at, err := offsets.Fetch(t.Context(), f.client, f.name, []offsets.Partition{f.other()})
	if err != nil || at[0].Offset != offsets.None {
		t.Errorf("the open offset: %v, %v; want none", at, err)
	}
}

func (f *fixture) other() offsets.Partition {
	p := f.part
	p.Partition = 1
	return p
}

func (f *fixture) settles(p *Producer, partitions, groups []string) {
	f.t.Helper()
	found, err := p.Settle(f.t.Context(), map[string]int32{f.name: 2}, Reader{f.name, []offsets.Partition{f.part, f.other()}})
	if err != nil {
		f.t.Fatal(err)
	}
	if !slices.Equal(found.Partitions, partitions) || !slices.Equal(found.Groups, groups) || len(found.Unchecked) > 0 {
		f.t.Errorf("found %+v, want %v and %v", found, partitions, groups)
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
	resp, err := req.RequestWith(f.t.Context(), client)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode); err != nil {
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
