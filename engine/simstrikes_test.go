package engine

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// blow is what strikes a process at a step of its work.
type blow int

// The blows.
const (
	dies   blow = iota // the process
	fenced             // another producer of its transactional id starts, which aborts its transaction
	thrown             // the group has it no more
	stalls             // for longer, at times, than its session lasts or its transaction may
	simBlows
)

func (b blow) String() string { return [...]string{"dies", "is fenced", "is thrown out", "stalls"}[b] }

var simStepsToStrikeAt = []step{
	stepSealing, stepSealed, stepCommitted, stepApplying, stepApplied, stepProducerReset, stepClosed, stepOpened, stepPromoted, stepAdopting, stepLanding, stepLanded,
}

// strikeAtAStep has a blow strike the process at a step, which it is brought to if it is seldom there.
func (w *simWorld) strikeAtAStep(p *process) {
	s := simStepsToStrikeAt[w.rng.IntN(len(simStepsToStrikeAt))]
	if s == stepAdopting && w.vault == nil {
		s = stepOpened
	}
	switch s {
	case stepProducerReset:
		w.strike(p, s)
		w.fence(p)
	case stepClosed:
		w.strike(p, s)
		if len(w.living()) < simProcesses {
			w.startProcess()
		}
	case stepOpened, stepPromoted, stepAdopting:
		for _, q := range w.living() {
			if q == p {
				continue
			}
			w.strike(p, s)
			w.counts.add("stopped in order")
			w.stop(q) // its tasks go to p
			return
		}
		w.strike(w.startProcess(), s)
	default:
		w.strike(p, s)
	}
}

// strike has a blow, the process's death half of the time, strike it when it is at a step for the first or second time from now on.
func (w *simWorld) strike(p *process, s step) {
	b := dies
	if w.rng.IntN(2) == 0 {
		b = fenced + blow(w.rng.IntN(int(simBlows-fenced)))
	}
	in, stall := 1, time.Duration(w.rng.IntN(15_000))*time.Millisecond
	if s == stepSealing || s == stepApplying { // there are several tasks
		in += w.rng.IntN(2)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strikeAt, p.strikeIn, p.blow, p.stall = s, in, b, stall
}

// reached is where the process is struck, if that is what it was told. It reports whether the process died: then it says so, nobody hears of
// it from here on, and its successor finds its directory as it is now. What still runs of it is the afterlife.
func (p *process) reached(s step) (died bool) {
	p.mu.Lock()
	struck := p.strikeAt == s
	if struck {
		if p.strikeIn--; p.strikeIn > 0 {
			struck = false
		} else {
			p.strikeAt = ""
		}
	}
	b, stall := p.blow, p.stall
	p.mu.Unlock()
	if !struck || p.host.IsCut() {
		return false
	}
	p.w.counts.struck(s, b)
	p.w.say("%s.%d %s when %s", p.name, p.life, b, s)
	switch b {
	case dies:
		p.host.Cut()
		p.leave()
		p.w.died <- p
		return true
	case fenced:
		p.w.fence(p)
	case thrown:
		p.w.throwOut(p)
	case stalls:
		p.w.sleep(stall)
	}
	return false
}

// fence starts another producer of the process's transactional id, as one does that takes the process for dead: its transaction is aborted.
func (w *simWorld) fence(p *process) {
	id := p.engine.identity
	if id == nil {
		return // it has hardly begun
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = new(id.TransactionalID(simName)), 10_000
	req.ProducerID, req.ProducerEpoch = -1, -1
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	resp, err := req.RequestWith(ctx, w.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	w.say("%s.%d: its producer is fenced: %v", p.name, p.life, err)
	if err == nil {
		w.counts.add("producers fenced")
	}
}

// throwOut takes the process's place in the group from it, as the coordinator does after a session without a heartbeat, or a person.
func (w *simWorld) throwOut(p *process) {
	id := p.engine.identity
	if id == nil {
		return
	}
	w.say("%s.%d is thrown out of the group", p.name, p.life)
	w.counts.add("members thrown out")
	if w.coordinator != nil {
		w.coordinator.Fence(id.UUID().String(), []error{kerr.UnknownMemberID, kerr.FencedMemberEpoch}[p.life%2])
		return
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	member := kmsg.NewLeaveGroupRequestMember()
	member.InstanceID = new(id.InstanceID(simName))
	req.Group, req.Members = simName, append(req.Members, member)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := req.RequestWith(ctx, w.client); err != nil {
		w.say("%s.%d: %v", p.name, p.life, err)
	}
}
