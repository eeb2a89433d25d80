package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/group"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/internal/plan"
)

// Protocol is how the instances of an application share its tasks.
type Protocol int

// The protocols.
const (
	// Classic: one of the instances assigns the tasks. It works on every broker, and restarts keep their tasks by static membership. The
	// default.
	Classic Protocol = iota
	// Streams: the brokers assign the tasks (KIP-1071; Kafka 4.2 or later). Tools such as kafka-streams-groups show tasks, members and
	// lag. Session timeout, heartbeats and standbys are then settings of the group on the brokers. An application can be moved from
	// Classic to Streams, with its offsets and state, while none of its instances runs.
	Streams
	// Auto: Streams where the brokers speak it, the topology can be told to them (no patterns as sources) and no member of the classic
	// protocol is in the group; else Classic.
	Auto
)

func (p Protocol) String() string {
	switch p {
	case Classic:
		return "classic"
	case Streams:
		return "streams"
	case Auto:
		return "auto"
	}
	return fmt.Sprintf("Protocol(%d)", int(p))
}

// GroupProtocol chooses how the instances share the tasks. All instances of an application must use the same protocol. Default: Classic.
func GroupProtocol(p Protocol) Option { return func(c *config) { c.protocol = p } }

// chooseProtocol settles Auto, and says early what keeps Streams from working.
func (e *Engine) chooseProtocol(ctx context.Context) (Protocol, error) {
	if e.cfg.protocol == Classic {
		return Classic, nil
	}
	obstacle, err := e.streamsObstacle(ctx)
	for ; err != nil; obstacle, err = e.streamsObstacle(ctx) {
		if !offsets.Retriable(err) {
			return Classic, fmt.Errorf("choose the group's protocol: %w", err)
		}
		e.log.Warn("the group's coordinator doesn't answer yet", "error", err) // a new cluster makes the topic of the groups first
		if err := sleep(ctx, time.Second); err != nil {
			return Classic, err
		}
	}
	switch {
	case obstacle == "":
		e.log.Info("the brokers assign the tasks", "protocol", Streams.String())
		return Streams, nil
	case e.cfg.protocol == Auto:
		e.log.Info("the instances assign the tasks among themselves", "protocol", Classic.String(), "because", obstacle)
		return Classic, nil
	}
	return Classic, fmt.Errorf("the streams protocol can't be used: %s; use GroupProtocol(Classic) or GroupProtocol(Auto)", obstacle)
}

// streamsFeature is what brokers call the protocol among their features, and streamsKey its heartbeat.
const streamsFeature = "streams.version"

var streamsKey = (&kmsg.StreamsGroupHeartbeatRequest{}).Key()

// streamsObstacle is what keeps this application from using the streams protocol; empty if nothing does.
func (e *Engine) streamsObstacle(ctx context.Context) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(e.plan.Nodes)) {
		if n := e.plan.Nodes[name]; n.Pattern != "" {
			return fmt.Sprintf("source %s reads topics by a pattern, which brokers don't support in streams groups", name), nil
		}
	}
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, e.control)
	if err != nil {
		return "", err
	}
	spoken := slices.ContainsFunc(resp.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == streamsKey })
	on := slices.ContainsFunc(resp.FinalizedFeatures, func(f kmsg.ApiVersionsResponseFinalizedFeature) bool {
		return f.Name == streamsFeature && f.MaxVersionLevel >= 1
	})
	if !spoken || !on {
		return "the brokers don't speak it (Kafka 4.2 or later with the feature " + streamsFeature + " is needed)", nil
	}
	return e.classicMembers(ctx)
}

// classicMembers says whether the group has members of the classic protocol.
func (e *Engine) classicMembers(ctx context.Context) (string, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{e.group()}
	resp, err := req.RequestWith(ctx, e.control)
	if err != nil {
		return "", err
	}
	for _, g := range resp.Groups {
		err := kerr.ErrorForCode(g.ErrorCode)
		if errors.Is(err, kerr.GroupIDNotFound) { // there is none, or one of another protocol
			continue
		}
		if err != nil {
			return "", fmt.Errorf("describe group %s: %w", e.group(), err)
		}
		if n := len(g.Members); n > 0 {
			return fmt.Sprintf("the group has %d members of the classic protocol: stop them first", n), nil
		}
	}
	return "", nil
}

