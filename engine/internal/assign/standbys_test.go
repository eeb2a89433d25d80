package assign

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// group simulates members that do what they are told: they follow what they are given to follow, give up what isn't theirs any more, and
// keep what they had on disk.
type group struct {
	Problem
	behind map[string]map[TaskID]int64 // of followed copies
}

func newGroup(p Problem) *group {
	g := &group{Problem: p, behind: map[string]map[TaskID]int64{}}
	for i := range g.Members {
		g.Members[i].Format = formatVersion
	}
	return g
}

const bigState = 1_000_000 // changelog records of a task

// round is one generation. It fails if a task gets two owners, or one that isn't warm while a warm one lives.
func (g *group) round(t *rapid.T) (now map[string]Placement, moving int) {
	target := Assign(g.Problem)
	g.checkPlacements(t, target)
	now, moving = HandOver(target, g.Members)
	before := slices.Clone(g.Members)
	owners := map[TaskID]string{}
	for _, m := range before {
		for _, task := range m.Owned {
			owners[task] = m.ID
		}
	}
	for i := range g.Members {
		m := &g.Members[i]
		p := now[m.ID]
		for _, task := range p.Active {
			if o, ok := owners[task]; ok && o != m.ID {
				t.Fatalf("%v is given to %s while %s owns it", task, m.ID, o)
			}
			g.checkWarm(t, before, before[i], task)
		}
		g.take(m, p)
	}
	return now, moving
}

// take lets a member follow its assignment.
func (g *group) take(m *Member, p Placement) {
	lags := maps.Clone(m.Lags)
	if lags == nil {
		lags = map[TaskID]int64{}
	}
	for _, task := range m.Owned {
		lags[task] = 1 // given up: on disk
	}
	behind := map[TaskID]int64{}
	m.Follows = nil
	for _, task := range slices.Concat(p.Standbys, p.Warmups) {
		lag, followed := g.behind[m.ID][task]
		switch {
		case followed:
		case slices.Contains(m.Owned, task):
			lag = 0
		default:
			lag = bigState
		}
		behind[task], lags[task] = lag, lag
		m.Follows = append(m.Follows, task)
	}
	for task := range lags { // closed copies: on disk, at an unknown place
		if _, ok := behind[task]; !ok {
			lags[task] = 1
		}
	}
	m.Owned, m.Sizes = slices.Clone(p.Active), map[TaskID]int64{}
	for _, task := range p.Active {
		delete(lags, task)
		m.Sizes[task] = bigState
	}
	m.Lags, g.behind[m.ID] = lags, behind
}

// catchUp lets copies come nearer, some of them to the end.
func (g *group) catchUp(left func(TaskID) int64) {
	for i := range g.Members {
		m := &g.Members[i]
		for task := range g.behind[m.ID] {
			lag := min(g.behind[m.ID][task], left(task))
			g.behind[m.ID][task], m.Lags[task] = lag, lag
		}
	}
}

// checkWarm fails if a member that isn't caught up gets a task that another one could go on with at once.
func (g *group) checkWarm(t *rapid.T, before []Member, m Member, task TaskID) {
	if g.Warmups == 0 || !g.Stateful[task.Subtopology] {
		return
	}
	warm := func(m Member) bool {
		return slices.Contains(m.Owned, task) || slices.Contains(m.Follows, task) && m.Lags[task] <= g.AcceptableLag
	}
	if warm(m) {
		return
	}
	for _, o := range before {
		if warm(o) {
			t.Fatalf("%v is given to %s, which is cold, while %s is warm", task, m.ID, o.ID)
		}
	}
}

