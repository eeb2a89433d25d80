package engine

// step is a place in the engine's work at which a simulation stops a process: between what others can see and what comes next.
type step string

// The steps.
const (
	stepSealing       step = "sealing"        // one task's changelog records are on their way, other tasks' may not be
	stepSealed        step = "sealed"         // the buffers are closed, and their changelog records on their way
	stepCommitted     step = "committed"      // the transaction is, the stores don't have it yet
	stepApplying      step = "applying"       // one task's stores have it, other tasks' may not
	stepApplied       step = "applied"        // the stores have it
	stepProducerReset step = "producer reset" // after a failed commit, before the tasks are made anew
	stepDrained       step = "drained"        // the last commit of an instance that closes is over, and it hasn't left the group
	stepClosed        step = "closed"         // tasks that go elsewhere are committed and closed, and not given up yet
	stepOpened        step = "opened"         // a task's state is up to date, and it doesn't run yet
	stepPromoted      step = "promoted"       // a standby's database is a task's, which isn't open yet
	stepAdopting      step = "adopting"       // a checkpoint is here, and about to take the place of the state that was removed
)

// step tells a simulation where this instance is.
func (e *Engine) step(s step) {
	if e.cfg.stepped != nil {
		e.cfg.stepped(s)
	}
}
