package engine

import (
	"context"
	"errors"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/group"
	"github.com/tributary-io/tributary/engine/internal/holders"
)

// askHolders asks the coordinator; nil while it has no answer.
func (e *Engine) askHolders(ctx context.Context) (*holders.Picture, error) {
	if e.protocol == Streams {
		members, err := group.DescribeStreams(ctx, e.control, e.group())
		if err != nil {
			return nil, err
		}
		return holders.OfStreams(members), nil
	}
	members, stable, err := group.Describe(ctx, e.control, e.group())
	if err != nil || !stable {
		return nil, err
	}
	return holders.OfClassic(members)
}

// Member is a member of the application's group: an instance.
type Member struct {
	ID       string // the coordinator's name for it
	Endpoint string // of its HTTP server, empty if it has none
	Here     bool   // this instance
	// Tasks and Standbys are the names of its tasks, and of those that it keeps copies of, sorted.
	Tasks, Standbys []string
}

var errNotStarted = errors.New("the instance hasn't started yet, or has ended")

// Members tells which instances share the application, as the group's coordinator knows it: it is asked at most every few seconds. During a
// rebalance that is the last that was known. Members without tasks and copies are left out. It is an error before the
// instance has started.
func (e *Engine) Members(ctx context.Context) ([]Member, error) {
	if e.queries.started.Load() == nil {
		return nil, errNotStarted
	}
	seen, err := e.queries.holders.Look(ctx, holders.Lives)
	if err != nil || seen == nil {
		return nil, err
	}
	self, holding := e.memberID(), seen.Members()
	all := make([]Member, 0, len(holding))
	for _, h := range holding {
		all = append(all, Member{ID: h.ID, Endpoint: h.Endpoint, Here: h.ID == self, Tasks: names(h.Tasks), Standbys: names(h.Copies)})
	}
	return all, nil
}

func names(ids []assign.TaskID) (all []string) {
	for _, id := range ids {
		all = append(all, id.String())
	}
	return all
}

// memberID is this instance's name in the group; empty while it has none.
func (e *Engine) memberID() string {
	m := e.membershipShown.Load()
	if m == nil {
		return ""
	}
	member, _ := (*m).Member()
	return member.ID
}
