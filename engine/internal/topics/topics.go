package topics

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topic is a topic as it is on the brokers.
type Topic struct {
	Name       string
	ID         [16]byte
	Partitions int32
}

// Describe returns those of the named topics that exist.
func Describe(ctx context.Context, client *kgo.Client, names ...string) (map[string]Topic, error) {
	if len(names) == 0 {
		return map[string]Topic{}, nil
	}
	return describe(ctx, client, names...)
}

// Matching returns all topics whose whole name matches pattern. Topics that belong to Kafka itself never match.
func Matching(ctx context.Context, client *kgo.Client, pattern string) (map[string]Topic, error) {
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil, fmt.Errorf("topic pattern: %w", err)
	}
	all, err := describe(ctx, client)
	if err != nil {
		return nil, err
	}
	for name := range all {
		if !re.MatchString(name) {
			delete(all, name)
		}
	}
	return all, nil
}

// describe returns the named topics, or all that aren't Kafka's own. Where no broker answers, it asks again until ctx ends.
func describe(ctx context.Context, client *kgo.Client, names ...string) (map[string]Topic, error) {
	for {
		found, err := describeOnce(ctx, client, names)
		var answer *kerr.Error
		if err == nil || errors.As(err, &answer) && !answer.Retriable || errors.Is(err, kgo.ErrClientClosed) {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// DescribeError says which topic brokers refuse to describe.
type DescribeError struct {
	Topic string
	Err   error
}

func (e *DescribeError) Error() string { return fmt.Sprintf("describe topic %s: %v", e.Topic, e.Err) }

func (e *DescribeError) Unwrap() error { return e.Err }

// ask asks a broker once for the named topics, or for all.
func ask(ctx context.Context, client *kgo.Client, names []string) ([]kmsg.MetadataResponseTopic, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("describe topics: %w", err)
	}
	return resp.Topics, nil
}

// describeOnce asks the brokers each time: the client's cache holds what it doesn't know for seconds.
func describeOnce(ctx context.Context, client *kgo.Client, names []string) (map[string]Topic, error) {
	answers, err := ask(ctx, client, names)
	if err != nil {
		return nil, err
	}
	found := make(map[string]Topic, len(answers))
	for _, t := range answers {
		if t.Topic == nil || t.IsInternal && len(names) == 0 {
			continue
		}
		err := kerr.ErrorForCode(t.ErrorCode)
		switch {
		case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.LeaderNotAvailable), leaderless(t.Partitions):
			continue
		case err != nil:
			return nil, &DescribeError{*t.Topic, err}
		}
		found[*t.Topic] = Topic{Name: *t.Topic, ID: t.TopicID, Partitions: int32(len(t.Partitions))}
	}
	return found, nil
}

// leaderless tells that the topic is so new that some partition has no leader and no replicas yet. (A partition that lost its leader
// still has replicas.)
func leaderless(partitions []kmsg.MetadataResponseTopicPartition) bool {
	for _, p := range partitions {
		if p.Leader < 0 && len(p.Replicas) == 0 {
			return true
		}
	}
	return false
}

// Bound is an offset of a partition: what is before it may go.
type Bound struct {
	Topic     string
	Partition int32
	Before    int64
}

// Purge deletes records before the bounds. Bounds that are outside of the log are no error: retention was there first. refused are the topics
// that the client's user may not delete records of; err is about the others.
func Purge(ctx context.Context, client *kgo.Client, bounds []Bound) (refused []string, err error) {
	if len(bounds) == 0 {
		return nil, nil
	}
	offsets := kadm.Offsets{}
	for _, b := range bounds {
		offsets.AddOffset(b.Topic, b.Partition, b.Before, -1)
	}
	resps, err := kadm.NewClient(client).DeleteRecords(ctx, offsets)
	if err != nil {
		return nil, fmt.Errorf("purge: %w", err)
	}
	var errs []error
	resps.Each(func(r kadm.DeleteRecordsResponse) {
		switch {
		case r.Err == nil, errors.Is(r.Err, kerr.OffsetOutOfRange):
		case errors.Is(r.Err, kerr.TopicAuthorizationFailed):
			refused = append(refused, r.Topic)
		default:
			errs = append(errs, fmt.Errorf("purge %s-%d: %w", r.Topic, r.Partition, r.Err))
		}
	})
	slices.Sort(refused)
	return slices.Compact(refused), errors.Join(errs...)
}

// propagation is how long brokers may take until all of them know a new topic.
const propagation = 30 * time.Second

// awaitAll waits until the topics are known with a leader for every partition.
func awaitAll(ctx context.Context, client *kgo.Client, names []string) (map[string]Topic, error) {
	ctx, cancel := context.WithTimeout(ctx, propagation)
	defer cancel()
	for {
		found, err := describe(ctx, client, names...)
		if err == nil && len(found) < len(names) {
			err = fmt.Errorf("%d of %d new topics are not known yet", len(names)-len(found), len(names))
		}
		if err == nil {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
