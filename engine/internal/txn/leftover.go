package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// Leftover is what Settle found of earlier transactions that their coordinator took for ended, though their ends were never marked.
type Leftover struct {
	Committed []string // topic-partition, with records of a transaction that was committed
	Aborted   []string // topic-partition, with records of one that wasn't
	Groups    []string // with offsets that were pending, perhaps another producer's
	Unchecked []string // topics that this user may not read, so that nothing is known of them
}

// Any tells whether there was something to end.
func (l Leftover) Any() bool { return len(l.Committed)+len(l.Aborted)+len(l.Groups) > 0 }

// Reader is a group whose pending offsets Settle looks for, in the partitions that the caller commits.
type Reader struct {
	Group string
	Parts []offsets.Partition
}

// Settle ends what is left open of this producer's earlier transactions, after Reset and before anything is produced, or after AwaitMarks while no
// transaction is open. Where it fails after it has found something, Reset has to be called.
//
// Reset makes the coordinator end them, which marks their ends in each partition that they wrote to. But a coordinator that comes back with
// its broker before the leaders of those partitions are known leaves these out ("these partitions are likely deleted already"; seen with
// Kafka 4.3.1 where all replicas of a partition were down), and the transaction counts as ended all the same. Its records and offsets stay
// open; and the end of this producer's next transaction there would be theirs too, be it the right one or not. So each of the topics'
// partitions is asked for open transactions of this producer (KIP-664), each group for pending offsets; where there are some, a transaction
// is begun there, and ended as the one that was left: see fates.
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
	committed, aborted := leftover{}, leftover{}
	for _, o := range open {
		if p.fates.committed(id, o.epoch) {
			committed.partitions = append(committed.partitions, o)
		} else {
			aborted.partitions = append(aborted.partitions, o)
		}
	}
	// A transaction of this producer in the group, after the one that was left, would have ended that one's offsets too.
	if p.fates.last || len(committed.partitions) > 0 {
		committed.groups = pending
	} else {
		aborted.groups = pending
	}
	found = Leftover{Committed: committed.names(), Aborted: aborted.names(), Unchecked: unchecked}
	for _, r := range pending {
		found.Groups = append(found.Groups, r.Group)
	}
	if len(open)+len(pending) == 0 {
		p.fates.last = false // nothing is left of it
		return found, nil
	}
	if err := p.endAgain(ctx, committed, true); err != nil {
		return found, fmt.Errorf("commit what was left open in %v, groups %v: %w", found.Committed, found.Groups, err)
	}
	if err := p.endAgain(ctx, aborted, false); err != nil {
		return found, fmt.Errorf("abort what was left open in %v, groups %v: %w", found.Aborted, found.Groups, err)
	}
	if open, _, err = p.openPartitions(ctx, id, topics); err == nil && len(open) > 0 {
		err = fmt.Errorf("%d partitions still have an open transaction of producer id %d, such as %s", len(open), id, open[0])
	}
	if err == nil {
		p.fates.last = false
	}
	return found, err
}

// leftover is what is ended in the same way.
type leftover struct {
	partitions []openPartition
	groups     []Reader
}

func (l leftover) names() (names []string) {
	for _, o := range l.partitions {
		names = append(names, o.String())
	}
	return names
}

// openPartition is a partition in which a transaction of the producer is open; epoch is that of its records.
type openPartition struct {
	topic     string
	partition int32
	epoch     int16
}

func (o openPartition) String() string { return fmt.Sprintf("%s-%d", o.topic, o.partition) }

// openPartitions lists where the producer id has a transaction open, and the topics that can't be looked at.
func (p *Producer) openPartitions(ctx context.Context, id int64, topics map[string]int32) (open []openPartition, unchecked []string, err error) {
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
					default:
						for _, a := range part.ActiveProducers {
							if a.ProducerID == id && a.CurrentTxnStartOffset >= 0 {
								open = append(open, openPartition{t.Topic, part.Partition, int16(a.ProducerEpoch)})
							}
						}
					}
				}
			}
		}
		return nil
	})
	slices.SortFunc(open, func(a, b openPartition) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
	slices.Sort(unchecked)
	return open, slices.Compact(unchecked), err
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

// endAgain begins a transaction in partitions and groups, and ends it: nothing is written but the marks of its end, which ends all that is open there of
// this producer. Then the producer starts anew.
func (p *Producer) endAgain(ctx context.Context, left leftover, commit bool) error {
	if len(left.partitions)+len(left.groups) == 0 {
		return nil
	}
	id, epoch, err := p.client.ProducerID(ctx)
	if err != nil {
		return err
	}
	if len(left.partitions) > 0 {
		if err := retry(ctx, func() error { return p.addPartitions(ctx, id, epoch, left.partitions) }); err != nil {
			return err
		}
	}
	for _, r := range left.groups {
		if err := retry(ctx, func() error { return p.addGroup(ctx, id, epoch, r.Group) }); err != nil {
			return err
		}
	}
	err = retry(ctx, func() error {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.cfg.TransactionalID, id, epoch, commit
		resp, err := req.RequestWith(ctx, p.client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	if err != nil {
		return err
	}
	return p.Reset(ctx)
}

func (p *Producer) addPartitions(ctx context.Context, id int64, epoch int16, parts []openPartition) error {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.cfg.TransactionalID, id, epoch
	for _, o := range parts {
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic, t.Partitions = o.topic, []int32{o.partition}
		if n := len(req.Topics); n > 0 && req.Topics[n-1].Topic == o.topic {
			req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, o.partition)
		} else {
			req.Topics = append(req.Topics, t)
		}
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, part := range t.Partitions {
			if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
				return fmt.Errorf("add %s-%d to transaction: %w", t.Topic, part.Partition, err)
			}
		}
	}
	return nil
}
