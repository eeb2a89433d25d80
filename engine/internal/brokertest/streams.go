package brokertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// StreamsCoordinator teaches an embedded broker the streams protocol (KIP-1071), as far as members need it: joining, heartbeats, giving up
// tasks before others get them, leaving, sessions that end, and the check of who commits. Tests can make it behave as coordinators do in
// bad weather. Brokers assign tasks as they like; this one gives each member as many as the others, and moves no more than needed.
type StreamsCoordinator struct {
	cluster  *kfake.Cluster
	client   *kgo.Client
	session  time.Duration
	interval time.Duration
	topic    [16]byte // coordinatorTopic's id

	mu         sync.Mutex
	groups     map[string]*streamsGroup
	violations []string

	// Faults; see the methods.
	fenced  map[string]error
	lost    int
	loses   bool // the next answer with an assignment
	status  []kmsg.StreamsGroupHeartbeatResponseStatus
	refused error
}

type streamsTask struct {
	sub       string
	partition int32
}

type streamsTasks map[streamsTask]bool

type streamsGroup struct {
	known    bool // to the broker itself
	epoch    int32
	topology *kmsg.StreamsGroupHeartbeatRequestTopology
	members  map[string]*streamsMember
}

type streamsMember struct {
	id          string
	epoch       int32
	before      int32 // the epoch before
	given, want streamsTasks
	revoking    streamsTasks // taken away, but not given up yet
	endpoint    *kmsg.StreamsGroupHeartbeatRequestUserEndpoint
	tags        []kmsg.StreamsGroupHeartbeatRequestClientTag
	seen        time.Time
}

// TeachStreams makes the embedded cluster a coordinator of streams groups with the given session timeout and heartbeat interval.
func (c *Cluster) TeachStreams(t testing.TB, session, interval time.Duration) *StreamsCoordinator {
	t.Helper()
	s := &StreamsCoordinator{
		cluster: c.Embedded.Cluster(), client: c.Client(t), session: session, interval: interval, groups: map[string]*streamsGroup{}, fenced: map[string]error{},
	}
	s.topic = c.CreateTopic(t, coordinatorTopic, 1)
	versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), s.client)
	if err != nil {
		t.Fatal(err)
	}
	s.control(kmsg.ApiVersions, s.apiVersions(versions))
	s.control(kmsg.StreamsGroupHeartbeat, func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp, err := s.heartbeat(req.(*kmsg.StreamsGroupHeartbeatRequest))
		return resp, err, true
	})
	s.control(kmsg.StreamsGroupDescribe, func(req kmsg.Request) (kmsg.Response, error, bool) {
		return s.describe(req.(*kmsg.StreamsGroupDescribeRequest)), nil, true
	})
	s.control(kmsg.TxnOffsetCommit, func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := s.txnOffsetCommit(req.(*kmsg.TxnOffsetCommitRequest))
		return resp, nil, resp != nil
	})
	s.control(kmsg.OffsetCommit, func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := s.offsetCommit(req.(*kmsg.OffsetCommitRequest))
		return resp, nil, resp != nil
	})
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, v := range s.violations {
			t.Errorf("the streams protocol was violated: %s", v)
		}
	})
	return s
}

// control handles all requests of a key. A nil response that is not handled goes on to the broker itself.
func (s *StreamsCoordinator) control(key kmsg.Key, f func(kmsg.Request) (kmsg.Response, error, bool)) {
	s.cluster.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		resp, err, handled := f(req)
		if !handled {
			return nil, nil, false
		}
		return resp, err, true
	})
}

// apiVersions adds the protocol to what the broker says that it speaks.
func (s *StreamsCoordinator) apiVersions(from *kmsg.ApiVersionsResponse) func(kmsg.Request) (kmsg.Response, error, bool) {
	keys := slices.DeleteFunc(slices.Clone(from.ApiKeys), func(k kmsg.ApiVersionsResponseApiKey) bool {
		return k.ApiKey == int16(kmsg.StreamsGroupHeartbeat) || k.ApiKey == int16(kmsg.StreamsGroupDescribe)
	})
	for _, key := range []kmsg.Key{kmsg.StreamsGroupHeartbeat, kmsg.StreamsGroupDescribe} {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey = int16(key)
		keys = append(keys, k)
	}
	feature := kmsg.NewApiVersionsResponseFinalizedFeature()
	feature.Name, feature.MaxVersionLevel = "streams.version", 1
	return func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
		if resp.Version > from.Version {
			return nil, nil, false // the broker itself says which version it understands
		}
		resp.ApiKeys, resp.FinalizedFeatures = keys, append(slices.Clone(from.FinalizedFeatures), feature)
		return resp, nil, true
	}
}

