package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/group"
	"github.com/tributary-io/tributary/engine/internal/versions"
	"github.com/tributary-io/tributary/internal/task"
)

// members stands between the membership, which calls it from its own goroutine, and the conductor. It implements group.Handler.
type members struct {
	e *Engine

	mu       sync.Mutex
	claimed  map[task.ID]bool // what this instance holds or was given: nobody else may run it
	assigned map[task.ID]bool // the last assignment; nil before the first, and after a loss
	copies   map[task.ID]bool // the copies to keep, by whether they are warm-ups
	probeAt  time.Time        // when this instance, which led, looks again whether tasks can move on; zero if there are none
	epoch    int              // counts losses: what was opened before one may not be committed after it
	nonce    uint32
	endpoint string
}

func newMembers(e *Engine, endpoint string) *members {
	return &members{e: e, claimed: map[task.ID]bool{}, endpoint: endpoint, nonce: uint32(time.Now().UnixNano())}
}

// target is the last assignment; ok is false while there is none.
func (m *members) target() (tasks map[task.ID]bool, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.assigned, m.assigned != nil
}

// given is the last assignment with the copies to keep, by whether they are warm-ups.
func (m *members) given() (tasks, copies map[task.ID]bool, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.assigned, m.copies, m.assigned != nil
}

// ask asks for a rebalance although nothing may have changed that the broker sees.
func (m *members) ask() {
	m.mu.Lock()
	m.nonce++
	m.mu.Unlock()
	m.e.membership.Rejoin()
}

func (m *members) lossCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epoch
}

// release says that tasks are closed, so that others may have them.
func (m *members) release(closed []task.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range closed {
		if !m.assigned[id] {
			delete(m.claimed, id)
		}
	}
}

// forget lets others have what was given to this instance and taken away again before it had opened it. It reports whether there was
// something.
func (m *members) forget(runners map[task.ID]*runner) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.claimed)
	maps.DeleteFunc(m.claimed, func(id task.ID, _ bool) bool { return !m.assigned[id] && runners[id] == nil })
	return len(m.claimed) < before
}

// BeforeJoin implements group.Handler: it waits for the conductor to commit. It doesn't wait for ever, since members that
// join too late lose their place: a commit that is still in flight is then refused by the coordinator, and taken back.
func (m *members) BeforeJoin(ctx context.Context) {
	done := make(chan struct{})
	m.e.tell(hold{done})
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(min(m.e.cfg.session, m.e.cfg.rebalance) / 3):
	}
}

// Metadata implements group.Handler.
func (m *members) Metadata() group.Metadata {
	m.mu.Lock()
	defer m.mu.Unlock()
	sizes, left := m.e.heldState(m.claimed)
	self := assign.Member{
		TopologyHash: m.e.plan.Hash, Signatures: m.e.catalog().signatures, Lags: m.e.localState(m.claimed),
		Endpoint: m.endpoint, Nonce: m.nonce, Tags: m.e.cfg.tags, Sizes: sizes,
		Shapes: m.e.version.Shapes, Plan: m.e.version.Packed,
	}
	maps.Copy(self.Lags, left)
	for id, lag := range m.e.standbyLags() {
		if !m.claimed[id] {
			self.Follows, self.Lags[assignID(id)] = append(self.Follows, assignID(id)), lag
		}
	}
	for id := range m.claimed {
		self.Owned = append(self.Owned, assignID(id))
	}
	return group.Metadata{Topics: m.e.catalog().sources, Data: assign.AppendMember(nil, &self)}
}

