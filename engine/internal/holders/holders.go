package holders

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/group"
)

// Lives is how old a picture may be that is believed. rests is how long at least one is kept where it proves wrong, so that queries during a rebalance don't
// become a load for the coordinator.
const (
	Lives = 5 * time.Second
	rests = 250 * time.Millisecond
)

// Book keeps the last picture. Its methods may be called from any goroutine.
type Book struct {
	ask   func(context.Context) (*Picture, error)
	clock func() time.Time

	mu     sync.Mutex
	last   *Picture
	seenAt time.Time
}

// NewBook makes an empty book. ask has the coordinator asked; it gives nil while that has no answer.
func NewBook(ask func(context.Context) (*Picture, error), clock func() time.Time) *Book {
	return &Book{ask: ask, clock: clock}
}

// Look gives a picture that is not older than maxAge, or the last one where there is no newer; nil while nothing is known.
func (b *Book) Look(ctx context.Context, maxAge time.Duration) (*Picture, error) {
	b.mu.Lock()
	defer b.mu.Unlock() // one asks, the others wait for its answer
	now := b.clock()
	if b.last != nil && now.Sub(b.seenAt) < max(maxAge, rests) {
		return b.last, nil
	}
	seen, err := b.ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out who has which task: %w", err)
	}
	if seen != nil {
		b.last = seen
	} else if b.last == nil {
		return nil, nil // ask again soon
	}
	b.seenAt = now
	return b.last, nil
}

// Picture is which member has which task. It isn't changed once it is made. A nil one knows nobody.
type Picture struct {
	tasks  map[assign.TaskID]Member
	copies map[assign.TaskID][]Member
}

// Member is a member of the group; Endpoint is the address of its HTTP server, empty if it has none.
type Member struct{ ID, Endpoint string }

// URL is the URL of the member's server, without a slash at its end.
func (m Member) URL() string {
	url := m.Endpoint
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	return strings.TrimSuffix(url, "/")
}

// Of is the member that has a task.
func (p *Picture) Of(id assign.TaskID) (m Member, ok bool) {
	if p == nil {
		return m, false
	}
	m, ok = p.tasks[id]
	return m, ok
}

// Copies are the members that keep a copy of a task. The slice is the picture's.
func (p *Picture) Copies(id assign.TaskID) []Member {
	if p == nil {
		return nil
	}
	return p.copies[id]
}

// Holding is what a member has, sorted.
type Holding struct {
	Member
	Tasks, Copies []assign.TaskID
}

// Members lists the members that have tasks or copies, by their ids.
func (p *Picture) Members() []Holding {
	if p == nil {
		return nil
	}
	byID := map[string]*Holding{}
	of := func(m Member) *Holding {
		h := byID[m.ID]
		if h == nil {
			h = &Holding{Member: m}
			byID[m.ID] = h
		}
		return h
	}
	for _, id := range slices.SortedFunc(maps.Keys(p.tasks), assign.TaskID.Compare) {
		h := of(p.tasks[id])
		h.Tasks = append(h.Tasks, id)
	}
	for _, id := range slices.SortedFunc(maps.Keys(p.copies), assign.TaskID.Compare) {
		for _, m := range p.copies[id] {
			h := of(m)
			h.Copies = append(h.Copies, id)
		}
	}
	all := make([]Holding, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, *byID[id])
	}
	return all
}

func newPicture() *Picture {
	return &Picture{tasks: map[assign.TaskID]Member{}, copies: map[assign.TaskID][]Member{}}
}

// add notes what a member has.
func (p *Picture) add(m Member, has assign.Placement) {
	for _, id := range has.Active {
		p.tasks[id] = m
	}
	for _, id := range slices.Concat(has.Standbys, has.Warmups) {
		p.copies[id] = append(p.copies[id], m)
	}
}

// OfStreams is the picture of a streams group.
func OfStreams(members []group.StreamsMember) *Picture {
	p := newPicture()
	for _, m := range members {
		p.add(Member{m.ID, m.Endpoint}, m.Tasks)
	}
	return p
}

// OfClassic is the picture of a group of the classic protocol. Members that have no assignment yet are left out.
func OfClassic(members []group.Described) (*Picture, error) {
	p := newPicture()
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
		p.add(Member{d.ID, m.Endpoint}, a.Placement)
	}
	return p, nil
}
