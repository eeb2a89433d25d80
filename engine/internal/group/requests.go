package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The protocol's names: the type is that of consumers, for the sake of tools, and the name keeps other consumers out of the group.
const (
	protocolType = "consumer"
	protocolName = "tributary"
)

// busyCoordinator is by how much the answer to a join may come later than the rebalance timeout. A join that is given up while it may still be
// answered costs all members: the next one waits behind it in the connection, comes without what its answer would have said, and lets the group
// begin anew. So it is as long as the client waits, by default, before it gives the connection up.
const busyCoordinator = 10 * time.Second

func (c *Classic) join(ctx context.Context) (*kmsg.JoinGroupResponse, error) {
	meta := c.handler.Metadata()
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics, subscription.UserData = slices.Sorted(slices.Values(meta.Topics)), meta.Data
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = protocolName, subscription.AppendTo(nil)

	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID = c.cfg.Group, c.memberID, &c.cfg.InstanceID
	req.SessionTimeoutMillis = int32(c.cfg.SessionTimeout.Milliseconds())
	req.RebalanceTimeoutMillis = int32(c.cfg.RebalanceTimeout.Milliseconds())
	req.ProtocolType = protocolType
	req.Protocols = append(req.Protocols, protocol)
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RebalanceTimeout+max(c.cfg.SessionTimeout, busyCoordinator))
	defer cancel()
	resp, err := req.RequestWith(ctx, c.cfg.Client)
	if err != nil {
		return nil, err
	}
	if resp.MemberID != "" {
		c.memberID = resp.MemberID // also with MEMBER_ID_REQUIRED
	}
	return resp, kerr.ErrorForCode(resp.ErrorCode)
}

// sync hands in all assignments where this member leads, and returns its own.
func (c *Classic) sync(ctx context.Context, joined *kmsg.JoinGroupResponse) ([]byte, error) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.Generation, req.MemberID, req.InstanceID = c.cfg.Group, joined.Generation, c.memberID, &c.cfg.InstanceID
	req.ProtocolType, req.Protocol = kmsg.StringPtr(protocolType), kmsg.StringPtr(protocolName)
	if joined.LeaderID == c.memberID && !joined.SkipAssignment {
		all, err := c.assign(ctx, joined.Members)
		if err != nil {
			return nil, err
		}
		req.GroupAssignment = all
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RebalanceTimeout)
	defer cancel()
	resp, err := req.RequestWith(ctx, c.cfg.Client)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.MemberAssignment) == 0 {
		return nil, nil
	}
	var own kmsg.ConsumerMemberAssignment
	if err := own.ReadFrom(resp.MemberAssignment); err != nil {
		return nil, fmt.Errorf("read assignment: %w", err)
	}
	return own.UserData, nil
}

// assign asks the handler for everybody's assignment.
func (c *Classic) assign(ctx context.Context, members []kmsg.JoinGroupResponseMember) ([]kmsg.SyncGroupRequestGroupAssignment, error) {
	metas := make(map[string][]byte, len(members))
	for _, m := range members {
		var subscription kmsg.ConsumerMemberMetadata
		if err := subscription.ReadFrom(m.ProtocolMetadata); err != nil {
			return nil, fmt.Errorf("metadata of member %s: %w", m.MemberID, err)
		}
		metas[m.MemberID] = subscription.UserData
	}
	given, err := c.handler.Assign(ctx, metas)
	if err != nil {
		return nil, fmt.Errorf("assign tasks: %w", err)
	}
	var all []kmsg.SyncGroupRequestGroupAssignment
	for _, id := range slices.Sorted(maps.Keys(given)) {
		a := kmsg.NewConsumerMemberAssignment()
		for _, topic := range slices.Sorted(maps.Keys(given[id].Partitions)) {
			t := kmsg.NewConsumerMemberAssignmentTopic()
			t.Topic, t.Partitions = topic, given[id].Partitions[topic]
			a.Topics = append(a.Topics, t)
		}
		a.UserData = given[id].Data
		one := kmsg.NewSyncGroupRequestGroupAssignment()
		one.MemberID, one.MemberAssignment = id, a.AppendTo(nil)
		all = append(all, one)
	}
	return all, nil
}

func (c *Classic) heartbeat(ctx context.Context, generation int32) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.SessionTimeout/3) // a connection that hangs must not cost the session
	defer cancel()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.Generation, req.MemberID, req.InstanceID = c.cfg.Group, generation, c.memberID, &c.cfg.InstanceID
	resp, err := req.RequestWith(ctx, c.cfg.Client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// Leave implements Membership. A static member leaves by its instance id.
func (c *Classic) Leave(ctx context.Context) error {
	c.current.Store(nil)
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID, member.InstanceID = c.memberID, &c.cfg.InstanceID
	member.Reason = kmsg.StringPtr("the instance closes")
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.Members = c.cfg.Group, append(req.Members, member)
	resp, err := req.RequestWith(ctx, c.cfg.Client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err == nil && len(resp.Members) > 0 {
		err = kerr.ErrorForCode(resp.Members[0].ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("leave group %s: %w", c.cfg.Group, err)
	}
	return nil
}
