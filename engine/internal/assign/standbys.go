package assign

import (
	"cmp"
	"slices"
)

// placeStandbys decides who keeps copies of a sub-topology's tasks: never the member that runs the task; as different as possible from it and
// from each other in the tags; as many for each member; where there are copies already.
func (a *assigner) placeStandbys(s *subtopology) {
	if a.Standbys <= 0 || !a.Stateful[s.id] {
		return
	}
	b := standbys{assigner: a, sub: s, load: make([]int, len(a.members))}
	for _, m := range s.eligible {
		if m.canFollow() {
			b.members = append(b.members, m)
		}
	}
	if len(b.members) == 0 {
		return
	}
	b.limit = (len(s.parts)*min(a.Standbys, len(b.members)) + len(b.members) - 1) / len(b.members)
	b.eachMissing(b.keep)
	b.eachMissing(b.fill)
	b.even()
	for _, holders := range s.standbys {
		for _, m := range holders {
			m.standbys++
		}
	}
}

// standbys places the copies of one sub-topology's tasks.
type standbys struct {
	*assigner
	sub     *subtopology
	members []*member // that can have some
	load    []int     // by member: copies of this sub-topology
	limit   int       // of each, where possible
}

func (b *standbys) eachMissing(place func(p int32) bool) {
	for _, p := range b.sub.parts {
		if b.sub.active[p] == nil {
			continue
		}
		for len(b.sub.standbys[p]) < b.Standbys && place(p) {
		}
	}
}

// free tells whether a member neither runs the task nor is to have a copy of it so far. One that warms up and had a copy before counts as a
// standby until it takes over: whoever runs the task now is likely to keep one then.
func (b *standbys) free(p int32, m *member) bool {
	if b.sub.warming[p] == m && b.sub.rank(m, p) > follows {
		return false
	}
	return b.sub.active[p] != m && !slices.Contains(b.sub.standbys[p], m)
}

// keep leaves a copy where it is kept up to date (or runs: the task is moving away), unless that costs variety.
func (b *standbys) keep(p int32) bool {
	var best *member
	most := 0
	for _, m := range b.members {
		if !b.free(p, m) {
			continue
		}
		v := b.variety(p, m, nil)
		if v < most {
			continue
		}
		if v > most {
			best, most = nil, v
		}
		if b.sub.rank(m, p) <= follows && (best == nil || b.better(p, m, best)) {
			best = m
		}
	}
	return b.give(p, best)
}

// fill finds a member for a copy.
func (b *standbys) fill(p int32) bool {
	var best *member
	most := 0
	for _, m := range b.members {
		if !b.free(p, m) {
			continue
		}
		if v := b.variety(p, m, nil); best == nil || v > most || v == most && b.better(p, m, best) {
			best, most = m, v
		}
	}
	return b.give(p, best)
}

func (b *standbys) give(p int32, m *member) bool {
	if m == nil {
		return false
	}
	b.sub.standbys[p] = append(b.sub.standbys[p], m)
	b.load[m.index]++
	return true
}

// better compares two members with equal variety.
func (b *standbys) better(p int32, x, y *member) bool {
	full := func(m *member) int {
		if b.load[m.index] >= b.limit {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(min(b.sub.rank(x, p), dormant), min(b.sub.rank(y, p), dormant)),
		cmp.Compare(full(x), full(y)),
		cmp.Compare(b.sub.rank(x, p), b.sub.rank(y, p)),
		cmp.Compare(b.load[x.index], b.load[y.index]),
		cmp.Compare(x.standbys+x.active, y.standbys+y.active),
		cmp.Compare(x.index, y.index)) < 0
}

// variety tells in how many tags, the first weighing most, a member differs from those that run the task or have copies of it, except one. A
// member without a tag differs from nobody in it.
func (b *standbys) variety(p int32, m *member, except *member) int {
	v := 0
	for _, tag := range b.SpreadTags {
		v *= 2
		value, ok := m.Tags[tag]
		if ok && !b.used(p, tag, value, except) {
			v++
		}
	}
	return v
}

func (b *standbys) used(p int32, tag, value string, except *member) bool {
	if b.sub.active[p].Tags[tag] == value {
		return true
	}
	for _, m := range b.sub.standbys[p] {
		if m != except && m.Tags[tag] == value {
			return true
		}
	}
	return false
}

// even moves copies from members that have more to those with fewer, where the tags allow it. The new place catches up first, as far as
// warm-ups are left.
func (b *standbys) even() {
	for moved := true; moved; {
		moved = false
		for _, p := range b.sub.parts {
			for i, from := range b.sub.standbys[p] {
				if to := b.emptier(p, from); to != nil && b.move(p, i, to) {
					b.load[from.index]--
					b.load[to.index]++
					moved = true
				}
			}
		}
	}
}

// emptier finds the member that should rather have the copy that from has of a task, nil if that one is right.
func (b *standbys) emptier(p int32, from *member) *member {
	if b.sub.leaving[p] != nil {
		return nil
	}
	var best *member
	for _, to := range b.members {
		if b.load[from.index]-b.load[to.index] < 2 || !b.free(p, to) || b.variety(p, to, from) < b.variety(p, from, from) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(b.load[to.index], b.load[best.index]), cmp.Compare(b.sub.rank(to, p), b.sub.rank(best, p))) < 0 {
			best = to
		}
	}
	return best
}

// move replaces a copy. One that is of use is kept until the new one is.
func (b *standbys) move(p int32, i int, to *member) bool {
	from := b.sub.standbys[p][i]
	if b.Warmups > 0 && b.sub.rank(from, p) <= caughtUp && !b.warm(b.sub, to, p) {
		if b.warmupsLeft == 0 || b.sub.warming[p] != nil {
			return false
		}
		b.warmupsLeft--
		b.sub.warming[p], b.sub.leaving[p] = to, from
		return true
	}
	b.sub.standbys[p][i] = to
	return true
}
