package engine

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/simnet"
)

// simKeys are the requests that a seed makes go wrong: all that the commit cycle, membership and restore are made of.
var simKeys = []kmsg.Key{
	kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.FindCoordinator,
	kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.InitProducerID, kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn,
	kmsg.EndTxn, kmsg.TxnOffsetCommit, kmsg.StreamsGroupHeartbeat, kmsg.DeleteRecords,
}

// keys are those of simKeys that processes of this world send.
func (w *simWorld) keys() []kmsg.Key {
	return slices.DeleteFunc(slices.Clone(simKeys), func(k kmsg.Key) bool {
		switch k {
		case kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup:
			return w.coordinator != nil
		case kmsg.StreamsGroupHeartbeat:
			return w.coordinator == nil
		case kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn:
			return !w.explicit
		}
		return false
	})
}

// commitKeys are those of the commit itself, chosen more often.
func (w *simWorld) commitKeys() []kmsg.Key {
	keys := []kmsg.Key{kmsg.Produce, kmsg.TxnOffsetCommit, kmsg.EndTxn, kmsg.InitProducerID}
	if w.explicit {
		keys = append(keys, kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn)
	}
	return keys
}

// startKeys are those that a process sends while it starts, and seldom later.
func (w *simWorld) startKeys() []kmsg.Key {
	keys := []kmsg.Key{kmsg.InitProducerID, kmsg.FindCoordinator, kmsg.Metadata, kmsg.OffsetFetch, kmsg.ListOffsets}
	if w.coordinator == nil {
		keys = append(keys, kmsg.JoinGroup, kmsg.SyncGroup)
	}
	return keys
}

var fateNames = map[simnet.Fate]string{
	simnet.LoseRequest: "request lost", simnet.LoseAnswer: "answer lost", simnet.Kill: "killed before", simnet.KillAfter: "killed after", simnet.Late: "late",
}

// simLateKeys are the requests of which Kafka knows one that comes after what was sent later: by its epoch or its sequence, where transactions
// have an epoch each, or because it says nothing new.
var simLateKeys = []kmsg.Key{kmsg.Produce, kmsg.TxnOffsetCommit, kmsg.EndTxn, kmsg.InitProducerID, kmsg.DeleteRecords}

// spoilRequest makes one of the process's next requests of a kind go wrong, and has it be sent if it is seldom.
func (w *simWorld) spoilRequest(p *process) {
	keys := w.keys()
	if w.rng.IntN(2) == 0 {
		keys = w.commitKeys()
	}
	key := keys[w.rng.IntN(len(keys))]
	w.spoil(p, key)
	switch key {
	case kmsg.LeaveGroup:
		w.stop(p)
	case kmsg.InitProducerID:
		w.fence(p)
	case kmsg.JoinGroup, kmsg.SyncGroup:
		w.throwOut(p)
	case kmsg.ListOffsets, kmsg.OffsetFetch, kmsg.FindCoordinator:
		if w.rng.IntN(2) == 0 {
			w.throwOut(p)
		}
	}
}

// spoil makes one of the process's next requests of a kind go wrong.
func (w *simWorld) spoil(p *process, key kmsg.Key) {
	fates := []simnet.Fate{simnet.LoseRequest, simnet.LoseAnswer, simnet.Kill, simnet.KillAfter}
	if slices.Contains(simLateKeys, key) && !w.explicit {
		fates = append(fates, simnet.Late)
	}
	fate, in, hold := fates[w.rng.IntN(len(fates))], 1, time.Duration(0)
	if slices.Contains(w.commitKeys(), key) {
		in += w.rng.IntN(3)
	}
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
		if p.host.IsCut() {
			return simnet.Deliver // it is dead already
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
