package engine

// Pause stops processing: no record is taken up and no punctuation runs until Resume, while the instance keeps its tasks, its membership,
// its stores (which can be queried) and its global tables up to date. What was processed before is committed as usual; fetching stops by
// itself when the input buffers are full. Tasks that are assigned meanwhile are restored and wait. It may be called at any time, also before
// Run; it returns at once, and a record that is just being processed is finished. It concerns this instance only: pause all of them to halt
// the application (KIP-834).
func (e *Engine) Pause() {
	if !e.paused.Swap(true) {
		e.log.Info("paused: tasks are kept, and nothing is processed")
		e.tell(pauseChanged{})
	}
}

// Resume ends a Pause. Without one it does nothing.
func (e *Engine) Resume() {
	if e.paused.Swap(false) {
		e.log.Info("resumed")
		e.tell(pauseChanged{})
	}
}

// Paused tells whether the instance is paused.
func (e *Engine) Paused() bool { return e.paused.Load() }

// pauses tells whether a runner may not run at the moment. Global tables go on: others look things up in them when they resume.
func (e *Engine) pauses(r *runner) bool { return e.paused.Load() && r != e.global }

// pauseChanged is the conductor's mail about Pause and Resume.
type pauseChanged struct{}

// wakeAll lets every task look for work, after something that kept them all from it: a pause, a broken producer.
func (e *Engine) wakeAll() {
	for _, r := range e.runners {
		if r.open {
			e.queue.wake(r)
		}
	}
	if e.global != nil && e.global.open {
		e.queue.wake(e.global)
	}
}
