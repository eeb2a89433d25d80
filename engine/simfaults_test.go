package engine

import (
	"time"

	"github.com/tributary-io/tributary/engine/internal/simnet"
)

// simProcesses is how many processes live at a time, at most.
const simProcesses = 3

// happen is the next thing that the seed has in store.
func (w *simWorld) happen() {
	w.produce(5 + w.rng.IntN(30))
	var p *process
	if living := w.living(); len(living) > 0 {
		p = living[w.rng.IntN(len(living))]
	}
	switch n := w.rng.IntN(16); {
	case p == nil || n == 0:
		w.again()
	case n <= 4:
		w.spoilRequest(p)
	case n <= 9:
		w.strikeAtAStep(p)
	case n == 10:
		w.say("%s.%d is killed", p.name, p.life)
		w.counts.add("killed in between")
		w.bury(p)
	case n == 11:
		w.pause(p)
	case n == 12:
		w.counts.add("stopped in order")
		w.stop(p)
	case n == 13:
		w.spoilTable()
	case n == 14 && w.vault != nil:
		w.vault.fail(1 + w.rng.IntN(5))
	case n == 14:
		w.fence(p)
	default:
		w.spoilMembership(p)
	}
	if w.rng.IntN(3) > 0 {
		if p := w.again(); p != nil && w.rng.IntN(2) == 0 {
			w.spoilStart(p)
		}
	}
}

// again starts a process: one that takes a dead one's place, or another one; nil if there are enough.
func (w *simWorld) again() *process {
	last := map[string]*process{}
	for _, p := range w.processes {
		last[p.name] = p
	}
	for _, p := range w.processes {
		if p.isBuried() && last[p.name] == p && w.rng.IntN(2) == 0 {
			w.counts.add("restarts")
			return w.revive(p)
		}
	}
	if len(w.living()) < simProcesses {
		return w.startProcess()
	}
	return nil
}

// spoilStart has something go wrong with a process that is just starting.
func (w *simWorld) spoilStart(p *process) {
	if w.rng.IntN(3) == 0 {
		steps := []step{stepOpened, stepPromoted}
		if w.vault != nil {
			steps = append(steps, stepAdopting)
		}
		w.strike(p, steps[w.rng.IntN(len(steps))])
		return
	}
	keys := w.startKeys()
	w.spoil(p, keys[w.rng.IntN(len(keys))])
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
	if w.coordinator == nil || w.rng.IntN(2) == 0 {
		w.throwOut(p)
		return
	}
	w.counts.add("answers to heartbeats lost")
	w.coordinator.LoseReplies(1 + w.rng.IntN(3))
}

// heal ends all faults, and starts who is needed.
func (w *simWorld) heal() {
	w.say("everything heals")
	w.pass(0)
	for _, p := range w.living() {
		p.setPolicy(nil)
		p.mu.Lock()
		p.strikeAt = ""
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
