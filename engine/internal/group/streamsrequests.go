package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/assign"
)

// leaveEpoch in a heartbeat says that the member leaves.
const leaveEpoch = -1

// request is a heartbeat with what is sent each time. The tasks are always in it: the coordinator may have forgotten them.
func (s *Streams) request() *kmsg.StreamsGroupHeartbeatRequest {
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = s.cfg.Group, s.cfg.MemberID, s.epoch
	if s.epoch == 0 { // whoever joins has nothing
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		return req
	}
	held := s.handler.Held()
	req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = taskIDs(held.Active), taskIDs(held.Standbys), taskIDs(held.Warmups)
	return req
}

// describe adds what is sent only by those who join.
func (s *Streams) describe(req *kmsg.StreamsGroupHeartbeatRequest) {
	req.RebalanceTimeoutMillis = int32(s.cfg.RebalanceTimeout.Milliseconds())
	req.Topology = s.cfg.Topology
	req.ProcessID = kmsg.StringPtr(s.cfg.MemberID)
	req.ClientTags = []kmsg.StreamsGroupHeartbeatRequestClientTag{}
	add := func(key, value string) {
		tag := kmsg.NewStreamsGroupHeartbeatRequestClientTag()
		tag.Key, tag.Value = key, value
		req.ClientTags = append(req.ClientTags, tag)
	}
	for _, key := range slices.Sorted(maps.Keys(s.cfg.Tags)) {
		add(key, s.cfg.Tags[key])
	}
	for _, what := range slices.Sorted(maps.Keys(s.cfg.Declares)) {
		add(declaresPrefix+what, s.cfg.Declares[what])
	}
	if host, port, ok := splitEndpoint(s.cfg.Endpoint); ok {
		e := kmsg.NewStreamsGroupHeartbeatRequestUserEndpoint()
		e.Host, e.Port = host, port
		req.UserEndpoint = &e
	}
}

// splitEndpoint takes host:port, or the URL of a server.
func splitEndpoint(endpoint string) (host string, port uint16, ok bool) {
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		endpoint = u.Host
	}
	host, text, err := net.SplitHostPort(endpoint)
	n, perr := strconv.ParseUint(text, 10, 16)
	return host, uint16(n), err == nil && perr == nil
}

// send sends a heartbeat to the group's coordinator. An error that the coordinator answered keeps its explanation.
func (s *Streams) send(ctx context.Context, req *kmsg.StreamsGroupHeartbeatRequest) (*kmsg.StreamsGroupHeartbeatResponse, error) {
	got, err := s.route.request(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := got.(*kmsg.StreamsGroupHeartbeatResponse)
	err = kerr.ErrorForCode(resp.ErrorCode)
	s.route.learn(err)
	if err != nil && resp.ErrorMessage != nil && *resp.ErrorMessage != "" {
		err = fmt.Errorf("%w (%s)", err, *resp.ErrorMessage)
	}
	return resp, err
}

// taskIDs groups tasks as the protocol wants them. The result is never nil: that would mean "as before".
func taskIDs(tasks []assign.TaskID) []kmsg.TaskIDs {
	bySub := map[int32][]int32{}
	for _, t := range tasks {
		bySub[t.Subtopology] = append(bySub[t.Subtopology], t.Partition)
	}
	out := make([]kmsg.TaskIDs, 0, len(bySub))
	for _, sub := range slices.Sorted(maps.Keys(bySub)) {
		ids := kmsg.NewTaskIDs()
		ids.SubtopologyID, ids.Partitions = strconv.Itoa(int(sub)), slices.Sorted(slices.Values(bySub[sub]))
		out = append(out, ids)
	}
	return out
}

// tasksOf reads an assignment.
func tasksOf(resp *kmsg.StreamsGroupHeartbeatResponse) (p assign.Placement, err error) {
	var errs [3]error
	p.Active, errs[0] = readTasks(resp.ActiveTasks)
	p.Standbys, errs[1] = readTasks(resp.StandbyTasks)
	p.Warmups, errs[2] = readTasks(resp.WarmupTasks)
	return p, errors.Join(errs[:]...)
}

func readTasks(ids []kmsg.TaskIDs) ([]assign.TaskID, error) {
	var out []assign.TaskID
	for _, id := range ids {
		sub, err := strconv.ParseInt(id.SubtopologyID, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("the coordinator assigned a task of sub-topology %q, which isn't one of ours: %w", id.SubtopologyID, err)
		}
		for _, p := range id.Partitions {
			out = append(out, assign.TaskID{Subtopology: int32(sub), Partition: p})
		}
	}
	assign.Sort(out)
	return out, nil
}

// coordinator sends requests to a group's coordinator: the client doesn't do so by itself for those of the streams protocol.
type coordinator struct {
	client *kgo.Client
	group  string

	mu   sync.Mutex
	node int32
	ok   bool
}

func (c *coordinator) request(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	node, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Broker(int(node)).Request(ctx, req)
	if err != nil {
		c.forget()
		return nil, fmt.Errorf("coordinator of group %s (broker %d): %w", c.group, node, err)
	}
	return resp, nil
}

func (c *coordinator) find(ctx context.Context) (int32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ok {
		return c.node, nil
	}
	found := kadm.NewClient(c.client).FindGroupCoordinators(ctx, c.group)[c.group]
	if found.Err != nil {
		return 0, fmt.Errorf("find the coordinator of group %s: %w", c.group, found.Err)
	}
	c.node, c.ok = found.NodeID, true
	return c.node, nil
}

// learn forgets the coordinator when it says that it is none any more.
func (c *coordinator) learn(answer error) {
	if errors.Is(answer, kerr.NotCoordinator) || errors.Is(answer, kerr.CoordinatorNotAvailable) {
		c.forget()
	}
}

func (c *coordinator) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ok = false
}

// StreamsMember is a member of a streams group as the coordinator sees it.
type StreamsMember struct {
	ID       string
	Endpoint string // host:port; may be empty
	Tasks    assign.Placement
}

// DescribeStreams asks the coordinator for the members of a streams group, by any client that may see the group.
func DescribeStreams(ctx context.Context, client *kgo.Client, name string) ([]StreamsMember, error) {
	g, err := describeStreams(ctx, client, name)
	if err != nil {
		return nil, err
	}
	var members []StreamsMember
	for _, m := range g.Members {
		d := StreamsMember{ID: m.MemberID}
		if e := m.UserEndpoint; e != nil {
			d.Endpoint = net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
		}
		if d.Tasks.Active, err = readTasks(m.Assignment.ActiveTasks); err != nil {
			return nil, fmt.Errorf("describe streams group %s: %w", name, err)
		}
		if d.Tasks.Standbys, err = readTasks(m.Assignment.StandbyTasks); err != nil {
			return nil, fmt.Errorf("describe streams group %s: %w", name, err)
		}
		if d.Tasks.Warmups, err = readTasks(m.Assignment.WarmupTasks); err != nil {
			return nil, fmt.Errorf("describe streams group %s: %w", name, err)
		}
		members = append(members, d)
	}
	slices.SortFunc(members, func(a, b StreamsMember) int { return cmp.Compare(a.ID, b.ID) })
	return members, nil
}
