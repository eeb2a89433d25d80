package engine

import (
	"github.com/tributary-io/tributary/internal/filelimit"
	"github.com/tributary-io/tributary/internal/task"
)

// What an instance has open beside its stores.
const (
	filesOfInstance = 60 // the program's own, locks, its HTTP server, queries and checkpoints from others
	filesPerBroker  = 12 // connections: its clients have some each, by kinds of requests
)

// checkFiles warns of stores that may need more files than the process may open: where it can't open one any more, it ends. copies are the standbys that
// the instance is about to have.
func (e *Engine) checkFiles(copies map[task.ID]bool) {
	limit := filelimit.Limit()
	if limit == 0 {
		return
	}
	databases := len(copies)
	for id, r := range e.runners {
		if _, copied := copies[id]; !copied && len(e.storeSpecs(r.spec)) > 0 {
			databases++
		}
	}
	need := e.resources.FilesFor(databases) + filesOfInstance + filesPerBroker*max(1, len(e.control.DiscoveredBrokers()))
	if databases <= e.filesFor || need <= limit {
		return
	}
	e.filesFor = databases
	e.log.Warn("the tasks here may need more files than the process may open: "+filelimit.Remedy+", or it ends where one can't be opened",
		"limit", limit, "need", need, "tasks_with_state", databases)
}
