package txn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) { realkafka.Main(m) }

// outsider commits without membership, which is allowed while a group has no members.
var outsider = offsets.Member{Generation: -1}

type fixture struct {
	t      *testing.T
	c      *brokertest.Cluster
	client *kgo.Client
	name   string // of the topic, group and transactional id
	part   offsets.Partition
}

func newFixture(t *testing.T, c *brokertest.Cluster, name string) *fixture {
	return &fixture{t: t, c: c, client: c.Client(t), name: name, part: offsets.Partition{Topic: name, ID: c.CreateTopic(t, name, 2)}}
}

func (f *fixture) producer(opts ...kgo.Opt) *Producer {
	f.t.Helper()
	p := New(Config{
		Client:          append([]kgo.Opt{kgo.SeedBrokers(f.c.Addrs...)}, opts...),
		TransactionalID: f.name, Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
	if err := p.Reset(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(p.Close)
	return p
}

func (f *fixture) produce(p *Producer, value string) {
	f.t.Helper()
	f.produceTo(p, 1, value)
}

func (f *fixture) produceTo(p *Producer, partition int32, value string) {
	f.t.Helper()
	if err := p.Hand().Produce(f.t.Context(), Record{Topic: f.name, Partition: partition, Value: []byte(value), Timestamp: time.Now().UnixMilli()}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) offsets(m offsets.Member, at int64) Offsets {
	return Offsets{Group: f.name, Member: m, Positions: []offsets.Position{{Partition: f.part, Offset: at}}}
}

func (f *fixture) commit(p *Producer, offset int64) {
	f.t.Helper()
	outcome, err := p.Commit(f.t.Context(), f.offsets(outsider, offset))
	if outcome != Committed || err != nil {
		f.t.Fatalf("commit: %v, %v", outcome, err)
	}
}

// want checks what a read_committed reader sees in partition 1, and the committed offset.
func (f *fixture) want(offset int64, values ...string) {
	f.t.Helper()
	got, err := offsets.Fetch(f.t.Context(), f.client, f.name, []offsets.Partition{f.part})
	if err != nil || got[0].Offset != offset {
		f.t.Fatalf("committed offset: %v, %v, want %d", got, err, offset)
	}
	reader := f.c.Client(f.t, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{f.name: {1: kgo.NewOffset().AtStart()}}))
	var read []string
	wait := 2 * time.Minute // for what is expected; then a while for what isn't
	if len(values) == 0 {
		wait = 300 * time.Millisecond
	}
	for end := time.Now().Add(wait); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(f.t.Context(), 100*time.Millisecond)
		reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if read = append(read, string(r.Value)); len(read) == len(values) {
				end = time.Now().Add(300 * time.Millisecond)
			}
		})
		cancel()
	}
	if fmt.Sprint(read) != fmt.Sprint(values) {
		f.t.Fatalf("read %v, want %v", read, values)
	}
}

// eachProtocol runs f with both protocols of transactions: implicit (KIP-890, transaction.version 2) and the one before it.
func eachProtocol(t *testing.T, f func(t *testing.T, c *brokertest.Cluster)) {
	brokertest.Each(t, f)
	t.Run("kafka 3.5", func(t *testing.T) { f(t, brokertest.Old(t, kversion.V3_5_0())) })
}

func TestCommitAbortCommit(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *brokertest.Cluster) {
		f := newFixture(t, c, "commit-abort-commit")
		p := f.producer()
		f.produce(p, "a")
		f.commit(p, 1)
		f.produce(p, "lost")
		if err := p.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.produce(p, "b")
		f.produce(p, "c")
		f.commit(p, 3)
		f.want(3, "a", "b", "c")
	})
}

// What a dead producer left open is not seen, and its successor goes on at once.
func TestResetEndsWhatWasOpen(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *brokertest.Cluster) {
		f := newFixture(t, c, "reset")
		dead := f.producer()
		f.produce(dead, "lost")
		if err := dead.client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := dead.sendOffsets(t.Context(), f.offsets(outsider, 9)); err != nil {
			t.Fatal(err)
		}
		p := f.producer()
		f.want(offsets.None)
		f.produce(p, "a")
		f.commit(p, 1)
		f.want(1, "a")

		outcome, err := dead.Commit(t.Context(), f.offsets(outsider, 9))
		if outcome == Committed || err == nil {
			t.Fatalf("the fenced producer's commit: %v, %v", outcome, err)
		}
		f.want(1, "a")
	})
}