// Assign implements group.Handler: this instance leads, and decides for all.
func (m *members) Assign(_ context.Context, metas map[string][]byte) (map[string]group.Assignment, error) {
	var all []assign.Member
	for id, data := range metas {
		member, err := assign.DecodeMember(id, data)
		if err != nil {
			return nil, err
		}
		all = append(all, member)
	}
	target := assign.Assign(assign.Problem{
		Tasks: m.e.catalog().ids, Signatures: m.e.catalog().signatures, Shapes: m.e.version.Shapes, Stateful: m.e.catalog().stateful, Members: all, Options: m.e.cfg.spread})
	now, moving := assign.HandOver(target, all)
	out := make(map[string]group.Assignment, len(all))
	standbys, warming := 0, 0
	for _, member := range all {
		p := now[member.ID]
		standbys, warming = standbys+len(p.Standbys), warming+len(target[member.ID].Warmups)
		a := assign.Assignment{TopologyHash: member.TopologyHash, Placement: p, Shapes: m.e.version.Shapes, Leader: m.e.plan.Hash}
		if member.TopologyHash != m.e.plan.Hash {
			a.Plan = m.e.version.Packed
		}
		out[member.ID] = group.Assignment{Partitions: m.partitionsOf(p.Active), Data: assign.AppendAssignment(nil, &a)}
	}
	m.meetMembers(all)
	m.e.log.Info("assigned the group's tasks", "members", len(all), "tasks", len(m.e.catalog().ids), "moving_later", moving, "standbys", standbys, "warming_up", warming)
	m.probeLater(warming > 0)
	return out, nil
}

// meetMembers has the leader say which members run other versions of the topology.
func (m *members) meetMembers(all []assign.Member) {
	counts := map[string]int{}
	var met []versions.Other
	for _, member := range all {
		if hash := member.TopologyHash; hash != m.e.plan.Hash {
			if counts[hash]++; counts[hash] == 1 {
				met = append(met, versions.Other{Who: "member " + member.ID, Hash: hash, Shapes: member.Shapes, Plan: member.Plan})
			}
		}
	}
	m.e.version.Meet(m.e.log, versions.ThisLeads, met...)
}

// meetLeader says how the topology of the member that leads the group differs from this one's.
func (m *members) meetLeader(a *assign.Assignment) {
	if a.Leader == "" || a.Leader == m.e.plan.Hash {
		m.e.version.Meet(m.e.log, versions.ItLeads)
		return
	}
	m.e.version.Meet(m.e.log, versions.ItLeads, versions.Other{Who: "the leader", Hash: a.Leader, Shapes: a.Shapes, Plan: a.Plan})
}

// probeLater has the leader look again after a while, should a member that has caught up not have been heard.
func (m *members) probeLater(needed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probeAt = time.Time{}
	if needed {
		m.probeAt = m.e.cfg.clock().Add(m.e.cfg.probing)
	}
}

// probe asks for the rebalance that is due. The conductor calls it now and then.
func (m *members) probe() {
	m.mu.Lock()
	due := !m.probeAt.IsZero() && m.e.cfg.clock().After(m.probeAt)
	if due {
		m.probeAt = time.Time{}
	}
	m.mu.Unlock()
	if due {
		m.ask()
	}
}

func (m *members) partitionsOf(tasks []assign.TaskID) map[string][]int32 {
	parts := map[string][]int32{}
	for _, t := range tasks {
		for _, tp := range m.e.catalog().tasks[taskID(t)].inputs {
			parts[tp.Topic] = append(parts[tp.Topic], tp.Partition)
		}
	}
	return parts
}

// Assigned implements group.Handler.
func (m *members) Assigned(data []byte) error {
	var a assign.Assignment
	if len(data) > 0 {
		var err error
		if a, err = assign.DecodeAssignment(data); err != nil {
			return err
		}
	}
	m.take(m.e.version.Shared(&a))
	m.meetLeader(&a)
	if len(data) > 0 && a.TopologyHash != m.e.plan.Hash { // a static member's restart with another topology: the broker gave out what was decided for the old one
		m.e.log.Info("the assignment was made for another version of the topology: asking for a new one")
		m.ask()
	}
	m.e.tell(rebalanced{})
	return nil
}

// take notes what this instance is to run and to keep copies of from now on.
func (m *members) take(p assign.Placement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.assigned, m.copies = map[task.ID]bool{}, map[task.ID]bool{}
	for _, t := range p.Active {
		m.assigned[taskID(t)] = true
		m.claimed[taskID(t)] = true
	}
	for _, t := range p.Standbys {
		m.copies[taskID(t)] = false
	}
	for _, t := range p.Warmups {
		m.copies[taskID(t)] = true
	}
}

