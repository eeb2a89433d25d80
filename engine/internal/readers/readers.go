package readers

import (
	"fmt"
	"sync"

	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
)

// Set holds what can be read. The zero Set is empty and ready. Its methods may be called from any goroutine.
type Set struct {
	mu      sync.Mutex
	entries map[task.ID]*entry
}

// entry is a task's database while it is open.
type entry struct {
	view   *state.View
	leases int
	idle   chan struct{} // closed when the last lease of a closing entry is released; nil unless it is waited for
}

// Open lets the database of a task be read until Close.
func (s *Set) Open(id task.ID, db *state.DB) error {
	view, err := db.View()
	if err != nil {
		return fmt.Errorf("task %s: open for queries: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = map[task.ID]*entry{}
	}
	if s.entries[id] != nil {
		view.Close()
		return fmt.Errorf("task %s is open for queries already", id)
	}
	s.entries[id] = &entry{view: view}
	return nil
}

// Close ends the reading of tasks, those that aren't open left out. It returns when nothing is being read of them any more.
func (s *Set) Close(ids ...task.ID) {
	var closing []*entry
	s.mu.Lock()
	for _, id := range ids {
		e := s.entries[id]
		if e == nil {
			continue
		}
		delete(s.entries, id)
		if e.leases > 0 {
			e.idle = make(chan struct{})
		}
		closing = append(closing, e)
	}
	s.mu.Unlock()
	for _, e := range closing {
		if e.idle != nil {
			<-e.idle
		}
		e.view.Close()
	}
}

// Has tells whether a task can be read now.
func (s *Set) Has(id task.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[id] != nil
}

// Lease is the right to read a task's stores until Release.
type Lease struct {
	set   *Set
	entry *entry
}

// Acquire takes a lease; ok is false if the task can't be read here now.
func (s *Set) Acquire(id task.ID) (l Lease, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[id]
	if e == nil {
		return Lease{}, false
	}
	e.leases++
	return Lease{s, e}, true
}

// View is what may be read. Iterators over it must be closed before Release.
func (l Lease) View() *state.View { return l.entry.view }

// Release gives the lease back. It must be called once.
func (l Lease) Release() {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	l.entry.leases--
	if l.entry.leases == 0 && l.entry.idle != nil {
		close(l.entry.idle)
	}
}
