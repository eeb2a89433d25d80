package group

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// place is what members of all protocols have: who they are in the group, and how they become that again.
type place struct {
	group   string
	lost    func(cause error)              // tells the handler
	rejoin  chan struct{}                  // has a token while a rebalance is asked for
	current atomic.Pointer[offsets.Member] // nil while this is no member
	silence silence
}

// watcher is what all handlers have.
type watcher interface {
	Lost(cause error)
	Unheard(since time.Time, cause error)
}

func newPlace(group string, session time.Duration, w watcher, log *slog.Logger) *place {
	return &place{group: group, lost: w.Lost, rejoin: make(chan struct{}, 1), silence: silence{group: group, log: log, session: session, unheard: w.Unheard}}
}

// Heard implements Membership.
func (p *place) Heard() time.Time {
	if at := p.silence.heard.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Member implements Membership.
func (p *place) Member() (offsets.Member, bool) {
	if m := p.current.Load(); m != nil {
		return *m, true
	}
	return offsets.Member{}, false
}

// Rejoin implements Membership.
func (p *place) Rejoin() {
	select {
	case p.rejoin <- struct{}{}:
	default: // asked for already
	}
}

// errRejoin ends a generation: another one is being made, and the tasks go on meanwhile. Whoever was thrown out joins again by it, too.
var errRejoin = errors.New("rebalance")

// The pauses after failures, which double.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// keep has a member be one until ctx ends or try gives a *FatalError. It calls try again at once after success and errRejoin, and after a
// pause otherwise.
func (p *place) keep(ctx context.Context, try func(context.Context) error) error {
	for pause := time.Duration(0); ctx.Err() == nil; {
		err := try(ctx)
		var fatal *FatalError
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil, errors.Is(err, errRejoin):
			pause = 0
		case errors.As(err, &fatal):
			p.lose(err)
			return err
		default:
			pause = min(max(2*pause, firstPause), lastPause)
			p.silence.fails(err)
			sleep(ctx, pause)
		}
	}
	return nil
}

// lose ends the membership, and reports whether there was one.
func (p *place) lose(cause error) bool {
	if p.current.Swap(nil) == nil {
		return false
	}
	p.lost(cause)
	return true
}

// thrownOut gives what to do when the coordinator doesn't know the member: who was one joins again at once, who is refused while it joins
// only after a pause.
func (p *place) thrownOut(err error) error {
	if p.lose(err) {
		return errRejoin
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
