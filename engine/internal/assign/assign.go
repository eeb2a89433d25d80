package assign

import (
	"cmp"
	"slices"
)

// Assign spreads tasks over members, of which signatures gives the leader's own signature of each sub-topology. Tasks that no
// member knows are in no list. The result has an entry for each member; its lists are sorted.
//
// Cost: about n·log n for n tasks, plus the number of pairs of members and sub-topologies.
func Assign(tasks []TaskID, signatures map[int32]uint64, members []Member) map[string][]TaskID {
	a := newAssigner(tasks, signatures, members)
	for _, sub := range a.subs {
		a.setQuotas(sub)
	}
	for _, sub := range a.subs {
		a.keepOwned(sub)
	}
	for _, sub := range a.subs {
		a.place(sub)
	}
	out := make(map[string][]TaskID, len(a.members))
	for _, m := range a.members {
		Sort(m.tasks)
		out[m.ID] = m.tasks
	}
	return out
}

// assigner holds the working state of one call.
type assigner struct {
	members []*member // by id
	subs    []*subtopology
	byID    map[int32]*subtopology
}

type member struct {
	*Member
	index  int
	tasks  []TaskID
	extras int // sub-topologies of which it has one task more than the least
	held   int // tasks that it owns
}

// subtopology is one sub-topology's part in the working state. Slices that are indexed by member go over all members.
type subtopology struct {
	id       int32
	open     map[int32]bool // partitions without a member yet
	eligible []*member
	owned    [][]int32 // by member: partitions that it owns, sorted
	quota    []int     // by member: tasks that it may still get
}

func newAssigner(tasks []TaskID, signatures map[int32]uint64, members []Member) *assigner {
	a := &assigner{byID: map[int32]*subtopology{}}
	for i := range members {
		a.members = append(a.members, &member{Member: &members[i], tasks: []TaskID{}})
	}
	slices.SortFunc(a.members, func(x, y *member) int { return cmp.Compare(x.ID, y.ID) })
	for i, m := range a.members {
		m.index = i
	}
	for _, t := range tasks {
		s := a.byID[t.Subtopology]
		if s == nil {
			s = &subtopology{id: t.Subtopology, open: map[int32]bool{}, owned: make([][]int32, len(members)), quota: make([]int, len(members))}
			a.byID[t.Subtopology] = s
			a.subs = append(a.subs, s)
		}
		s.open[t.Partition] = true
	}
	slices.SortFunc(a.subs, func(x, y *subtopology) int { return cmp.Compare(x.id, y.id) })
	for _, s := range a.subs {
		for _, m := range a.members {
			if sig, ok := m.Signatures[s.id]; ok && sig == signatures[s.id] {
				s.eligible = append(s.eligible, m)
			}
		}
	}
	a.noteOwners()
	return a
}

// noteOwners writes down who owns what. Two owners of one task can't be (only one of them can commit): the first by id is
// believed.
func (a *assigner) noteOwners() {
	taken := map[TaskID]bool{}
	for _, m := range a.members {
		for _, t := range m.Owned {
			s := a.byID[t.Subtopology]
			if s == nil || !s.open[t.Partition] || taken[t] || !slices.Contains(s.eligible, m) {
				continue
			}
			taken[t] = true
			m.held++
			s.owned[m.index] = append(s.owned[m.index], t.Partition)
		}
	}
	for _, s := range a.subs {
		for _, parts := range s.owned {
			slices.Sort(parts)
		}
	}
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

// keepOwned leaves tasks with their owners as far as the quotas go.
func (a *assigner) keepOwned(s *subtopology) {
	for _, m := range s.eligible {
		owned := s.owned[m.index]
		for _, p := range owned[:min(len(owned), s.quota[m.index])] {
			s.give(p, m)
		}
	}
}

// place gives away what is left: first where state is, the most caught up first, then in order.
func (a *assigner) place(s *subtopology) {
	for _, c := range s.copies() {
		if s.open[c.partition] && s.quota[c.member.index] > 0 {
			s.give(c.partition, c.member)
		}
	}
	rest := make([]int32, 0, len(s.open))
	for p := range s.open {
		rest = append(rest, p)
	}
	slices.Sort(rest)
	i := 0
	for _, p := range rest {
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
	lag       int64
	member    *member
}

// copies lists the state copies of tasks without a member, least lag first.
func (s *subtopology) copies() []stateCopy {
	var all []stateCopy
	for _, m := range s.eligible {
		for t, lag := range m.Lags {
			if t.Subtopology == s.id && s.open[t.Partition] {
				all = append(all, stateCopy{t.Partition, lag, m})
			}
		}
	}
	slices.SortFunc(all, func(x, y stateCopy) int {
		return cmp.Or(cmp.Compare(x.lag, y.lag), cmp.Compare(x.partition, y.partition), cmp.Compare(x.member.index, y.member.index))
	})
	return all
}

func (s *subtopology) give(p int32, m *member) {
	delete(s.open, p)
	s.quota[m.index]--
	m.tasks = append(m.tasks, TaskID{s.id, p})
}

// HandOver turns a target into what members are given now: a task that another member still owns is held back until that member
// has given it up and joined again. moving tells how many tasks are held back, so another rebalance has to follow.
func HandOver(target map[string][]TaskID, members []Member) (now map[string][]TaskID, moving int) {
	owner := map[TaskID]string{}
	for _, m := range members {
		for _, t := range m.Owned {
			if first, ok := owner[t]; !ok || m.ID < first {
				owner[t] = m.ID
			}
		}
	}
	now = make(map[string][]TaskID, len(target))
	for id, tasks := range target {
		free := make([]TaskID, 0, len(tasks))
		for _, t := range tasks {
			if o, owned := owner[t]; owned && o != id {
				moving++
				continue
			}
			free = append(free, t)
		}
		now[id] = free
	}
	return now, moving
}