// checkPlacements checks what holds for every target: copies on different members, as many as there can be, evenly spread.
func (g *group) checkPlacements(t *rapid.T, target map[string]Placement) {
	copies := map[TaskID]map[string]int{}
	load := map[int32]map[string]int{}
	warmups := 0
	for _, m := range g.Members {
		p := target[m.ID]
		warmups += len(p.Warmups)
		for _, task := range slices.Concat(p.Active, p.Standbys, p.Warmups) {
			if copies[task] == nil {
				copies[task] = map[string]int{}
			}
			copies[task][m.ID]++
			if copies[task][m.ID] > 1 {
				t.Fatalf("%s gets %v twice: %v", m.ID, task, p)
			}
		}
		for _, task := range p.Standbys {
			if load[task.Subtopology] == nil {
				load[task.Subtopology] = map[string]int{}
			}
			load[task.Subtopology][m.ID]++
		}
	}
	if warmups > g.Warmups {
		t.Fatalf("%d warm-ups, %d are allowed", warmups, g.Warmups)
	}
	for _, task := range g.Tasks {
		want := 1
		if g.Stateful[task.Subtopology] {
			want = 1 + min(g.Standbys, len(g.Members)-1)
		}
		if got := len(copies[task]); got < want {
			t.Fatalf("%v has %d members, want %d at least", task, got, want)
		}
	}
	if len(g.SpreadTags) > 0 || warmups > 0 {
		return
	}
	for sub, of := range load {
		lo, hi := 1<<30, 0
		for _, m := range g.Members {
			lo, hi = min(lo, of[m.ID]), max(hi, of[m.ID])
		}
		if hi-lo > 1 {
			t.Fatalf("standbys of sub-topology %d: from %d to %d a member: %v", sub, lo, hi, of)
		}
	}
}

func drawProblem(t *rapid.T) Problem {
	parts := rapid.SliceOfN(rapid.IntRange(1, 12), 1, 4).Draw(t, "partitions")
	p := Problem{Tasks: makeTasks(parts...), Signatures: sameSignatures(len(parts)), Stateful: map[int32]bool{}}
	for s := range parts {
		p.Stateful[int32(s)] = s == 0 || rapid.Bool().Draw(t, "stateful")
	}
	p.Options = Options{
		Standbys: rapid.IntRange(0, 3).Draw(t, "standbys"), Warmups: rapid.IntRange(0, 4).Draw(t, "warmups"), AcceptableLag: 100,
	}
	return p
}

// Members come and go; copies catch up in any order. No task has two owners or goes to a cold member while a warm one lives, and once nothing
// happens any more the group comes to rest in balance, after as many rounds as the warm-ups take.
func TestWarmUpsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.Members = makeMembers(rapid.IntRange(1, 5).Draw(t, "members"), p.Signatures)
		g := newGroup(p)
		next := len(p.Members)
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				g.Members = append(g.Members, Member{ID: fmt.Sprintf("m%02d", next), Signatures: g.Signatures, Format: formatVersion})
				next++
			case 1:
				if len(g.Members) > 1 {
					gone := rapid.IntRange(0, len(g.Members)-1).Draw(t, "gone")
					delete(g.behind, g.Members[gone].ID)
					g.Members = slices.Delete(slices.Clone(g.Members), gone, gone+1)
				}
			}
			g.round(t)
			g.catchUp(func(TaskID) int64 { return int64(rapid.IntRange(0, 3).Draw(t, "left")) * 90 })
		}
		limit := 4*len(g.Tasks) + 6
		for rounds := 0; ; rounds++ {
			now, moving := g.round(t)
			warming := 0
			for _, p := range now {
				warming += len(p.Warmups)
			}
			g.catchUp(func(TaskID) int64 { return 0 })
			if moving+warming == 0 {
				checkWhole(t, g.Tasks, activeOf(now))
				checkBalanced(t, len(g.Stateful), activeOf(now))
				again, _ := g.round(t)
				if d := cmp.Diff(now, again); d != "" {
					t.Fatalf("at rest, and yet something changes: %s", d)
				}
				return
			}
			if rounds > limit {
				t.Fatalf("not at rest after %d rounds: %v", rounds, now)
			}
		}
	})
}

