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
	Recovering        // a commit failed, the brokers are away, or take no heartbeats for the session timeout: it tries again by itself
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

	mu      sync.Mutex
	told    State  // by the instance itself
	unheard string // why its membership must be presumed lost; empty if it need not
	state   State  // what that makes
	since   time.Time
}

// set changes the state, and tells whether that has made it s; the listener is called one change at a time. The end is final.
func (l *lifecycle) set(s State) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = s
	l.show()
	return l.state == s
}

// presumeLost notes why the group may have given the instance's tasks to others, without the instance having been told; an empty reason that it
// hasn't. One that calls itself running isn't ready meanwhile.
func (l *lifecycle) presumeLost(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unheard = reason
	l.show()
}

// show derives the state. The lock is held.
func (l *lifecycle) show() {
	s := l.told
	if l.unheard != "" && s.Ready() {
		s = Recovering
	}
	if l.state == s || !l.state.Alive() {
		return
	}
	l.state, l.since = s, l.clock()
	if l.listener != nil {
		l.listener(s)
	}
}

// reason says why the state is what it is, where that is known.
func (l *lifecycle) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != Recovering {
		return ""
	}
	return l.unheard
}

func (l *lifecycle) get() (State, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.since
}