// A member that is none can't commit offsets, and its records go with them.
func TestStrangersTransactionAborts(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *brokertest.Cluster) {
		f := newFixture(t, c, "stranger")
		p := f.producer()
		f.produce(p, "lost")
		outcome, err := p.Commit(t.Context(), f.offsets(offsets.Member{ID: "nobody", Generation: 4}, 1))
		if outcome != Aborted || !offsets.LostMembership(err) {
			t.Fatalf("got %v, %v", outcome, err)
		}
		if err := p.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.produce(p, "a")
		f.commit(p, 2)
		f.want(2, "a")
	})
}

// The reply to the end is lost after the coordinator has committed: unknown, and Reset plus Fetch tell that it landed.
func TestLostReplyIsUnknownAndSettledByReset(t *testing.T) {
	c := brokertest.Embedded(t)
	f := newFixture(t, c, "lost-reply")
	p := f.producer(kgo.RequestRetries(0))
	f.produce(p, "a")
	c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, TopLevel: true, Err: kerr.UnknownServerError})
	outcome, err := p.Commit(t.Context(), f.offsets(outsider, 1))
	if outcome != Unknown || err == nil {
		t.Fatalf("got %v, %v", outcome, err)
	}
	if err := p.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.want(offsets.None) // the fault answers without committing, and Reset aborts
	f.produce(p, "b")
	f.commit(p, 2)
	f.want(2, "b")
}

// The coordinator has forgotten the producer (KAFKA-16699): the transaction is lost, the process is not.
func TestForgottenProducerStartsAnew(t *testing.T) {
	c := brokertest.Embedded(t)
	f := newFixture(t, c, "forgotten")
	p := f.producer()
	f.produce(p, "lost")
	c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.InvalidProducerIDMapping})
	outcome, err := p.Commit(t.Context(), f.offsets(outsider, 1))
	if outcome != Aborted || !errors.Is(err, kerr.InvalidProducerIDMapping) {
		t.Fatalf("got %v, %v", outcome, err)
	}
	if err := p.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.produce(p, "a")
	f.commit(p, 1)
	f.want(1, "a")
}

func TestFailedRecordSpoilsTheTransaction(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		f := newFixture(t, c, "failed-record")
		p := f.producer()
		f.produce(p, "lost")
		if err := p.Hand().Produce(t.Context(), Record{Topic: f.name, Partition: 7, Value: []byte("x")}); err != nil { // there is no partition 7
			t.Fatal(err)
		}
		outcome, err := p.Commit(t.Context(), f.offsets(outsider, 1))
		var bad *ProduceError
		if outcome != Aborted || !errors.As(err, &bad) || bad.Partition != 7 {
			t.Fatalf("got %v, %v", outcome, err)
		}
		if err := p.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.produce(p, "a")
		f.commit(p, 1)
		f.want(1, "a")
	})
}

// Records of a transaction tell their offsets, and offsets of two groups go with it.
func TestEndsAndTwoGroups(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		f := newFixture(t, c, "ends")
		p := f.producer()
		for _, want := range []int64{2, 5} { // the marker of the first is in between
			var end End
			for range 2 {
				if err := p.Hand().Produce(t.Context(), Record{Topic: f.name, Partition: 1, Value: []byte("x"), Timestamp: time.Now().UnixMilli(), End: &end}); err != nil {
					t.Fatal(err)
				}
			}
			other := f.offsets(outsider, want)
			other.Group += "-other"
			if outcome, err := p.Commit(t.Context(), f.offsets(outsider, 7), other); outcome != Committed {
				t.Fatal(outcome, err)
			}
			if end.Next() != want {
				t.Errorf("end %d, want %d", end.Next(), want)
			}
			got, err := offsets.Fetch(t.Context(), f.client, other.Group, []offsets.Partition{f.part})
			if err != nil || got[0].Offset != want {
				t.Errorf("the other group: %v %v, want %d", got, err, want)
			}
		}
	})
}

func TestAtLeastOnce(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		f := newFixture(t, c, "at-least-once")
		p := New(Config{Client: []kgo.Opt{kgo.SeedBrokers(c.Addrs...)}, Logger: slog.New(slog.DiscardHandler)})
		if err := p.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		f.produce(p, "a")
		f.commit(p, 1)
		f.produce(p, "b")
		f.commit(p, 2)
		f.want(2, "a", "b")
	})
}
