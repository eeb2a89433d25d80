package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// Outcome is what became of a transaction.
type Outcome int

// The outcomes; see the package's documentation.
const (
	Committed Outcome = iota
	Aborted
	Unknown
)

func (o Outcome) String() string { return [...]string{"committed", "aborted", "unknown"}[o] }

// ProduceError says which record's failure spoiled a transaction.
type ProduceError struct {
	Topic     string
	Partition int32
	Err       error
}

func (e *ProduceError) Error() string {
	return fmt.Sprintf("produce to %s-%d: %v", e.Topic, e.Partition, e.Err)
}

func (e *ProduceError) Unwrap() error { return e.Err }

// permanent errors don't go away by starting anew.
func permanent(err error) bool {
	for _, p := range []error{kerr.TransactionalIDAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.InvalidTransactionTimeout,
		kerr.TopicAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.UnsupportedVersion, kgo.ErrClientClosed} {
		if errors.Is(err, p) {
			return true
		}
	}
	return false
}

// Permanent reports whether an error of a producer needs a person: trying again won't help.
func Permanent(err error) bool {
	return permanent(err) || errors.Is(err, kerr.GroupAuthorizationFailed) || IsRefusal(err) || errors.Is(err, kerr.InvalidTopicException) ||
		errors.Is(err, kerr.PolicyViolation)
}

// Offsets are a group's offsets that a transaction commits.
type Offsets struct {
	Group     string
	Member    offsets.Member // generation -1 for a group without members
	Positions []offsets.Position
}

// minSpares is how many entries are kept whatever a transaction has needed: about a megabyte.
const minSpares = 4096

// Commit ends the open transaction with the offsets that belong to it. There must be one with at least one record. ctx bounds all
// of it; where it ends early the outcome says what that means. Without transactions (at-least-once) it flushes and commits the
// offsets plainly: Committed or Aborted, and records may have been written in both cases.
func (p *Producer) Commit(ctx context.Context, of ...Offsets) (Outcome, error) {
	t := p.current.Load()
	if t == nil {
		return Aborted, errors.New("commit: no transaction is open")
	}
	if err := t.failed(); err != nil && !IsRefusal(err) { // others may be refused, too: all are to be known
		return Aborted, err
	}
	if err := p.client.Flush(ctx); err != nil {
		return Aborted, fmt.Errorf("flush: %w", err)
	}
	if err := t.failed(); err != nil {
		return Aborted, err
	}
	p.written = t.written.Load()
	p.spares.trim(max(p.written, minSpares))
	if p.cfg.TransactionalID == "" {
		p.current.Store(nil)
		return p.commitPlainly(ctx, of)
	}
	for _, o := range of {
		if len(o.Positions) == 0 {
			continue
		}
		if err := p.sendOffsets(ctx, o); err != nil {
			return Aborted, err
		}
	}
	return p.end(ctx)
}

// Written is how many records the transaction had that was last committed.
func (p *Producer) Written() int64 { return p.written }

func (p *Producer) commitPlainly(ctx context.Context, of []Offsets) (Outcome, error) {
	for _, o := range of {
		if len(o.Positions) == 0 {
			continue
		}
		if err := offsets.Commit(ctx, p.client, o.Group, o.Member, o.Positions); err != nil {
			return Aborted, err
		}
	}
	return Committed, nil
}

func (p *Producer) end(ctx context.Context) (Outcome, error) {
	id, epoch, err := p.client.ProducerID(ctx)
	if err != nil {
		return Aborted, fmt.Errorf("producer id: %w", err)
	}
	err = p.client.EndTransaction(ctx, kgo.TryCommit)
	switch {
	case err == nil:
		p.fates.ended(id, epoch)
		p.current.Store(nil)
		return Committed, nil
	case errors.Is(err, kerr.OperationNotAttempted):
		return Aborted, fmt.Errorf("end transaction: %w", err)
	}
	return Unknown, fmt.Errorf("end transaction: %w", err)
}

// Abort ends the open transaction, if there is one, without a trace. On an error Reset has to be called, which does the same by
// fencing.
func (p *Producer) Abort(ctx context.Context) error {
	if p.current.Load() == nil {
		return nil
	}
	if err := p.client.AbortBufferedRecords(ctx); err != nil {
		return fmt.Errorf("abort records: %w", err)
	}
	p.current.Store(nil)
	if p.cfg.TransactionalID == "" {
		return nil
	}
	if err := p.client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return fmt.Errorf("abort transaction: %w", err)
	}
	return nil
}

// sendOffsets puts offsets into the open transaction.
func (p *Producer) sendOffsets(ctx context.Context, of Offsets) error {
	id, epoch, err := p.client.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("producer id: %w", err)
	}
	if !p.implicit {
		if err := retry(ctx, func() error { return p.addGroup(ctx, id, epoch, of.Group) }); err != nil {
			return fmt.Errorf("add offsets to transaction: %w", err)
		}
	}
	if err := retry(ctx, func() error { return p.commitOffsets(ctx, id, epoch, of) }); err != nil {
		return fmt.Errorf("commit offsets in transaction: %w", err)
	}
	return nil
}

// retry asks again while the coordinator says that it is not ready.
func retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || !offsets.Retriable(err) || offsets.LostMembership(err) {
			return err
		}
		if ended := offsets.Pause(ctx); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

func (p *Producer) addGroup(ctx context.Context, id int64, epoch int16, group string) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.cfg.TransactionalID, id, epoch, group
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

func (p *Producer) commitOffsets(ctx context.Context, id int64, epoch int16, of Offsets) error {
	ps := of.Positions
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.cfg.TransactionalID, id, epoch
	req.Group, req.Generation, req.MemberID, req.InstanceID = of.Group, of.Member.Generation, of.Member.ID, of.Member.InstanceID
	at := map[string]int{}
	for i := range ps {
		j, ok := at[ps[i].Topic]
		if !ok {
			j = len(req.Topics)
			at[ps[i].Topic] = j
			t := kmsg.NewTxnOffsetCommitRequestTopic()
			t.Topic, t.TopicID = ps[i].Topic, ps[i].ID
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = ps[i].Partition.Partition, ps[i].Offset, -1, &ps[i].Metadata
		req.Topics[j].Partitions = append(req.Topics[j].Partitions, rp)
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	names := map[[16]byte]string{}
	for _, t := range req.Topics {
		names[t.TopicID] = t.Topic
	}
	for _, t := range resp.Topics {
		for _, rp := range t.Partitions {
			if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
				return fmt.Errorf("%s-%d: %w", cmp.Or(t.Topic, names[t.TopicID]), rp.Partition, err)
			}
		}
	}
	return nil
}
