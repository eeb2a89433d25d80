package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// Leftover is what Settle found of earlier transactions that their coordinator took for ended, though their ends were never marked.
type Leftover struct {
	Partitions []string // topic-partition, with records that were open still
	Groups     []string // with offsets that were pending, perhaps another producer's
	Unchecked  []string // topics that this user may not read, so that nothing is known of them
}

// Reader is a group whose pending offsets Settle looks for, in the partitions that the caller commits.
type Reader struct {
	Group string
	Parts []offsets.Partition
}

// Settle ends what is left open of this producer's earlier transactions, after Reset and before anything is produced.
//
// Reset makes the coordinator end them, which marks their ends in each partition that they wrote to. But a coordinator that comes back with
// its broker before the leaders of those partitions are known leaves these out ("these partitions are likely deleted already"; seen with
// Kafka 4.3.1 where all replicas of a partition were down), and the transaction counts as ended all the same. Its records and offsets stay
// open; and the end of this producer's next transaction there would be theirs too: aborted work would be committed. So each of the topics'
// partitions is asked for open transactions of this producer (KIP-664), each group for pending offsets; where there are some, a transaction
// is begun there, and aborted, which ends both.
//
// topics are those that the producer may have written to, with their numbers of partitions. Settle waits until ctx ends for partitions
// without a leader.
func (p *Producer) Settle(ctx context.Context, topics map[string]int32, readers ...Reader) (Leftover, error) {
	var found Leftover
	if p.cfg.TransactionalID == "" {
		return found, nil
	}
	id, epoch, err := p.client.ProducerID(ctx)
	if err != nil {
		return found, fmt.Errorf("producer id: %w", err)
	}
	if epoch == 0 { // nobody has produced with it before
		return found, nil
	}
	open, unchecked, err := p.openPartitions(ctx, id, topics)
	if err != nil {
		return found, err
	}
	pending, err := p.pendingGroups(ctx, readers)
	if err != nil {
		return found, err
	}
	found.Unchecked = unchecked
	for _, o := range open {
		found.Partitions = append(found.Partitions, fmt.Sprintf("%s-%d", o.Topic, o.Partition))
	}
	for _, r := range pending {
		found.Groups = append(found.Groups, r.Group)
	}
	if len(open) == 0 && len(pending) == 0 {
		return found, nil
	}
	if err := p.abortAgain(ctx, open, pending); err != nil {
		return found, fmt.Errorf("abort what was left open in %v, groups %v: %w", found.Partitions, found.Groups, err)
	}
	if err := p.Reset(ctx); err != nil {
		return found, err
	}
	if open, _, err = p.openPartitions(ctx, id, topics); err == nil && len(open) > 0 {
		err = fmt.Errorf("%d partitions still have an open transaction of producer id %d, such as %s-%d", len(open), id, open[0].Topic, open[0].Partition)
	}
	return found, err
}

// openPartitions lists where the producer id has a transaction open, and the topics that can't be looked at.
func (p *Producer) openPartitions(ctx context.Context, id int64, topics map[string]int32) (open []kgo.Record, unchecked []string, err error) {
	req := kmsg.NewPtrDescribeProducersRequest()
	for topic, n := range topics {
		t := kmsg.NewDescribeProducersRequestTopic()
		t.Topic = topic
		for partition := range n {
			t.Partitions = append(t.Partitions, partition)
		}
		req.Topics = append(req.Topics, t)
	}
	if len(req.Topics) == 0 {
		return nil, nil, nil
	}
	err = retry(ctx, func() error {
		open, unchecked = nil, nil
		for _, shard := range p.client.RequestSharded(ctx, req) {
			if errors.Is(shard.Err, kerr.UnknownTopicOrPartition) || errors.Is(shard.Err, kerr.UnsupportedVersion) {
				continue // gone; and brokers before 2.8 don't say
			}
			if shard.Err != nil {
				return fmt.Errorf("describe producers: %w", shard.Err)
			}
			for _, t := range shard.Resp.(*kmsg.DescribeProducersResponse).Topics {
				for _, part := range t.Partitions {
					switch err := kerr.ErrorForCode(part.ErrorCode); {
					case errors.Is(err, kerr.TopicAuthorizationFailed):
						unchecked = append(unchecked, t.Topic)
					case errors.Is(err, kerr.UnknownTopicOrPartition):
					case err != nil:
						return fmt.Errorf("describe producers of %s-%d: %w", t.Topic, part.Partition, err)
					case opens(part.ActiveProducers, id):
						open = append(open, kgo.Record{Topic: t.Topic, Partition: part.Partition})
					}
				}
			}
		}
		return nil
	})
	slices.SortFunc(open, func(a, b kgo.Record) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	slices.Sort(unchecked)
	return open, slices.Compact(unchecked), err
}

func opens(active []kmsg.DescribeProducersResponseTopicPartitionActiveProducer, id int64) bool {
	return slices.ContainsFunc(active, func(a kmsg.DescribeProducersResponseTopicPartitionActiveProducer) bool {
		return a.ProducerID == id && a.CurrentTxnStartOffset >= 0
	})
}

// pendingGroups are the groups with offsets in a transaction that isn't ended, whosesoever.
func (p *Producer) pendingGroups(ctx context.Context, readers []Reader) (pending []Reader, err error) {
	for _, r := range readers {
		stable, err := offsets.Stable(ctx, p.client, r.Group, r.Parts)
		if err != nil {
			return nil, err
		}
		if !stable {
			pending = append(pending, r)
		}
	}
	return pending, nil
}

// leftoverKey is the key of the records that begin a transaction which is aborted. Compacted topics take none without.
const leftoverKey = "tributary-abort"

// committed is an offset that the group has committed already: to commit it again would change nothing, even if it weren't aborted.
func (p *Producer) committed(ctx context.Context, r Reader) ([]offsets.Position, error) {
	decided, err := offsets.FetchDecided(ctx, p.client, r.Group, r.Parts)
	if err != nil {
		return nil, err
	}
	at := max(0, slices.IndexFunc(decided, func(d offsets.Position) bool { return d.Offset >= 0 }))
	decided[at].Offset = max(0, decided[at].Offset)
	return decided[at : at+1], nil
}

// abortAgain begins a transaction in partitions and groups, and aborts it. The producer must be reset after it.
func (p *Producer) abortAgain(ctx context.Context, open []kgo.Record, pending []Reader) error {
	id, epoch, err := p.client.ProducerID(ctx)
	if err != nil {
		return err
	}
	if len(open) > 0 {
		if err := p.client.BeginTransaction(); err != nil {
			return err
		}
		records := make([]*kgo.Record, len(open))
		for i, o := range open {
			records[i] = &kgo.Record{Topic: o.Topic, Partition: o.Partition, Key: []byte(leftoverKey)}
		}
		if err := p.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return err
		}
	}
	for _, r := range pending {
		same, err := p.committed(ctx, r)
		if err != nil {
			return err
		}
		if err := p.sendOffsets(ctx, Offsets{Group: r.Group, Member: offsets.Member{Generation: -1}, Positions: same}); err != nil {
			return err
		}
	}
	return retry(ctx, func() error {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.cfg.TransactionalID, id, epoch
		resp, err := req.RequestWith(ctx, p.client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
}
