package assign

import (
	"cmp"
	"slices"
)

// stayWarm leaves tasks where their state is caught up, if the place where they belong isn't: that place gets a copy to warm up, and the
// task follows when it is ready (KIP-441).
func (a *assigner) stayWarm() {
	if a.Warmups <= 0 {
		return
	}
	var wanted []warmup
	for _, s := range a.subs {
		if !a.Stateful[s.id] {
			continue
		}
		for _, p := range s.parts {
			to := s.target[p]
			if to == nil || !to.canFollow() || a.warm(s, to, p) {
				continue
			}
			from := a.warmest(s, p)
			if from == nil || from == to {
				continue
			}
			to.active--
			from.active++
			s.active[p] = from
			wanted = append(wanted, warmup{s, p, to})
		}
	}
	// Those that have begun go on; the others have their turn when there is room.
	slices.SortStableFunc(wanted, func(x, y warmup) int {
		return cmp.Compare(x.sub.rank(x.to, x.partition), y.sub.rank(y.to, y.partition))
	})
	for _, w := range wanted[:min(len(wanted), a.warmupsLeft)] {
		w.sub.warming[w.partition] = w.to
		a.warmupsLeft--
	}
}

type warmup struct {
	sub       *subtopology
	partition int32
	to        *member
}

// canFollow tells whether a member can keep copies up to date: those that run an older version of the engine can't, and take tasks over
// cold as they always did.
func (m *member) canFollow() bool { return m.Format >= formatStandbys }

// warm tells whether a member can take a task over at once: its copy is caught up, or the task has so little state that it makes no
// difference.
func (a *assigner) warm(s *subtopology, m *member, p int32) bool {
	if s.rank(m, p) <= caughtUp {
		return true
	}
	size, known := s.sizes[p]
	return known && size <= a.AcceptableLag
}

// warmest is where a task should run meanwhile: its owner, else the least loaded of those that are caught up, else the one whose copy is
// least behind. It is nil if nobody has much that the place where the task belongs has not.
func (a *assigner) warmest(s *subtopology, p int32) *member {
	if o := s.owner[p]; o != nil && s.rank(o, p) == runs {
		return o
	}
	var best *member
	for _, m := range s.eligible {
		if s.rank(m, p) <= follows && (best == nil || a.compareCopies(s, p, m, best) < 0) {
			best = m
		}
	}
	if best == nil || s.rank(best, p) <= caughtUp {
		return best
	}
	behind := s.lag(best, p)
	if size, known := s.sizes[p]; behind >= UnknownLag || known && behind > size/2 {
		return nil // most is still to be read, wherever that is
	}
	if to := s.target[p]; s.rank(to, p) == follows && s.lag(to, p)-behind <= a.AcceptableLag {
		return nil // the difference isn't worth a detour
	}
	return best
}

func (a *assigner) compareCopies(s *subtopology, p int32, x, y *member) int {
	if c := cmp.Compare(s.rank(x, p), s.rank(y, p)); c != 0 {
		return c
	}
	if s.rank(x, p) == caughtUp {
		return cmp.Or(cmp.Compare(x.active, y.active), cmp.Compare(x.index, y.index))
	}
	return cmp.Or(cmp.Compare(s.lag(x, p), s.lag(y, p)), cmp.Compare(x.index, y.index))
}