func (e *Engine) streamsConfig() group.StreamsConfig {
	return group.StreamsConfig{
		Client: e.control, Group: e.group(), MemberID: e.identity.UUID().String(), RebalanceTimeout: e.cfg.rebalance,
		Endpoint: e.members.endpoint, Tags: e.cfg.tags, Topology: streamsTopology(e.plan, e.cfg.replication),
		Declares: e.version.Declares(), Logger: e.log,
	}
}

// streamsTopology tells brokers of a plan what they need to know: which topics feed and back which sub-topology. Everything in it is sorted:
// brokers compare it.
func streamsTopology(p *plan.Plan, replication int16) *kmsg.StreamsGroupHeartbeatRequestTopology {
	top := kmsg.NewStreamsGroupHeartbeatRequestTopology()
	for _, sub := range p.Subtopologies {
		top.Subtopologies = append(top.Subtopologies, streamsSubtopology(p, sub, max(replication, 0)))
	}
	return &top
}

func streamsSubtopology(p *plan.Plan, sub *plan.Subtopology, replication int16) kmsg.StreamsGroupHeartbeatRequestTopologySubtopology {
	s := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
	s.SubtopologyID = strconv.Itoa(sub.ID)
	for _, topic := range sub.SourceTopics {
		if t := p.InternalTopics[topic]; t != nil {
			s.RepartitionSourceTopics = append(s.RepartitionSourceTopics, topicInfo(t, t.Partitions, replication))
		} else {
			s.SourceTopics = append(s.SourceTopics, topic)
		}
	}
	sinks := map[string]bool{}
	for _, n := range sub.Nodes {
		if n.Kind == plan.SinkNode && p.InternalTopics[n.Topic] != nil {
			sinks[n.Topic] = true
		}
	}
	s.RepartitionSinkTopics = slices.Sorted(maps.Keys(sinks))
	for _, name := range sub.Stores {
		if st := p.Stores[name]; st.Changelog != "" && !st.SourceAsChangelog {
			// Brokers count the partitions of changelogs themselves.
			s.StateChangelogTopics = append(s.StateChangelogTopics, topicInfo(p.InternalTopics[st.Changelog], 0, replication))
		}
	}
	s.CopartitionGroups = copartitionGroups(p, s)
	return s
}

func topicInfo(t *plan.InternalTopic, partitions int32, replication int16) kmsg.TopicInfo {
	info := kmsg.NewTopicInfo()
	info.Topic, info.NumPartitions, info.ReplicationFactor = t.Name, partitions, replication
	for _, key := range slices.Sorted(maps.Keys(t.Config)) {
		c := kmsg.NewTopicInfoConfig()
		c.Key, c.Value = key, t.Config[key]
		info.Configs = append(info.Configs, c)
	}
	return info
}

// copartitionGroups names the groups that concern a sub-topology by the places of their topics in its lists.
func copartitionGroups(p *plan.Plan, s kmsg.StreamsGroupHeartbeatRequestTopologySubtopology) []kmsg.StreamsGroupHeartbeatRequestTopologySubtopologyCopartitionGroup {
	var all []kmsg.StreamsGroupHeartbeatRequestTopologySubtopologyCopartitionGroup
	for _, topics := range p.CopartitionGroups {
		g := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopologyCopartitionGroup()
		for i, topic := range s.SourceTopics {
			if slices.Contains(topics, topic) {
				g.SourceTopics = append(g.SourceTopics, int16(i))
			}
		}
		for i, info := range s.RepartitionSourceTopics {
			if slices.Contains(topics, info.Topic) {
				g.RepartitionSourceTopics = append(g.RepartitionSourceTopics, int16(i))
			}
		}
		if len(g.SourceTopics)+len(g.RepartitionSourceTopics) > 1 {
			all = append(all, g)
		}
	}
	return all
}

// streamsMember is what the streams protocol needs of members. It implements group.TaskHandler.
type streamsMember struct{ *members }

// Held implements group.TaskHandler.
func (m streamsMember) Held() assign.Placement {
	m.mu.Lock()
	defer m.mu.Unlock()
	var held assign.Placement
	for id := range m.claimed {
		held.Active = append(held.Active, assignID(id))
	}
	for id, warmup := range m.copies {
		if warmup {
			held.Warmups = append(held.Warmups, assignID(id))
		} else {
			held.Standbys = append(held.Standbys, assignID(id))
		}
	}
	return held
}

// Given implements group.TaskHandler.
func (m streamsMember) Given(p assign.Placement) error {
	m.take(p)
	m.e.tell(rebalanced{})
	return nil
}