// Lost implements group.Handler.
func (m *members) Lost(cause error) {
	m.e.log.Warn("this instance was thrown out of the group: it drops its tasks and joins again", "cause", cause)
	m.mu.Lock()
	m.epoch++
	clear(m.claimed)
	m.assigned = nil
	m.mu.Unlock()
	m.e.tell(rebalanced{})
}

// Unheard implements group.Handler.
func (m *members) Unheard(since time.Time, cause error) {
	if since.IsZero() {
		m.e.states.presumeLost("")
		return
	}
	m.e.log.Warn("no heartbeat was taken for the session timeout: the group may have given this instance's tasks to others, so it isn't ready",
		"last", since, "error", cause)
	m.e.states.presumeLost(fmt.Sprintf("no heartbeat was taken since %s: %v", since.UTC().Format("2006-01-02T15:04:05Z"), cause))
}

// localState tells for which tasks, besides those that it holds, this instance has state on disk. It is all counted as equally good:
// opening every database to look would take longer than it saves.
func (e *Engine) localState(claimed map[task.ID]bool) map[assign.TaskID]int64 {
	lags := map[assign.TaskID]int64{}
	entries, err := os.ReadDir(e.appDir())
	if err != nil {
		return lags
	}
	for _, entry := range entries {
		id, err := assign.ParseTaskID(entry.Name())
		if err != nil || claimed[taskID(id)] {
			continue
		}
		lags[id] = 1
	}
	return lags
}

func assignID(id task.ID) assign.TaskID {
	return assign.TaskID{Subtopology: int32(id.Subtopology), Partition: id.Partition}
}

func taskID(id assign.TaskID) task.ID {
	return task.ID{Subtopology: int(id.Subtopology), Partition: id.Partition}
}

// dropLost drops everything that was opened before a loss of membership: it may run elsewhere already.
func (e *Engine) dropLost() error {
	losses := e.members.lossCount()
	if losses == e.losses {
		return nil
	}
	e.log.Warn("dropping tasks that may run elsewhere", "tasks", len(e.runners))
	if err := e.closeRunners(sortedRunners(e.runners)); err != nil {
		return fmt.Errorf("drop lost tasks: %w", err)
	}
	e.dropLake()
	if e.closing.Load() { // what the tasks have sent is in the open transaction
		return e.stopCommits(fmt.Errorf("the membership was lost: %w", kerr.UnknownMemberID))
	}
	if err := e.resetProducer(e.life, e.showTrouble); err != nil {
		return err
	}
	e.losses = losses
	return nil
}

const removedSuffix = ".removed"

// removeState removes a task's directory at once: a process that is killed meanwhile leaves none that only looks like one.
func removeState(dir string) error {
	gone := dir + removedSuffix
	if err := os.RemoveAll(gone); err != nil { // of before
		return err
	}
	if err := os.Rename(dir, gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(gone)
}

// cleanStale removes the state of tasks that this instance hasn't run for a while.
func (e *Engine) cleanStale() {
	entries, err := os.ReadDir(e.appDir())
	if err != nil {
		return
	}
	var removed []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), removedSuffix) { // an instance was killed while it removed it
			_ = os.RemoveAll(filepath.Join(e.appDir(), entry.Name())) // what can't be removed now may be the next time
			continue
		}
		id, err := assign.ParseTaskID(entry.Name())
		if err != nil || e.runners[taskID(id)] != nil || e.standbys[taskID(id)] != nil || e.parting[taskID(id)] > 0 {
			continue
		}
		info, err := entry.Info()
		if err != nil || e.cfg.clock().Sub(info.ModTime()) < e.cfg.cleanAfter {
			continue
		}
		if err := removeState(e.taskDir(taskID(id))); err != nil {
			e.log.Warn("stale state can't be removed", "task", entry.Name(), "error", err)
			continue
		}
		removed = append(removed, entry.Name())
	}
	if len(removed) > 0 {
		slices.Sort(removed)
		e.log.Info("removed the state of tasks that run elsewhere", "tasks", removed)
	}
}
