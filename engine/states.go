package engine

import (
	"sync"
	"time"
)

// State is what an instance is doing.
type State int

// The states, in the order of a life without trouble.
const (
	Created     State = iota
	Starting          // checks topics, reads global tables
	Rebalancing       // joins the group, or brings state up to date
	Running           // all tasks that it was given run
	Recovering        // a commit failed or the brokers are away: it tries again by itself
	Paused            // Pause was called: all tasks are there, and nothing is processed
	Draining          // Run's context has ended: it commits and closes
	Stopped
	Failed // Run has returned an error
)

var stateNames = [...]string{"created", "starting", "rebalancing", "running", "recovering", "paused", "draining", "stopped", "failed"}

func (s State) String() string { return stateNames[s] }

// Ready tells whether the instance has everything ready that it was given, and processes it unless it was told to pause.
func (s State) Ready() bool { return s == Running || s == Paused }

// Alive tells whether the instance is on its way or working; false once it has ended.
func (s State) Alive() bool { return s < Stopped }

// lifecycle keeps the state and tells the listener.
type lifecycle struct {
	listener func(State)
	clock    func() time.Time

	mu    sync.Mutex
	state State
	since time.Time
}

// set changes the state; the listener is called one change at a time. The end is final.
func (l *lifecycle) set(s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == s || !l.state.Alive() {
		return
	}
	l.state, l.since = s, l.clock()
	if l.listener != nil {
		l.listener(s)
	}
}

func (l *lifecycle) get() (State, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.since
}
