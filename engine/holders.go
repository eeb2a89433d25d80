package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/group"
	"github.com/tributary-io/tributary/internal/task"
)

// picture is which member has which task, as the coordinator told it last.
type picture struct {
	holders  map[task.ID]holder
	standbys map[task.ID][]holder
}

// holder is a member that has a task.
type holder struct{ member, endpoint string }

// pictureLives is how old a picture may be that is believed; pictureRests is how long at least one is kept where it proves wrong, so that
// queries during a rebalance don't become a load for the coordinator.
const (
	pictureLives = 5 * time.Second
	pictureRests = 250 * time.Millisecond
)

// holders tells who has which task, by a picture that is not older than maxAge. The coordinator knows it: members tell it their addresses
// when they join, and the leader their assignments. During a rebalance it says nothing, and the last picture stays.
func (e *Engine) holders(ctx context.Context, maxAge time.Duration) (map[task.ID]holder, error) {
	q := &e.queries
	q.mu.Lock()
	defer q.mu.Unlock() // one asks, the others wait for its answer
	now := e.cfg.clock()
	if q.picture != nil && now.Sub(q.seenAt) < max(maxAge, pictureRests) {
		return q.picture.holders, nil
	}
	seen, err := e.askHolders(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out who has which task: %w", err)
	}
	if seen != nil {
		q.picture = seen
	} else if q.picture == nil {
		return nil, nil // nothing is known yet, so ask again soon
	}
	q.seenAt = now
	return q.picture.holders, nil
}

// standbyHolders are the members that keep a copy of a task, by the last picture.
func (e *Engine) standbyHolders(id task.ID) []holder {
	q := &e.queries
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.picture == nil {
		return nil
	}
	return q.picture.standbys[id]
}

// askHolders asks the coordinator; nil while it has no answer.
func (e *Engine) askHolders(ctx context.Context) (*picture, error) {
	if e.protocol == Streams {
		members, err := group.DescribeStreams(ctx, e.control, e.group())
		if err != nil {
			return nil, err
		}
		return streamsPicture(members), nil
	}
	members, stable, err := group.Describe(ctx, e.control, e.group())
	if err != nil || !stable {
		return nil, err
	}
	return pictureOf(members)
}

func newPicture() *picture {
	return &picture{holders: map[task.ID]holder{}, standbys: map[task.ID][]holder{}}
}

// add notes what a member has.
func (p *picture) add(h holder, has assign.Placement) {
	for _, id := range has.Active {
		p.holders[taskID(id)] = h
	}
	for _, id := range slices.Concat(has.Standbys, has.Warmups) {
		p.standbys[taskID(id)] = append(p.standbys[taskID(id)], h)
	}
}

func streamsPicture(members []group.StreamsMember) *picture {
	seen := newPicture()
	for _, m := range members {
		seen.add(holder{m.ID, m.Endpoint}, m.Tasks)
	}
	return seen
}

func pictureOf(members []group.Described) (*picture, error) {
	seen := newPicture()
	for _, d := range members {
		m, err := assign.DecodeMember(d.ID, d.Metadata)
		if err != nil {
			return nil, err
		}
		if len(d.Assignment) == 0 {
			continue
		}
		a, err := assign.DecodeAssignment(d.Assignment)
		if err != nil {
			return nil, err
		}
		seen.add(holder{d.ID, m.Endpoint}, a.Placement)
	}
	return seen, nil
}
