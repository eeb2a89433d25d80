package engine

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/simnet"
)

// simKeys are the requests that a seed makes go wrong: all that the commit cycle, membership and restore are made of.
var simKeys = []kmsg.Key{
	kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.FindCoordinator,
	kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.InitProducerID, kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn,
	kmsg.EndTxn, kmsg.TxnOffsetCommit, kmsg.StreamsGroupHeartbeat, kmsg.DeleteRecords,
}

// simCommitKeys are those of the commit itself, chosen more often.
var simCommitKeys = []kmsg.Key{kmsg.Produce, kmsg.TxnOffsetCommit, kmsg.EndTxn, kmsg.InitProducerID}

var simStepsToDieAt = []step{
	stepSealing, stepSealed, stepCommitted, stepApplying, stepApplied, stepProducerReset, stepClosed, stepOpened, stepPromoted, stepLanding, stepLanded,
}

var fateNames = map[simnet.Fate]string{
	simnet.LoseRequest: "request lost", simnet.LoseAnswer: "answer lost", simnet.Kill: "killed before", simnet.KillAfter: "killed after",
}

// happen is the next thing that the seed has in store.
func (w *simWorld) happen() {
	w.produce(5 + w.rng.IntN(30))
	living := w.living()
	var p *process
	if len(living) > 0 {
		p = living[w.rng.IntN(len(living))]
	}
	switch n := w.rng.IntN(13); {
	case p == nil || n == 0:
		w.again()
	case n <= 3:
		w.spoilRequest(p)
	case n <= 6:
		w.dieAtAStep(p)
	case n == 7:
		w.say("%s.%d is killed", p.name, p.life)
		w.counts.add("killed in between")
		w.bury(p)
	case n == 8:
		w.pause(p)
	case n == 9:
		w.counts.add("stopped in order")
		w.stop(p)
	case n == 10:
		w.spoilTable()
	case n == 11 && w.vault != nil:
		w.vault.fail(1 + w.rng.IntN(5))
	default:
		w.spoilMembership(p)
	}
	if w.rng.IntN(3) > 0 {
		w.again()
	}
}

// again starts a process: one that takes a dead one's place, or another one.
func (w *simWorld) again() {
	last := map[string]*process{}
	for _, p := range w.processes {
		last[p.name] = p
	}
	for _, p := range w.processes {
		if p.isBuried() && last[p.name] == p && w.rng.IntN(2) == 0 {
			w.counts.add("restarts")
			w.revive(p)
			return
		}
	}
	if len(w.living()) < 3 {
		w.startProcess()
	}
}

// spoilRequest makes one of the process's next requests of a kind go wrong.
func (w *simWorld) spoilRequest(p *process) {
	keys := simKeys
	if w.rng.IntN(2) == 0 {
		keys = simCommitKeys
	}
	key, in := keys[w.rng.IntN(len(keys))], 1+w.rng.IntN(3)
	fate := []simnet.Fate{simnet.LoseRequest, simnet.LoseAnswer, simnet.Kill, simnet.KillAfter}[w.rng.IntN(4)]
	hold := time.Duration(0)
	if w.rng.IntN(4) == 0 {
		hold = time.Duration(w.rng.IntN(8000)) * time.Millisecond
	}
	w.say("%s.%d: %s at its %d. %s, held up %v", p.name, p.life, fateNames[fate], in, key.Name(), hold)
	p.setPolicy(func(k int16) simnet.Fate {
		if k != int16(key) {
			return simnet.Deliver
		}
		if in--; in != 0 {
			return simnet.Deliver
		}
		if hold > 0 {
			w.counts.fate(key, simHeld)
			w.sleep(hold)
		}
		w.counts.fate(key, int(fate))
		if fate == simnet.Kill || fate == simnet.KillAfter {
			w.died <- p
		}
		return fate
	})
}

// dieAtAStep has the process die at a step of its work.
func (w *simWorld) dieAtAStep(p *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dieAt, p.dieIn = simStepsToDieAt[w.rng.IntN(len(simStepsToDieAt))], 1+w.rng.IntN(2)
}

// pause stops a process as SIGSTOP does, as far as others see it: nothing that it sends arrives for a while.
func (w *simWorld) pause(p *process) {
	w.counts.add("paused")
	until := time.Now().Add(time.Duration(w.rng.IntN(12000)) * time.Millisecond)
	w.say("%s.%d is silent until %v", p.name, p.life, until.Format("15:04:05.000"))
	p.setPolicy(func(int16) simnet.Fate {
		w.sleep(time.Until(until))
		return simnet.Deliver
	})
}

// spoilTable lets the table's next commits fail, without an effect: what is unclear is settled before a sink says so.
func (w *simWorld) spoilTable() {
	times := 1 + w.rng.IntN(3)
	w.say("the table fails %d times", times)
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	w.table.fault = func(*table) error {
		if times--; times < 0 {
			return nil
		}
		w.counts.add("table failed")
		return errTable
	}
}

// spoilMembership throws a member out, or loses the coordinator's answers.
func (w *simWorld) spoilMembership(p *process) {
	if w.coordinator == nil {
		w.spoilRequest(p)
		return
	}
	if w.rng.IntN(2) == 0 {
		w.counts.add("answers to heartbeats lost")
		w.coordinator.LoseReplies(1 + w.rng.IntN(3))
		return
	}
	if id := p.engine.identity; id != nil {
		w.counts.add("members thrown out")
		w.say("%s.%d is thrown out of the group", p.name, p.life)
		w.coordinator.Fence(id.UUID().String(), []error{kerr.UnknownMemberID, kerr.FencedMemberEpoch}[w.rng.IntN(2)])
	}
}

// heal ends all faults, and starts who is needed.
func (w *simWorld) heal() {
	w.say("everything heals")
	w.pass(0)
	for _, p := range w.living() {
		p.setPolicy(nil)
		p.mu.Lock()
		p.dieAt = ""
		p.mu.Unlock()
	}
	if w.coordinator != nil {
		w.coordinator.LoseReplies(0)
	}
	if w.vault != nil {
		w.vault.fail(0)
	}
	w.table.mu.Lock()
	w.table.fault = nil
	w.table.mu.Unlock()
	w.pass(time.Second)
	if len(w.living()) == 0 {
		w.startProcess()
	}
}
