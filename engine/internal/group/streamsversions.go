package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Brokers hold a streams group to one topology, as far as they know it: topics and their settings. What they don't know, such as serdes and
// windows, members tell each other among their tags, and one that joins those who declare something otherwise gives up.

// declaresPrefix is before the keys of the tags that say what a member declares.
const declaresPrefix = "declares:"

// DeclaredError says that other members of a streams group declare something otherwise.
type DeclaredError struct {
	Member      string
	Differences []string
}

func (e *DeclaredError) Error() string {
	return fmt.Sprintf("member %s runs another version of the topology: %s", e.Member, strings.Join(e.Differences, "; "))
}

// compare looks whether those who are in the group declare what this member does: before it joins, so that it takes no tasks away from them, and
// once after, should two versions have joined at the same moment. Then the one that joined at the later epoch goes, at once.
func (s *Streams) compare(ctx context.Context) error {
	if s.compared || len(s.cfg.Declares) == 0 {
		return nil
	}
	joined := s.epoch > 0
	g, err := describeStreams(ctx, s.cfg.Client, s.cfg.Group)
	switch {
	case err != nil && !joined: // there is no group yet, or the answer to the join will say what is wrong
		return nil
	case err != nil:
		return fmt.Errorf("find out what the other members declare: %w", err)
	}
	for _, m := range g.Members {
		if m.MemberID == s.cfg.MemberID || joined && m.MemberEpoch > s.epoch {
			continue
		}
		lines := s.declaredOtherwise(m.ClientTags)
		if len(lines) == 0 {
			continue
		}
		if joined {
			if err := s.Leave(ctx); err != nil {
				s.cfg.Logger.Warn("a member that can't stay can't leave in order", "group", s.cfg.Group, "error", err)
			}
		}
		return &FatalError{Group: s.cfg.Group, Err: &DeclaredError{m.MemberID, lines},
			Advice: "start this instance with the version that the others run, or stop all of them before this version is started"}
	}
	s.compared = joined
	return nil
}

// declaredOtherwise compares what both declare. What only one of them has is no matter of this: topics the brokers compare.
func (s *Streams) declaredOtherwise(tags []kmsg.StreamsGroupDescribeResponseGroupMemberClientTag) (lines []string) {
	for _, tag := range tags {
		what, ok := strings.CutPrefix(tag.Key, declaresPrefix)
		if here, both := s.cfg.Declares[what]; ok && both && here != tag.Value {
			lines = append(lines, fmt.Sprintf("%s is %s there, and %s here", what, tag.Value, here))
		}
	}
	slices.Sort(lines)
	return lines
}

// explained adds to a refused topology what differs from the group's.
func (s *Streams) explained(ctx context.Context, refused error) error {
	g, err := describeStreams(ctx, s.cfg.Client, s.cfg.Group)
	if err != nil || g.Topology == nil {
		return refused // which is reason enough
	}
	there, here := map[string]string{}, map[string]string{}
	for _, sub := range g.Topology.Subtopologies {
		noteTopics(there, sub.SubtopologyID, sub.SourceTopics, sub.RepartitionSinkTopics, sub.RepartitionSourceTopics, sub.StateChangelogTopics)
	}
	for _, sub := range s.cfg.Topology.Subtopologies {
		noteTopics(here, sub.SubtopologyID, sub.SourceTopics, sub.RepartitionSinkTopics, sub.RepartitionSourceTopics, sub.StateChangelogTopics)
	}
	var lines []string
	all := maps.Clone(there)
	maps.Copy(all, here)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		switch a, b := there[what], here[what]; {
		case a == b:
		case a == "":
			lines = append(lines, what+": only here"+b)
		case b == "":
			lines = append(lines, what+": only in the group's"+a)
		default:
			lines = append(lines, fmt.Sprintf("%s: in the group's%s, here%s", what, a, b))
		}
	}
	if len(lines) == 0 {
		return refused
	}
	return fmt.Errorf("%w: this topology isn't the group's: %s", refused, strings.Join(lines, "; "))
}

// noteTopics notes the topics of a sub-topology with their settings.
func noteTopics(topics map[string]string, sub string, sources, sinks []string, internal ...[]kmsg.TopicInfo) {
	note := func(role, topic, settings string) {
		topics[fmt.Sprintf("sub-topology %s %s %s", sub, role, topic)] = " " + settings
	}
	for _, t := range sources {
		note("reads", t, "without settings")
	}
	for _, t := range sinks {
		note("writes", t, "without settings")
	}
	for i, role := range []string{"reads", "keeps its state in"} {
		for _, t := range internal[i] {
			note(role, t.Topic, "with "+settingsOf(t))
		}
	}
}

func settingsOf(t kmsg.TopicInfo) string {
	var all []string
	for _, c := range t.Configs {
		all = append(all, c.Key+"="+c.Value)
	}
	slices.Sort(all)
	if t.NumPartitions > 0 {
		all = append([]string{fmt.Sprintf("%d partitions", t.NumPartitions)}, all...)
	}
	if len(all) == 0 {
		return "no settings"
	}
	return strings.Join(all, " ")
}

// describeStreams asks the coordinator for a streams group.
func describeStreams(ctx context.Context, client *kgo.Client, name string) (*kmsg.StreamsGroupDescribeResponseGroup, error) {
	c := &coordinator{client: client, group: name}
	req := kmsg.NewPtrStreamsGroupDescribeRequest()
	req.Groups = []string{name}
	got, err := c.request(ctx, req)
	if err != nil {
		return nil, err
	}
	groups := got.(*kmsg.StreamsGroupDescribeResponse).Groups
	if len(groups) != 1 {
		return nil, fmt.Errorf("describe streams group %s: the broker answered about %d groups", name, len(groups))
	}
	if err := kerr.ErrorForCode(groups[0].ErrorCode); err != nil {
		return nil, fmt.Errorf("describe streams group %s: %w", name, err)
	}
	return &groups[0], nil
}