// Fence makes the member's next heartbeat fail with err, which throws it out.
func (s *StreamsCoordinator) Fence(member string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fenced[member] = err
}

// LoseReplies makes the next n heartbeats have their effect without an answer: the connection breaks.
func (s *StreamsCoordinator) LoseReplies(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = n
}

// LoseAssignment loses the next answer that tells a member new tasks.
func (s *StreamsCoordinator) LoseAssignment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loses = true
}

// LosesAssignment reports whether LoseAssignment has had no effect yet.
func (s *StreamsCoordinator) LosesAssignment() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loses
}

// Refuse answers all heartbeats with err; nil ends that.
func (s *StreamsCoordinator) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
}

// SetStatus adds a status to all answers; no detail ends that.
func (s *StreamsCoordinator) SetStatus(code int8, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = nil
	if detail != "" {
		st := kmsg.NewStreamsGroupHeartbeatResponseStatus()
		st.StatusCode, st.StatusDetail = code, detail
		s.status = append(s.status, st)
	}
}

// Members lists the group's members, sorted.
func (s *StreamsCoordinator) Members(group string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[group]
	if g == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(g.members))
}

// String shows all groups, for a test that fails.
func (s *StreamsCoordinator) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[name]
		fmt.Fprintf(&b, "group %s in epoch %d\n", name, g.epoch)
		for _, m := range g.members {
			fmt.Fprintf(&b, "  %s in epoch %d, seen %v: has %v, is to have %v, gives up %v\n", m.id, m.epoch, m.seen.Format("15:04:05.000"),
				slices.Collect(maps.Keys(m.given)), slices.Collect(maps.Keys(m.want)), slices.Collect(maps.Keys(m.revoking)))
		}
	}
	return b.String()
}

func (s *StreamsCoordinator) heartbeat(req *kmsg.StreamsGroupHeartbeatRequest) (kmsg.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := req.ResponseKind().(*kmsg.StreamsGroupHeartbeatResponse)
	err := s.take(req, resp)
	if s.lost > 0 {
		s.lost--
		return nil, errors.New("the answer is lost")
	}
	if s.loses && resp.ActiveTasks != nil && req.MemberEpoch > 0 {
		s.loses = false
		return nil, errors.New("the assignment is lost")
	}
	var answer *kerr.Error
	if errors.As(err, &answer) {
		resp.ErrorCode, resp.ErrorMessage = answer.Code, kmsg.StringPtr(err.Error())
	}
	return resp, nil
}

// take lets a heartbeat have its effect.
func (s *StreamsCoordinator) take(req *kmsg.StreamsGroupHeartbeatRequest, resp *kmsg.StreamsGroupHeartbeatResponse) error {
	g := s.group(req.Group)
	if !g.known {
		return kerr.CoordinatorLoadInProgress
	}
	s.expire(g)
	if s.refused != nil {
		return s.refused
	}
	if err := s.fenced[req.MemberID]; err != nil {
		delete(s.fenced, req.MemberID)
		s.remove(g, req.MemberID)
		return err
	}
	if req.MemberEpoch < 0 {
		if g.members[req.MemberID] == nil {
			return kerr.UnknownMemberID
		}
		s.remove(g, req.MemberID)
		return nil
	}
	m, err := s.member(g, req)
	if err != nil {
		return err
	}
	m.seen = time.Now()
	changed := s.reconcile(g, m, req)
	resp.MemberID, resp.MemberEpoch, resp.HeartbeatIntervalMillis = m.id, m.epoch, int32(s.interval.Milliseconds())
	resp.Status = s.status
	if req.MemberEpoch == 0 || changed {
		resp.ActiveTasks, resp.StandbyTasks, resp.WarmupTasks = m.given.ids(), []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
	}
	return nil
}

func (s *StreamsCoordinator) group(name string) *streamsGroup {
	g := s.groups[name]
	if g == nil {
		g = &streamsGroup{members: map[string]*streamsMember{}}
		s.groups[name] = g
		go s.introduce(name, g)
	}
	return g
}

// coordinatorTopic is what introduce commits an offset of.
const coordinatorTopic = "streams-coordinator"

