package assign

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func sameSignatures(subs int) map[int32]uint64 {
	s := map[int32]uint64{}
	for i := range subs {
		s[int32(i)] = uint64(i) + 100
	}
	return s
}

func makeTasks(partitions ...int) []TaskID {
	var ts []TaskID
	for s, n := range partitions {
		for p := range n {
			ts = append(ts, TaskID{int32(s), int32(p)})
		}
	}
	return ts
}

func makeMembers(n int, signatures map[int32]uint64) []Member {
	ms := make([]Member, n)
	for i := range ms {
		ms[i] = Member{ID: fmt.Sprintf("m%02d", i), Signatures: signatures}
	}
	return ms
}

// settle makes an assignment the members' own.
func settle(ms []Member, to map[string][]TaskID) []Member {
	out := slices.Clone(ms)
	for i := range out {
		out[i].Owned = to[out[i].ID]
	}
	return out
}

// actives decides with no standbys and no warm-ups, where balance is all.
func actives(tasks []TaskID, sigs map[int32]uint64, members []Member) map[string][]TaskID {
	return activeOf(Assign(Problem{Tasks: tasks, Signatures: sigs, Members: members}))
}

func activeOf(ps map[string]Placement) map[string][]TaskID {
	out := map[string][]TaskID{}
	for id, p := range ps {
		out[id] = p.Active
	}
	return out
}

func drawPartitions(t *rapid.T) []int {
	return rapid.SliceOfN(rapid.IntRange(1, 30), 1, 6).Draw(t, "partitions")
}

// checkWhole fails unless every task has exactly one member.
func checkWhole(t *rapid.T, tasks []TaskID, got map[string][]TaskID) {
	seen := map[TaskID]int{}
	for _, ts := range got {
		for _, task := range ts {
			seen[task]++
		}
	}
	for _, task := range tasks {
		if seen[task] != 1 {
			t.Fatalf("task %v has %d members", task, seen[task])
		}
	}
	if len(seen) != len(tasks) {
		t.Fatalf("%d tasks assigned, want %d", len(seen), len(tasks))
	}
}

func spread(got map[string][]TaskID, sub int32) int {
	lo, hi := 1<<30, 0
	for _, ts := range got {
		n := 0
		for _, task := range ts {
			if sub < 0 || task.Subtopology == sub {
				n++
			}
		}
		lo, hi = min(lo, n), max(hi, n)
	}
	return hi - lo
}

func checkBalanced(t *rapid.T, subs int, got map[string][]TaskID) {
	for s := range subs {
		if d := spread(got, int32(s)); d > 1 {
			t.Fatalf("tasks of sub-topology %d differ by %d between members: %v", s, d, got)
		}
	}
	if d := spread(got, -1); d > 1 {
		t.Fatalf("totals differ by %d: %v", d, got)
	}
}

func moved(before, after map[string][]TaskID) (n int) {
	for id, ts := range before {
		for _, task := range ts {
			if !slices.Contains(after[id], task) {
				n++
			}
		}
	}
	return n
}

func TestAssignIsWholeBalancedAndDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawPartitions(t)
		sigs, tasks := sameSignatures(len(parts)), makeTasks(parts...)
		members := makeMembers(rapid.IntRange(1, 12).Draw(t, "members"), sigs)
		for i := range members { // arbitrary owners, also double and unknown ones
			owned := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) TaskID {
				return TaskID{int32(rapid.IntRange(0, 6).Draw(t, "s")), int32(rapid.IntRange(0, 30).Draw(t, "p"))}
			}), 0, 10).Draw(t, "owned")
			members[i].Owned = owned
			members[i].Lags = map[TaskID]int64{}
			for _, task := range rapid.SliceOfN(rapid.SampledFrom(tasks), 0, 5).Draw(t, "copies") {
				members[i].Lags[task] = int64(rapid.IntRange(0, 3).Draw(t, "lag"))
			}
		}
		got := actives(tasks, sigs, members)
		checkWhole(t, tasks, got)
		checkBalanced(t, len(parts), got)
		slices.Reverse(members)
		slices.Reverse(tasks)
		if d := cmp.Diff(got, actives(tasks, sigs, members)); d != "" {
			t.Fatalf("depends on the order of its input: %s", d)
		}
	})
}

