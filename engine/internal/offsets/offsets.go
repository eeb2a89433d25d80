package offsets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Partition is a partition of a topic. ID is the topic's id; brokers that ask for ids (Kafka 4.2 on) get it beside the name.
type Partition struct {
	Topic     string
	ID        [16]byte
	Partition int32
}

// None stands for "no committed offset".
const None int64 = -1

// Position is a committed offset, or one to commit: the next offset to read.
type Position struct {
	Partition
	Offset   int64
	Metadata string // see Metadata.Encode
}

// Member is who commits. The coordinator refuses a commit whose generation, member id or instance id are not those of a current
// member: that is what keeps an instance that lost its tasks without noticing from committing for them.
type Member struct {
	ID         string
	InstanceID *string // of static membership; nil for none
	Generation int32   // under the streams protocol: the member's epoch
}

// LostMembership reports whether a commit failed because the member has lost its place: it must drop what it did for the
// tasks and join again.
func LostMembership(err error) bool {
	for _, lost := range []error{kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.FencedInstanceID, kerr.RebalanceInProgress, kerr.GroupIDNotFound,
		kerr.StaleMemberEpoch, kerr.FencedMemberEpoch} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// retryPause is the time between attempts while a coordinator loads, moves, or waits for a transaction to end.
const retryPause = 50 * time.Millisecond

// Retriable reports whether it may go better if asked again: the coordinator says so, or there was no answer.
func Retriable(err error) bool {
	var answer *kerr.Error
	if !errors.As(err, &answer) {
		return !errors.Is(err, kgo.ErrClientClosed) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return answer.Retriable || answer == kerr.UnstableOffsetCommit || answer == kerr.ConcurrentTransactions
}

// Pause waits before the next attempt. It returns the context's error if that ends first.
func Pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(retryPause):
		return nil
	}
}

// Fetch returns the group's committed positions of the partitions, in their order; Offset is None where there is none. It waits
// until no open transaction holds any of them back, or ctx ends.
func Fetch(ctx context.Context, client *kgo.Client, group string, parts []Partition) ([]Position, error) {
	return fetch(ctx, client, group, parts, true, Retriable)
}

// FetchDecided is Fetch without the waiting: what an open transaction would change isn't in it. Bystanders use it; who goes on from an
// offset must not.
func FetchDecided(ctx context.Context, client *kgo.Client, group string, parts []Partition) ([]Position, error) {
	return fetch(ctx, client, group, parts, false, Retriable)
}

// Stable reports whether no open transaction holds offsets of the partitions back. It waits only for a coordinator.
func Stable(ctx context.Context, client *kgo.Client, group string, parts []Partition) (bool, error) {
	_, err := fetch(ctx, client, group, parts, true, func(err error) bool { return Retriable(err) && !errors.Is(err, kerr.UnstableOffsetCommit) })
	if errors.Is(err, kerr.UnstableOffsetCommit) {
		return false, nil
	}
	return err == nil, err
}

func fetch(ctx context.Context, client *kgo.Client, group string, parts []Partition, stable bool, again func(error) bool) ([]Position, error) {
	if len(parts) == 0 {
		return nil, nil // to ask for nothing would be to ask for everything, and takes rights on the group
	}
	for {
		found, err := fetchOnce(ctx, client, group, parts, stable)
		if err == nil {
			return found, nil
		}
		if !again(err) {
			return nil, fmt.Errorf("fetch committed offsets of group %s: %w", group, err)
		}
		if ended := Pause(ctx); ended != nil {
			return nil, fmt.Errorf("fetch committed offsets of group %s: %w", group, errors.Join(ended, err))
		}
	}
}

func fetchOnce(ctx context.Context, client *kgo.Client, group string, parts []Partition, stable bool) ([]Position, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = stable
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	at := map[string]int{}
	for _, p := range parts {
		i, ok := at[p.Topic]
		if !ok {
			i = len(g.Topics)
			at[p.Topic] = i
			t := kmsg.NewOffsetFetchRequestGroupTopic()
			t.Topic, t.TopicID = p.Topic, p.ID
			g.Topics = append(g.Topics, t)
		}
		g.Topics[i].Partitions = append(g.Topics[i].Partitions, p.Partition)
	}
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	return positions(resp, parts)
}

// positions picks the answer for each of parts.
func positions(resp *kmsg.OffsetFetchResponse, parts []Partition) ([]Position, error) {
	type key struct {
		topic     string
		partition int32
	}
	found := map[key]kmsg.OffsetFetchResponseGroupTopicPartition{}
	for _, g := range resp.Groups {
		err := kerr.ErrorForCode(g.ErrorCode)
		if errors.Is(err, kerr.GroupIDNotFound) {
			return none(parts), nil // nobody has joined or committed yet
		}
		if err != nil {
			return nil, err
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				found[key{t.Topic, p.Partition}] = p
			}
		}
	}
	out := none(parts)
	for i, p := range parts {
		f, ok := found[key{p.Topic, p.Partition}]
		if !ok {
			return nil, fmt.Errorf("the broker's answer lacks %s-%d", p.Topic, p.Partition)
		}
		if err := kerr.ErrorForCode(f.ErrorCode); err != nil {
			return nil, fmt.Errorf("%s-%d: %w", p.Topic, p.Partition, err)
		}
		out[i].Offset = f.Offset
		if f.Metadata != nil {
			out[i].Metadata = *f.Metadata
		}
	}
	return out, nil
}

func none(parts []Partition) []Position {
	out := make([]Position, len(parts))
	for i, p := range parts {
		out[i] = Position{Partition: p, Offset: None}
	}
	return out
}

// Commit commits positions outside of a transaction. Answers that another attempt may change are asked again until ctx ends; a
// commit may be repeated, since it says the same.
func Commit(ctx context.Context, client *kgo.Client, group string, m Member, ps []Position) error {
	for {
		err := commitOnce(ctx, client, group, m, ps)
		if err == nil {
			return nil
		}
		if !Retriable(err) || LostMembership(err) {
			return fmt.Errorf("commit offsets of group %s: %w", group, err)
		}
		if ended := Pause(ctx); ended != nil {
			return fmt.Errorf("commit offsets of group %s: %w", group, errors.Join(ended, err))
		}
	}
}

func commitOnce(ctx context.Context, client *kgo.Client, group string, m Member, ps []Position) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.MemberID, req.InstanceID = group, m.Generation, m.ID, m.InstanceID
	at := map[string]int{}
	for i := range ps {
		j, ok := at[ps[i].Topic]
		if !ok {
			j = len(req.Topics)
			at[ps[i].Topic] = j
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = ps[i].Topic, ps[i].ID
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = ps[i].Partition.Partition, ps[i].Offset, &ps[i].Metadata
		req.Topics[j].Partitions = append(req.Topics[j].Partitions, p)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	names := map[[16]byte]string{} // newer answers name topics by id only
	for _, t := range req.Topics {
		names[t.TopicID] = t.Topic
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("%s-%d: %w", cmp.Or(t.Topic, names[t.TopicID]), p.Partition, err)
			}
		}
	}
	return nil
}
