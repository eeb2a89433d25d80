package assign

import (
	"cmp"
	"math"
	"slices"
)

// Problem is what Assign decides.
type Problem struct {
	Tasks   []TaskID
	Members []Member
	// Signatures gives the leader's own signature of each sub-topology.
	Signatures map[int32]uint64
	// Shapes gives the leader's own shape of each sub-topology.
	Shapes map[int32]uint64
	// Stateful names the sub-topologies whose tasks have state that other members can have copies of.
	Stateful map[int32]bool
	Options
}

// Options say how state is spread.
type Options struct {
	// Standbys is the number of copies of each stateful task's state that other members keep up to date.
	Standbys int
	// Warmups bounds the number of tasks at a time that members prepare to take over. With 0 nothing is prepared, and tasks move to
	// members that have to restore them first.
	Warmups int
	// AcceptableLag is how many changelog records a member may be behind and still count as caught up.
	AcceptableLag int64
	// SpreadTags names tags, the most important first, in which the copies of a task and the task itself should differ (KIP-708).
	SpreadTags []string
}

// declares tells whether a member has a sub-topology as the leader has it.
func (p *Problem) declares(m *Member, sub int32) bool {
	sig, ok := m.Signatures[sub]
	return ok && sig == p.Signatures[sub] && (m.Format < formatShapes || m.Shapes[sub] == p.Shapes[sub])
}

// Placement is what a member is to have.
type Placement struct {
	Active   []TaskID
	Standbys []TaskID // copies to keep up to date
	Warmups  []TaskID // copies that are to become active as soon as they are caught up
}

// Assign spreads tasks over members. Tasks that no member knows are in no list. The result has an entry for each member; its lists are
// sorted.
//
// Cost: about n·log n for n tasks, plus the number of pairs of members and sub-topologies; with standbys plus the number of pairs of stateful
// tasks and members.
func Assign(p Problem) map[string]Placement {
	a := newAssigner(p)
	for _, sub := range a.subs {
		a.setQuotas(sub)
	}
	for _, sub := range a.subs {
		a.keepOwned(sub)
	}
	for _, sub := range a.subs {
		a.place(sub)
	}
	a.stayWarm()
	for _, sub := range a.subs {
		a.placeStandbys(sub)
	}
	return a.result()
}

// assigner holds the working state of one call.
type assigner struct {
	Problem
	members []*member // by id
	subs    []*subtopology
	byID    map[int32]*subtopology

	warmupsLeft int
}

type member struct {
	*Member
	index    int
	extras   int // sub-topologies of which it has one task more than the least
	held     int // tasks that it owns
	active   int // tasks that it gets
	standbys int // copies that it gets
}

// copyRank tells how good a member's copy of a task is.
type copyRank uint8

// The ranks, the best first.
const (
	runs     copyRank = iota // owns the task, and has its state
	caughtUp                 // keeps it up to date, within the acceptable lag
	follows                  // keeps it up to date, but is behind; or owns the task, and is still restoring it
	dormant                  // has it on disk, at an unknown place
	nothing
)

// subtopology is one sub-topology's part in the working state. Slices that are indexed by member go over all members.
type subtopology struct {
	id       int32
	parts    []int32             // all partitions, sorted
	open     map[int32]bool      // partitions without a member yet
	target   map[int32]*member   // where tasks belong
	active   map[int32]*member   // where they run until that place is caught up
	warming  map[int32]*member   // who prepares to take over a task, or a copy
	leaving  map[int32]*member   // whose copy that is, until then
	standbys map[int32][]*member // who keeps copies
	owner    map[int32]*member
	eligible []*member
	owned    [][]int32            // by member: partitions that it owns, sorted
	ranks    []map[int32]copyRank // by member
	sizes    map[int32]int64      // changelog records of a task, as far as its owner says
	quota    []int                // by member: tasks that it may still get
}