// introduce makes a group known to the broker itself: without a group it would answer who asks for committed offsets that there are none,
// although those of an open transaction may be about to come.
func (s *StreamsCoordinator) introduce(name string, g *streamsGroup) {
	req := kmsg.NewPtrOffsetCommitRequest()
	topic, partition := kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetCommitRequestTopicPartition()
	topic.Topic, topic.TopicID, topic.Partitions = coordinatorTopic, s.topic, append(topic.Partitions, partition)
	req.Group, req.Generation, req.Topics = name, -1, append(req.Topics, topic)
	resp, err := req.RequestWith(context.Background(), s.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.known = err == nil; err != nil {
		delete(s.groups, name) // the next one tries again
	}
}

// member finds who sends a heartbeat, or takes it in.
func (s *StreamsCoordinator) member(g *streamsGroup, req *kmsg.StreamsGroupHeartbeatRequest) (*streamsMember, error) {
	m := g.members[req.MemberID]
	if req.MemberEpoch != 0 {
		switch {
		case m == nil:
			return nil, kerr.UnknownMemberID
		case req.Topology != nil:
			return nil, fmt.Errorf("%w: a topology without joining", kerr.InvalidRequest)
		case req.MemberEpoch != m.epoch && req.MemberEpoch != m.before:
			return nil, kerr.FencedMemberEpoch
		}
		return m, nil
	}
	switch {
	case req.Topology == nil || req.RebalanceTimeoutMillis < 0 || len(req.ActiveTasks) > 0:
		return nil, fmt.Errorf("%w: not how a member joins", kerr.InvalidRequest)
	case g.topology != nil && !bytesEqual(g.topology, req.Topology):
		return nil, fmt.Errorf("%w: topology updates are not supported", kerr.InvalidRequest)
	}
	if m == nil {
		m = &streamsMember{id: req.MemberID, given: streamsTasks{}, want: streamsTasks{}, revoking: streamsTasks{}, endpoint: req.UserEndpoint, tags: req.ClientTags}
		g.members[m.id], g.topology = m, req.Topology
		s.assign(g)
	}
	m.revoking = streamsTasks{} // whoever joins runs nothing
	return m, nil
}

func bytesEqual(a, b *kmsg.StreamsGroupHeartbeatRequestTopology) bool {
	encode := func(t *kmsg.StreamsGroupHeartbeatRequestTopology) string {
		req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
		req.Topology = t
		return string(req.AppendTo(nil))
	}
	return encode(a) == encode(b)
}

func (s *StreamsCoordinator) remove(g *streamsGroup, id string) {
	if g.members[id] == nil {
		return
	}
	delete(g.members, id)
	s.assign(g)
}

func (s *StreamsCoordinator) expire(g *streamsGroup) {
	for id, m := range g.members {
		if time.Since(m.seen) > s.session && !m.seen.IsZero() {
			s.remove(g, id)
		}
	}
}

// assign chooses what each member is to have: what it has already, up to its share, and then what nobody wants.
func (s *StreamsCoordinator) assign(g *streamsGroup) {
	g.epoch++
	if len(g.members) == 0 {
		g.topology = nil
		return
	}
	all := s.tasks(g)
	members := slices.SortedFunc(maps.Values(g.members), func(a, b *streamsMember) int { return cmp.Compare(a.id, b.id) })
	taken := streamsTasks{}
	for i, m := range members {
		share := len(all) / len(members)
		if i < len(all)%len(members) {
			share++
		}
		want := streamsTasks{}
		for _, t := range all {
			if m.want[t] && !taken[t] && len(want) < share {
				want[t], taken[t] = true, true
			}
		}
		m.want = want
	}
	for i, m := range members {
		share := len(all) / len(members)
		if i < len(all)%len(members) {
			share++
		}
		for _, t := range all {
			if !taken[t] && len(m.want) < share {
				m.want[t], taken[t] = true, true
			}
		}
	}
}

// tasks lists the topology's tasks by the topics' partitions.
func (s *StreamsCoordinator) tasks(g *streamsGroup) []streamsTask {
	var all []streamsTask
	for _, sub := range g.topology.Subtopologies {
		topics := slices.Clone(sub.SourceTopics)
		for _, r := range sub.RepartitionSourceTopics {
			topics = append(topics, r.Topic)
		}
		partitions := 0
		for _, topic := range topics {
			partitions = max(partitions, len(s.cluster.PartitionInfos(topic)))
		}
		for p := range partitions {
			all = append(all, streamsTask{sub.SubtopologyID, int32(p)})
		}
	}
	return all
}

// reconcile brings a member nearer to what it is to have, and says whether that changed.
func (s *StreamsCoordinator) reconcile(g *streamsGroup, m *streamsMember, req *kmsg.StreamsGroupHeartbeatRequest) (changed bool) {
	before := maps.Clone(m.given)
	if req.ActiveTasks != nil && req.MemberEpoch != 0 {
		owned := tasksIn(req.ActiveTasks)
		maps.DeleteFunc(m.revoking, func(t streamsTask, _ bool) bool { return !owned[t] })
		for t := range owned {
			if !m.given[t] && !m.revoking[t] {
				s.violations = append(s.violations, fmt.Sprintf("member %s says that it has task %v, which it was not given", m.id, t))
			}
		}
	}
	for t := range m.given {
		if !m.want[t] {
			delete(m.given, t)
			if req.MemberEpoch != 0 {
				m.revoking[t] = true
			}
		}
	}
	if len(m.revoking) == 0 { // only then it goes on to the group's epoch
		if m.epoch != g.epoch {
			m.before, m.epoch = m.epoch, g.epoch
		}
		for t := range m.want {
			if !m.given[t] && !g.held(t, m) {
				m.given[t] = true
			}
		}
	}
	return !maps.Equal(before, m.given)
}

// held says whether another member has the task, or hasn't given it up yet.
func (g *streamsGroup) held(t streamsTask, but *streamsMember) bool {
	for _, m := range g.members {
		if m != but && (m.given[t] || m.revoking[t]) {
			return true
		}
	}
	return false
}

func tasksIn(ids []kmsg.TaskIDs) streamsTasks {
	all := streamsTasks{}
	for _, id := range ids {
		for _, p := range id.Partitions {
			all[streamsTask{id.SubtopologyID, p}] = true
		}
	}
	return all
}

func (ts streamsTasks) ids() []kmsg.TaskIDs {
	bySub := map[string][]int32{}
	for t := range ts {
		bySub[t.sub] = append(bySub[t.sub], t.partition)
	}
	out := []kmsg.TaskIDs{}
	for _, sub := range slices.Sorted(maps.Keys(bySub)) {
		id := kmsg.NewTaskIDs()
		id.SubtopologyID, id.Partitions = sub, slices.Sorted(slices.Values(bySub[sub]))
		out = append(out, id)
	}
	return out
}

func (s *StreamsCoordinator) describe(req *kmsg.StreamsGroupDescribeRequest) kmsg.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := req.ResponseKind().(*kmsg.StreamsGroupDescribeResponse)
	for _, name := range req.Groups {
		out := kmsg.NewStreamsGroupDescribeResponseGroup()
		out.Group = name
		out.Topology = described(s.group(name).topology)
		for _, m := range s.group(name).members {
			d := kmsg.NewStreamsGroupDescribeResponseGroupMember()
			d.MemberID, d.MemberEpoch = m.id, m.epoch
			d.Assignment.ActiveTasks = m.given.ids()
			for _, tag := range m.tags {
				d.ClientTags = append(d.ClientTags, kmsg.StreamsGroupDescribeResponseGroupMemberClientTag{Key: tag.Key, Value: tag.Value})
			}
			if m.endpoint != nil {
				e := kmsg.NewStreamsGroupDescribeResponseGroupMemberUserEndpoint()
				e.Host, e.Port = m.endpoint.Host, m.endpoint.Port
				d.UserEndpoint = &e
			}
			out.Members = append(out.Members, d)
		}
		resp.Groups = append(resp.Groups, out)
	}
	return resp
}

