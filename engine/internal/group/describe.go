package group

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Described is a member as the coordinator sees it.
type Described struct {
	ID         string
	Metadata   []byte // what the member said of itself: Metadata.Data
	Assignment []byte // what it was given: Assignment.Data
}

// Describe asks the coordinator for the members of a group of the classic protocol, by any client that may see the group (DESCRIBE, which
// READ implies). stable is false while a rebalance is under way: brokers then tell neither metadata nor assignments.
func Describe(ctx context.Context, client *kgo.Client, name string) (members []Described, stable bool, err error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{name}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, false, fmt.Errorf("describe group %s: %w", name, err)
	}
	if len(resp.Groups) != 1 {
		return nil, false, fmt.Errorf("describe group %s: the broker answered about %d groups", name, len(resp.Groups))
	}
	g := resp.Groups[0]
	if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
		return nil, false, fmt.Errorf("describe group %s: %w", name, err)
	}
	if g.State != "Stable" || g.Protocol != protocolName {
		return nil, false, nil
	}
	for _, m := range g.Members {
		d, err := described(m)
		if err != nil {
			return nil, false, fmt.Errorf("describe group %s: member %s: %w", name, m.MemberID, err)
		}
		members = append(members, d)
	}
	return members, true, nil
}

func described(m kmsg.DescribeGroupsResponseGroupMember) (Described, error) {
	d := Described{ID: m.MemberID}
	var subscription kmsg.ConsumerMemberMetadata
	if err := subscription.ReadFrom(m.ProtocolMetadata); err != nil {
		return d, fmt.Errorf("read metadata: %w", err)
	}
	d.Metadata = subscription.UserData
	if len(m.MemberAssignment) == 0 { // was given nothing
		return d, nil
	}
	var given kmsg.ConsumerMemberAssignment
	if err := given.ReadFrom(m.MemberAssignment); err != nil {
		return d, fmt.Errorf("read assignment: %w", err)
	}
	d.Assignment = given.UserData
	return d, nil
}