func TestAssignIsSticky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawPartitions(t)
		sigs, tasks := sameSignatures(len(parts)), makeTasks(parts...)
		n := rapid.IntRange(1, 8).Draw(t, "members")
		members := makeMembers(n+1, sigs)
		before := actives(tasks, sigs, members[:n])
		if d := cmp.Diff(before, actives(tasks, sigs, settle(members[:n], before))); d != "" {
			t.Fatalf("nothing changed, yet tasks move: %s", d)
		}

		// A new member: only as many tasks move as it gets, give or take one extra task of each sub-topology.
		after := actives(tasks, sigs, settle(members, before))
		checkWhole(t, tasks, after)
		checkBalanced(t, len(parts), after)
		if got, limit := moved(before, after), len(after[members[n].ID])+len(parts)-1; got > limit {
			t.Fatalf("%d tasks move for a new member that gets %d", got, len(after[members[n].ID]))
		}

		// A member that leaves: what it had is spread, the others keep theirs, give or take the extra tasks.
		left := actives(tasks, sigs, settle(members[1:], after))
		checkWhole(t, tasks, left)
		delete(after, members[0].ID)
		if got := moved(after, left); got > len(parts) {
			t.Fatalf("%d tasks of the members that stay move", got)
		}
	})
}

func TestStateIsFollowed(t *testing.T) {
	sigs := sameSignatures(1)
	members := makeMembers(3, sigs)
	members[2].Lags, members[2].Follows = map[TaskID]int64{{0, 0}: 10, {0, 1}: 0}, makeTasks(2)
	members[1].Lags, members[1].Follows = map[TaskID]int64{{0, 0}: 500, {0, 2}: 7}, []TaskID{{0, 0}}
	got := actives(makeTasks(3), sigs, members)
	want := map[string][]TaskID{"m00": {{0, 2}}, "m01": {{0, 0}}, "m02": {{0, 1}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
}

func TestOnlyMembersThatKnowTheSubtopologyGetItsTasks(t *testing.T) {
	sigs := sameSignatures(3)
	members := makeMembers(2, sigs)
	members[1].Signatures = map[int32]uint64{0: sigs[0], 1: 7} // another version of 1, and no 2
	got := actives(makeTasks(2, 2, 2), sigs, members)
	want := map[string][]TaskID{
		"m00": {{0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}},
		"m01": {{0, 0}},
	}
	if d := cmp.Diff(want["m01"], got["m01"], cmp.Transformer("count", func(t []TaskID) int { return len(t) })); d != "" {
		t.Fatal(d)
	}
	for _, task := range got["m01"] {
		if task.Subtopology != 0 {
			t.Fatalf("m01 got %v, which it doesn't know", task)
		}
	}
	if n := len(got["m00"]) + len(got["m01"]); n != 6 {
		t.Fatalf("%d tasks assigned, want 6", n)
	}
}

// Equal names are not enough: a member that declares a store otherwise gets nothing of it. One of a former version can't tell.
func TestOnlyMembersThatDeclareTheSubtopologyEquallyGetItsTasks(t *testing.T) {
	sigs, shapes := sameSignatures(2), map[int32]uint64{0: 1, 1: 2}
	members := makeMembers(3, sigs)
	for i := range members {
		members[i].Format, members[i].Shapes = formatVersion, shapes
	}
	members[1].Shapes = map[int32]uint64{0: 1, 1: 7}
	members[2].Format, members[2].Shapes = formatShapes-1, nil
	got := activeOf(Assign(Problem{Tasks: makeTasks(3, 6), Signatures: sigs, Shapes: shapes, Members: members}))
	has := func(member string, sub int32) (n int) {
		for _, task := range got[member] {
			if task.Subtopology == sub {
				n++
			}
		}
		return n
	}
	for member, want := range map[string]int{"m00": 3, "m01": 0, "m02": 3} {
		if n := has(member, 1); n != want {
			t.Errorf("%s has %d tasks of sub-topology 1, want %d", member, n, want)
		}
		if n := has(member, 0); n != 1 {
			t.Errorf("%s has %d tasks of sub-topology 0, want 1", member, n)
		}
	}
}

// A rebalance ends: members that give up what they are told reach the target, and no task has two members at any time.
func TestHandOverReachesTheTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawPartitions(t)
		sigs, tasks := sameSignatures(len(parts)), makeTasks(parts...)
		n := rapid.IntRange(1, 6).Draw(t, "before")
		members := makeMembers(n+rapid.IntRange(1, 3).Draw(t, "joining"), sigs)
		members = settle(members, actives(tasks, sigs, members[:n]))
		for round := 0; ; round++ {
			placed, moving := HandOver(Assign(Problem{Tasks: tasks, Signatures: sigs, Members: members}), members)
			now := activeOf(placed)
			owners := map[TaskID]string{}
			for id, ts := range now {
				for _, task := range ts {
					if o := owners[task]; o != "" {
						t.Fatalf("task %v given to %s and %s", task, o, id)
					}
					owners[task] = id
				}
			}
			for _, m := range members { // nothing is given to someone while its owner may still run it
				for _, task := range m.Owned {
					if o := owners[task]; o != "" && o != m.ID {
						t.Fatalf("task %v given to %s while %s owns it", task, o, m.ID)
					}
				}
			}
			members = settle(members, now)
			if moving == 0 {
				checkBalanced(t, len(parts), now)
				return
			}
			if round > 2 {
				t.Fatalf("still moving after %d rounds", round)
			}
		}
	})
}