func newAssigner(p Problem) *assigner {
	a := &assigner{Problem: p, warmupsLeft: max(0, p.Warmups), byID: map[int32]*subtopology{}}
	for i := range p.Members {
		a.members = append(a.members, &member{Member: &p.Members[i]})
	}
	slices.SortFunc(a.members, func(x, y *member) int { return cmp.Compare(x.ID, y.ID) })
	for i, m := range a.members {
		m.index = i
	}
	for _, t := range p.Tasks {
		s := a.byID[t.Subtopology]
		if s == nil {
			s = newSubtopology(t.Subtopology, len(a.members))
			a.byID[t.Subtopology] = s
			a.subs = append(a.subs, s)
		}
		s.open[t.Partition] = true
		s.parts = append(s.parts, t.Partition)
	}
	slices.SortFunc(a.subs, func(x, y *subtopology) int { return cmp.Compare(x.id, y.id) })
	for _, s := range a.subs {
		slices.Sort(s.parts)
		for _, m := range a.members {
			if p.declares(m.Member, s.id) {
				s.eligible = append(s.eligible, m)
			}
		}
	}
	a.noteOwners()
	a.noteCopies()
	return a
}

func newSubtopology(id int32, members int) *subtopology {
	s := &subtopology{
		id: id, open: map[int32]bool{}, target: map[int32]*member{}, active: map[int32]*member{}, warming: map[int32]*member{},
		leaving: map[int32]*member{}, standbys: map[int32][]*member{}, owner: map[int32]*member{}, owned: make([][]int32, members), ranks: make([]map[int32]copyRank, members),
		sizes: map[int32]int64{}, quota: make([]int, members),
	}
	for i := range s.ranks {
		s.ranks[i] = map[int32]copyRank{}
	}
	return s
}

// noteOwners writes down who owns what. Two owners of one task can't be (only one of them can commit): the first by id is
// believed.
func (a *assigner) noteOwners() {
	for _, m := range a.members {
		for _, t := range m.Owned {
			s := a.byID[t.Subtopology]
			if s == nil || !s.open[t.Partition] || s.owner[t.Partition] != nil || !slices.Contains(s.eligible, m) {
				continue
			}
			m.held++
			s.owner[t.Partition] = m
			s.ranks[m.index][t.Partition] = runs
			if left, ok := m.Lags[t]; ok && left > a.AcceptableLag && a.Stateful[t.Subtopology] {
				s.ranks[m.index][t.Partition] = follows // it is still restoring
			}
			s.owned[m.index] = append(s.owned[m.index], t.Partition)
			if size, ok := m.Sizes[t]; ok {
				s.sizes[t.Partition] = size
			}
		}
	}
	for _, s := range a.subs {
		for _, parts := range s.owned {
			slices.Sort(parts)
		}
	}
}

// noteCopies writes down who has state of what without owning it.
func (a *assigner) noteCopies() {
	for _, m := range a.members {
		followed := map[TaskID]bool{}
		for _, t := range m.Follows {
			followed[t] = true
		}
		for t, lag := range m.Lags {
			s := a.byID[t.Subtopology]
			if s == nil || !s.open[t.Partition] || s.owner[t.Partition] == m || !slices.Contains(s.eligible, m) {
				continue
			}
			switch {
			case !followed[t]:
				s.ranks[m.index][t.Partition] = dormant
			case lag <= a.AcceptableLag:
				s.ranks[m.index][t.Partition] = caughtUp
			default:
				s.ranks[m.index][t.Partition] = follows
			}
		}
	}
}

func (s *subtopology) rank(m *member, p int32) copyRank {
	if r, ok := s.ranks[m.index][p]; ok {
		return r
	}
	return nothing
}

// lag is how far a member's copy is behind, as far as that can be told.
func (s *subtopology) lag(m *member, p int32) int64 {
	switch s.rank(m, p) {
	case runs:
		return 0
	case caughtUp, follows:
		return m.Lags[TaskID{s.id, p}]
	}
	return math.MaxInt64
}