// With enough zones every copy of a task is in a zone of its own, and the load is even where the zones are.
func TestTagsSpreadCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		zones := p.Standbys + 1 + rapid.IntRange(0, 2).Draw(t, "more zones")
		p.SpreadTags = []string{"zone", "rack"}
		p.Members = makeMembers(zones*rapid.IntRange(1, 3).Draw(t, "a zone"), p.Signatures)
		zone := map[string]string{}
		for i := range p.Members {
			zone[p.Members[i].ID] = fmt.Sprint("z", i%zones)
			p.Members[i].Tags = map[string]string{"zone": fmt.Sprint("z", i%zones), "rack": fmt.Sprint("r", i%2)}
		}
		g := newGroup(p)
		for range 3 {
			used := map[TaskID]map[string]bool{}
			for id, placed := range Assign(g.Problem) {
				for _, task := range slices.Concat(placed.Active, placed.Standbys) {
					if used[task] == nil {
						used[task] = map[string]bool{}
					}
					if used[task][zone[id]] {
						t.Fatalf("%v has two copies in %s", task, zone[id])
					}
					used[task][zone[id]] = true
				}
			}
			g.round(t)
			g.catchUp(func(TaskID) int64 { return int64(rapid.IntRange(0, 1).Draw(t, "left")) * 500 })
		}
	})
}

// A member dies: its tasks go to those that have caught-up copies, at once and however uneven that is, and come back into balance by warm-ups.
func TestStandbysTakeOver(t *testing.T) {
	p := Problem{Tasks: makeTasks(6), Signatures: sameSignatures(1), Stateful: map[int32]bool{0: true}, Options: Options{Standbys: 1, Warmups: 2, AcceptableLag: 10}}
	p.Members = []Member{
		{ID: "b", Signatures: p.Signatures, Format: 2, Owned: []TaskID{{0, 2}, {0, 3}}, Follows: []TaskID{{0, 0}, {0, 1}, {0, 4}}, Lags: map[TaskID]int64{{0, 0}: 3, {0, 1}: 4, {0, 4}: 9999}, Sizes: map[TaskID]int64{{0, 2}: bigState, {0, 3}: bigState}},
		{ID: "c", Signatures: p.Signatures, Format: 2, Owned: []TaskID{{0, 5}}, Follows: []TaskID{{0, 4}}, Lags: map[TaskID]int64{{0, 4}: 2}},
	}
	got := Assign(p)
	if d := cmp.Diff([]TaskID{{0, 0}, {0, 1}, {0, 2}, {0, 3}}, got["b"].Active); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]TaskID{{0, 4}, {0, 5}}, got["c"].Active); d != "" {
		t.Error(d)
	}
	if len(got["c"].Warmups) != 1 {
		t.Errorf("c prepares %v, want one task of b", got["c"].Warmups)
	}
}

// A task with little state moves at once: restoring it takes no longer than a rebalance.
func TestSmallStateMovesAtOnce(t *testing.T) {
	for size, want := range map[int64]int{50: 1, 5000: 0} {
		p := Problem{Tasks: makeTasks(2), Signatures: sameSignatures(1), Stateful: map[int32]bool{0: true}, Options: Options{Warmups: 2, AcceptableLag: 100}}
		p.Members = []Member{
			{ID: "a", Signatures: p.Signatures, Format: 2, Owned: makeTasks(2), Sizes: map[TaskID]int64{{0, 0}: size, {0, 1}: size}},
			{ID: "b", Signatures: p.Signatures, Format: 2},
		}
		got := Assign(p)
		if len(got["b"].Active) != want || len(got["b"].Warmups) != 1-want {
			t.Errorf("with %d records b gets %+v", size, got["b"])
		}
	}
}

// An owner that is still restoring is no reason for a task to stay, unless it is nearly through: when everything starts at once, everybody
// restores a part.
func TestOwnersThatRestoreGiveTasksAway(t *testing.T) {
	for left, want := range map[int64]int{UnknownLag: 2, bigState - 5: 2, 5000: 0, 50: 0} {
		p := Problem{Tasks: makeTasks(4), Signatures: sameSignatures(1), Stateful: map[int32]bool{0: true}, Options: Options{Warmups: 2, AcceptableLag: 100}}
		a := Member{ID: "a", Signatures: p.Signatures, Format: 2, Owned: makeTasks(4), Lags: map[TaskID]int64{}, Sizes: map[TaskID]int64{}}
		for _, task := range p.Tasks {
			a.Lags[task] = left
			if left != UnknownLag {
				a.Sizes[task] = bigState
			}
		}
		p.Members = []Member{a, {ID: "b", Signatures: p.Signatures, Format: 2}}
		got := Assign(p)
		if len(got["b"].Active) != want || len(got["b"].Warmups) != 2-want {
			t.Errorf("with %d left b gets %+v", left, got["b"])
		}
	}
}

