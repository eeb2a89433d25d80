package gokacompat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// samplesPerPartition is how many of the newest records of each partition Check looks at.
const samplesPerPartition = 200

// checkTimeout bounds a check.
const checkTimeout = time.Minute

// CheckError lists what is in the way of running a group, each with what to do about it.
type CheckError struct {
	Group    goka.Group
	Problems []string
}

func (e *CheckError) Error() string {
	return fmt.Sprintf("group %s can't be run as it is:\n  %s", e.Group, strings.Join(e.Problems, "\n  "))
}

// Check looks at the brokers' topics before an instance is started in the place of a goka processor, and changes nothing:
//
//   - no goka processor of the group may still run;
//   - the topics must exist, with as many partitions as goka demands (inputs, joined tables, table and loop alike);
//   - keys must be in the partitions where the group's hash puts them: the newest records of each partition are looked at.
//
// What isn't so is in a *CheckError. Other errors are those of asking the brokers. The options are those of the Kafka client, such as
// kgo.SeedBrokers, TLS and SASL.
func (a *Application) Check(ctx context.Context, opts ...kgo.Opt) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer client.Close()
	c := checker{app: a, admin: kadm.NewClient(client), opts: opts}
	if err := c.group(ctx); err != nil {
		return err
	}
	if err := c.topics(ctx); err != nil {
		return err
	}
	if !a.opts.anywhere {
		if err := c.keys(ctx); err != nil {
			return err
		}
	}
	if len(c.problems) > 0 {
		return &CheckError{Group: a.graph.Group(), Problems: c.problems}
	}
	return nil
}

type checker struct {
	app      *Application
	admin    *kadm.Client
	opts     []kgo.Opt
	widths   map[string]int32         // partitions of the topics that exist and are co-partitioned
	ends     map[topicPartition]int64 // where samples end
	problems []string
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// group checks that goka has stopped: both would take the same partitions, and a group has one way of sharing them.
func (c *checker) group(ctx context.Context) error {
	name := string(c.app.graph.Group())
	groups, err := c.admin.DescribeGroups(ctx, name)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("describe group %s: %w", name, err)
	}
	g := groups[name]
	if errors.Is(g.Err, kerr.GroupIDNotFound) {
		return nil // nobody has ever joined
	}
	if g.Err != nil {
		return fmt.Errorf("describe group %s: %w", name, g.Err)
	}
	if len(g.Members) > 0 && g.Protocol == goka.CopartitioningStrategy.Name() {
		c.problem("%d members of the group are goka processors (on %s): stop them first", len(g.Members), strings.Join(hosts(g.Members), ", "))
	}
	return nil
}

func hosts(members []kadm.DescribedGroupMember) []string {
	set := map[string]bool{}
	for _, m := range members {
		set[m.ClientHost] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// topics checks which exist and how wide they are.
func (c *checker) topics(ctx context.Context) error {
	graph := c.app.graph
	must := slices.Concat(graph.InputStreams(), graph.JointTables(), graph.LookupTables(), graph.OutputStreams()).Topics()
	copartitioned := slices.Concat(graph.InputStreams(), graph.JointTables()).Topics()
	if e := graph.GroupTable(); e != nil {
		copartitioned = append(copartitioned, e.Topic())
	}
	if e := graph.LoopStream(); e != nil {
		copartitioned = append(copartitioned, e.Topic())
	}
	found, err := c.admin.ListTopics(ctx, slices.Concat(must, copartitioned)...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	for _, topic := range must {
		if !found.Has(topic) {
			c.problem("topic %s doesn't exist: create it", topic)
		}
	}
	c.widths = map[string]int32{}
	for _, topic := range copartitioned {
		if found.Has(topic) {
			c.widths[topic] = int32(len(found[topic].Partitions))
		}
	}
	if different := slices.Compact(slices.Sorted(maps.Values(c.widths))); len(different) > 1 {
		var list []string
		for _, topic := range slices.Sorted(maps.Keys(c.widths)) {
			list = append(list, fmt.Sprintf("%s %d", topic, c.widths[topic]))
		}
		c.problem("inputs, joined tables, the group's table and its loop must have the same number of partitions, but they have: %s", strings.Join(list, ", "))
	}
	return nil
}

// keys looks at the newest records of each co-partitioned topic.
func (c *checker) keys(ctx context.Context) error {
	from, err := c.samples(ctx)
	if err != nil || len(from) == 0 {
		return err
	}
	client, err := kgo.NewClient(append(slices.Clone(c.opts), kgo.ConsumePartitions(from), kgo.KeepControlRecords())...)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer client.Close()
	found := map[string]*sampled{}
	for len(c.ends) > 0 {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(ctx.Err(), fetches.Err()); err != nil {
			return fmt.Errorf("read samples of keys: %w", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			tp := topicPartition{r.Topic, r.Partition}
			if !r.Attrs.IsControl() && r.Offset < c.ends[tp] {
				c.look(found, r)
			}
			if r.Offset >= c.ends[tp]-1 {
				delete(c.ends, tp)
			}
		})
	}
	for _, topic := range slices.Sorted(maps.Keys(found)) {
		found[topic].tell(c)
	}
	return nil
}

type topicPartition struct {
	topic     string
	partition int32
}

// samples says where to read from.
func (c *checker) samples(ctx context.Context) (from map[string]map[int32]kgo.Offset, err error) {
	topics := slices.Sorted(maps.Keys(c.widths))
	starts, err := c.admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list offsets: %w", err)
	}
	ends, err := c.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list offsets: %w", err)
	}
	if err := errors.Join(starts.Error(), ends.Error()); err != nil {
		return nil, fmt.Errorf("list offsets: %w", err)
	}
	from, c.ends = map[string]map[int32]kgo.Offset{}, map[topicPartition]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		if end.Offset <= start.Offset {
			return
		}
		if from[end.Topic] == nil {
			from[end.Topic] = map[int32]kgo.Offset{}
		}
		at := max(start.Offset, end.Offset-samplesPerPartition)
		from[end.Topic][end.Partition] = kgo.NewOffset().At(at)
		c.ends[topicPartition{end.Topic, end.Partition}] = end.Offset
	})
	return from, nil
}

// sampled is what was found of one topic.
type sampled struct {
	looked, misplaced, kafka int
	example                  *MisplacedError
}

func (c *checker) look(found map[string]*sampled, r *kgo.Record) {
	if string(r.Key) == SealKey {
		return
	}
	s := found[r.Topic]
	if s == nil {
		s = &sampled{}
		found[r.Topic] = s
	}
	s.looked++
	width := c.widths[r.Topic]
	if KafkaPartition(r.Key, width) == r.Partition {
		s.kafka++
	}
	if err := misplaced(c.app.opts.partition, r.Topic, r.Partition, r.Offset, r.Key, width); err != nil {
		s.misplaced++
		s.example = err.(*MisplacedError)
	}
}

// tell says what is wrong with a topic, if anything is.
func (s *sampled) tell(c *checker) {
	if s.misplaced == 0 {
		return
	}
	s.example.Kafka = s.kafka == s.looked
	c.problem("%d of %d records looked at are in other partitions than the group's hash says, such as: %v", s.misplaced, s.looked, s.example)
}
