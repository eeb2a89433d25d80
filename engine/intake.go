package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/internal/task"
)

// intake bounds what is fetched and not processed yet, over all inputs of the instance.
//
// While there is enough, nothing is polled. The client has one more fetch of each broker in hand by then, so that the next poll brings it without a
// delay. Only when inputs that have nothing left need more polls are those paused that have more than their share: a pause makes the client drop what it
// has fetched of the input, and fetch it again later.
//
// Its methods may be called from any goroutine.
type intake struct {
	limit  int64         // bytes
	bytes  atomic.Int64  // fetched and not processed
	hungry atomic.Int64  // runners that have too little of an input of which more is known to be there
	room   chan struct{} // has a token once one of them has changed
}

// intakeLook is after how long a poll is made although there is enough: what an idle input has got is not known before.
const intakeLook = 50 * time.Millisecond

func newIntake(limit int64) *intake { return &intake{limit: limit, room: make(chan struct{}, 1)} }

// enough tells whether polling would only use memory. The rest of the limit is for what the next poll brings, of every broker, and for inputs of which
// some are read faster than others.
func (in *intake) enough() bool { return in.bytes.Load() > in.limit/3 && in.hungry.Load() == 0 }

// full tells whether inputs that have more than their share are to be paused.
func (in *intake) full() bool { return in.bytes.Load() > in.limit }

// await returns when more is to be polled.
func (in *intake) await(ctx context.Context) {
	if !in.enough() {
		return
	}
	look := time.NewTimer(intakeLook)
	defer look.Stop()
	for in.enough() {
		select {
		case <-in.room:
		case <-look.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// changed tells await to look again.
func (in *intake) changed() {
	if in.enough() {
		return
	}
	select {
	case in.room <- struct{}{}:
	default:
	}
}

// tellIntake brings the runner's part in the intake up to date. inMu must be held.
func (r *runner) tellIntake() {
	if r.intake == nil {
		return
	}
	bytes, hungry := int64(0), false
	for _, tp := range r.spec.inputs {
		bytes += int64(r.inBytes[tp])
		hungry = hungry || r.lacks(tp)
	}
	if r.closed {
		bytes, hungry = 0, false
	}
	r.intake.bytes.Add(bytes - r.told.bytes)
	if hungry != r.told.hungry {
		n := int64(1)
		if !hungry {
			n = -1
		}
		r.intake.hungry.Add(n)
	}
	r.told.bytes, r.told.hungry = bytes, hungry
	r.intake.changed()
}

// lacks tells whether the runner may soon have to wait for records of an input that are known to be there. inMu must be held.
func (r *runner) lacks(tp task.TopicPartition) bool {
	return !r.paused[tp] && r.inBytes[tp] < r.pauseCap/8 && r.ends[tp] > max(r.taken[tp], r.delivered[tp])
}