// Members of the first version can't follow: they get no copies, and tasks as before.
func TestOlderMembersTakeTasksCold(t *testing.T) {
	p := Problem{Tasks: makeTasks(4), Signatures: sameSignatures(1), Stateful: map[int32]bool{0: true}, Options: Options{Standbys: 1, Warmups: 2}}
	p.Members = []Member{
		{ID: "a", Signatures: p.Signatures, Format: 2, Owned: makeTasks(4), Sizes: map[TaskID]int64{{0, 0}: bigState}},
		{ID: "b", Signatures: p.Signatures, Format: 1},
	}
	got := Assign(p)
	if len(got["b"].Active) != 2 || len(got["b"].Standbys)+len(got["b"].Warmups) > 0 {
		t.Errorf("the older member gets %+v", got["b"])
	}
	if d := cmp.Diff(got["b"].Active, got["a"].Standbys); d != "" {
		t.Errorf("the newer member should have the copies of what the older one runs: %s", d)
	}
}

// A copy that is kept up to date in the task's own zone goes to the other zone, whatever the order of the members.
func TestVarietyGoesBeforeACopyThatIsThere(t *testing.T) {
	for _, elsewhere := range []string{"0", "9"} { // the member in the other zone is the first, or the last
		p := Problem{
			Tasks: makeTasks(1), Signatures: sameSignatures(1), Stateful: map[int32]bool{0: true},
			Options: Options{Standbys: 1, AcceptableLag: 10, SpreadTags: []string{"zone"}},
		}
		p.Members = []Member{
			{ID: "4", Tags: map[string]string{"zone": "a"}, Owned: makeTasks(1)},
			{ID: "5", Tags: map[string]string{"zone": "a"}, Follows: makeTasks(1), Lags: map[TaskID]int64{{}: 0}},
			{ID: elsewhere, Tags: map[string]string{"zone": "b"}},
		}
		for i := range p.Members {
			p.Members[i].Signatures, p.Members[i].Format = p.Signatures, formatVersion
		}
		got := Assign(p)
		if len(got["4"].Active) != 1 || len(got[elsewhere].Standbys) != 1 {
			t.Errorf("member %s in the other zone gets %+v, all: %+v", elsewhere, got[elsewhere], got)
		}
	}
}

func thousands(members int) Problem {
	p := Problem{Signatures: sameSignatures(10), Stateful: map[int32]bool{}, Options: Options{Standbys: 2, Warmups: 8, AcceptableLag: 10_000, SpreadTags: []string{"zone"}}}
	p.Tasks = makeTasks(1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000)
	for s := range 10 {
		p.Stateful[int32(s)] = true
	}
	p.Members = makeMembers(members, p.Signatures)
	for i := range p.Members {
		p.Members[i].Tags, p.Members[i].Format = map[string]string{"zone": fmt.Sprint(i % 3)}, formatVersion
	}
	g := newGroup(p)
	for _, m := range g.Members {
		g.behind[m.ID] = map[TaskID]int64{}
	}
	placed := Assign(g.Problem)
	for i := range g.Members {
		g.take(&g.Members[i], placed[g.Members[i].ID])
	}
	g.Members = g.Members[1:]
	return g.Problem
}

// The first try that is quick enough counts, of many, since the machine may have other things to do.
func TestThousandsOfTasksAreQuick(t *testing.T) {
	for _, c := range []struct {
		standbys int
		within   time.Duration
	}{{0, 800 * time.Millisecond}, {2, 3 * time.Second}} {
		p := thousands(100)
		p.Standbys = c.standbys
		best := time.Hour
		for tries := 0; tries < 20 && best > c.within; tries++ {
			start := time.Now()
			Assign(p)
			best = min(best, time.Since(start))
		}
		if best > c.within {
			t.Errorf("assigning 10,000 tasks with %d standbys each to 99 members took %v", c.standbys, best)
		}
	}
}

func BenchmarkAssign10000TasksTo100Members(b *testing.B) {
	for name, standbys := range map[string]int{"alone": 0, "with two standbys": 2} {
		p := thousands(100)
		p.Standbys = standbys
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Assign(p)
			}
		})
	}
}
