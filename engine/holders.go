package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	if _, err := e.holders(ctx, pictureLives); err != nil {
		return nil, err
	}
	e.queries.mu.Lock()
	seen := e.queries.picture
	e.queries.mu.Unlock()
	if seen == nil {
		return nil, nil
	}
	return seen.members(e.memberID()), nil
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

// members lists who is in a picture.
func (p *picture) members(self string) []Member {
	byID := map[string]*Member{}
	of := func(h holder) *Member {
		m := byID[h.member]
		if m == nil {
			m = &Member{ID: h.member, Endpoint: h.endpoint, Here: h.member == self}
			byID[h.member] = m
		}
		return m
	}
	for _, id := range slices.SortedFunc(maps.Keys(p.holders), compareIDs) {
		m := of(p.holders[id])
		m.Tasks = append(m.Tasks, taskOf(id))
	}
	for _, id := range slices.SortedFunc(maps.Keys(p.standbys), compareIDs) {
		for _, h := range p.standbys[id] {
			m := of(h)
			m.Standbys = append(m.Standbys, taskOf(id))
		}
	}
	all := make([]Member, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, *byID[id])
	}
	return all
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