// setQuotas decides how many tasks of a sub-topology each member gets: the same for all, and one more for some where it doesn't
// come out even. Those with the fewest such extra tasks so far come first, so the totals differ by at most one as well; among
// them those that own more already, so that little moves.
func (a *assigner) setQuotas(s *subtopology) {
	if len(s.eligible) == 0 {
		return
	}
	each, extra := len(s.open)/len(s.eligible), len(s.open)%len(s.eligible)
	order := slices.Clone(s.eligible)
	slices.SortFunc(order, func(x, y *member) int {
		return cmp.Or(
			cmp.Compare(x.extras, y.extras),
			-cmp.Compare(min(len(s.owned[x.index]), each+1), min(len(s.owned[y.index]), each+1)),
			cmp.Compare(x.held, y.held),
			cmp.Compare(x.index, y.index))
	})
	for i, m := range order {
		s.quota[m.index] = each
		if i < extra {
			s.quota[m.index]++
			m.extras++
		}
	}
}

// keepOwned leaves tasks with their owners as far as the quotas go. An owner of too many gives those up that members with room have the best
// copies of.
func (a *assigner) keepOwned(s *subtopology) {
	var roomy []*member
	for _, m := range s.eligible {
		if s.quota[m.index] > len(s.owned[m.index]) {
			roomy = append(roomy, m)
		}
	}
	elsewhere := map[int32]copyRank{}
	for _, m := range roomy {
		for p, r := range s.ranks[m.index] {
			if best, ok := elsewhere[p]; !ok || r < best {
				elsewhere[p] = r
			}
		}
	}
	for _, m := range s.eligible {
		owned := s.owned[m.index]
		if len(owned) > s.quota[m.index] {
			owned = slices.Clone(owned)
			slices.SortStableFunc(owned, func(x, y int32) int { return -cmp.Compare(rankIn(elsewhere, x), rankIn(elsewhere, y)) })
			owned = owned[:s.quota[m.index]]
		}
		for _, p := range owned {
			s.give(p, m)
		}
	}
}

func rankIn(ranks map[int32]copyRank, p int32) copyRank {
	if r, ok := ranks[p]; ok {
		return r
	}
	return nothing
}

// place gives away what is left: first where state is, the most caught up first, then in order.
func (a *assigner) place(s *subtopology) {
	for _, c := range s.copies() {
		if s.open[c.partition] && s.quota[c.member.index] > 0 {
			s.give(c.partition, c.member)
		}
	}
	i := 0
	for _, p := range s.parts {
		if !s.open[p] {
			continue
		}
		for tried := 0; tried < len(s.eligible); tried++ {
			m := s.eligible[i%len(s.eligible)]
			i++
			if s.quota[m.index] > 0 {
				s.give(p, m)
				break
			}
		}
	}
}

// stateCopy is a member's copy of a task's state.
type stateCopy struct {
	partition int32
	rank      copyRank
	lag       int64
	member    *member
}

// copies lists the state copies of tasks without a member, the best first. Among those that are caught up the lag makes no difference: it
// changes from one rebalance to the next.
func (s *subtopology) copies() []stateCopy {
	var all []stateCopy
	for _, m := range s.eligible {
		for p, r := range s.ranks[m.index] {
			if s.open[p] && s.owner[p] != m {
				c := stateCopy{p, r, 0, m}
				if r == follows {
					c.lag = s.lag(m, p)
				}
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(x, y stateCopy) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.lag, y.lag), cmp.Compare(x.partition, y.partition), cmp.Compare(x.member.index, y.member.index))
	})
	return all
}

func (s *subtopology) give(p int32, m *member) {
	delete(s.open, p)
	s.quota[m.index]--
	s.target[p], s.active[p] = m, m
	m.active++
}

// result collects what each member gets.
func (a *assigner) result() map[string]Placement {
	placements := make([]Placement, len(a.members))
	for i := range placements {
		placements[i].Active = []TaskID{}
	}
	for _, s := range a.subs {
		for _, p := range s.parts {
			t := TaskID{s.id, p}
			if m := s.active[p]; m != nil {
				placements[m.index].Active = append(placements[m.index].Active, t)
			}
			w := s.warming[p]
			if w != nil {
				placements[w.index].Warmups = append(placements[w.index].Warmups, t)
			}
			for _, m := range s.standbys[p] {
				if m != w {
					placements[m.index].Standbys = append(placements[m.index].Standbys, t)
				}
			}
		}
	}
	out := make(map[string]Placement, len(a.members))
	for _, m := range a.members {
		out[m.ID] = placements[m.index]
	}
	return out
}