func described(t *kmsg.StreamsGroupHeartbeatRequestTopology) *kmsg.StreamsGroupDescribeResponseGroupTopology {
	if t == nil {
		return nil
	}
	out := kmsg.NewStreamsGroupDescribeResponseGroupTopology()
	for _, sub := range t.Subtopologies {
		d := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
		d.SubtopologyID, d.SourceTopics, d.RepartitionSinkTopics = sub.SubtopologyID, sub.SourceTopics, sub.RepartitionSinkTopics
		d.StateChangelogTopics, d.RepartitionSourceTopics = sub.StateChangelogTopics, sub.RepartitionSourceTopics
		out.Subtopologies = append(out.Subtopologies, d)
	}
	return &out
}

// commits checks who commits; the error is nil for what the broker itself is to decide.
func (s *StreamsCoordinator) commits(group, member string, epoch int32) *kerr.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[group]
	if g == nil || member == "" && (len(g.members) == 0 || !g.known) {
		return nil
	}
	m := g.members[member]
	switch {
	case m == nil:
		return kerr.UnknownMemberID
	case epoch != m.epoch:
		return kerr.StaleMemberEpoch
	}
	return nil
}

func (s *StreamsCoordinator) txnOffsetCommit(req *kmsg.TxnOffsetCommitRequest) kmsg.Response {
	var err *kerr.Error
	if req.MemberID != "" || req.Generation != -1 { // Kafka lets a transaction commit that names no member, also where there are members
		err = s.commits(req.Group, req.MemberID, req.Generation)
	}
	if err == nil { // the broker itself doesn't know the member
		req.MemberID, req.Generation = "", -1
		return nil
	}
	resp := req.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewTxnOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, err.Code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (s *StreamsCoordinator) offsetCommit(req *kmsg.OffsetCommitRequest) kmsg.Response {
	err := s.commits(req.Group, req.MemberID, req.Generation)
	if err == nil {
		req.MemberID, req.Generation = "", -1
		return nil
	}
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetCommitResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, err.Code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}
