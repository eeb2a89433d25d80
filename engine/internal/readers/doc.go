// Package readers lets any goroutine read the committed state of the tasks that run here, while tasks open and close.
//
// A task's database is Opened here when the task runs, and Closed before the task gives it up. In between, readers take a Lease, look at
// the View, and release it: within the call that they serve, never while code of the user runs, since closing waits for leases and a
// rebalance waits for closing. A lease can be taken while others are held and while a task is closing elsewhere; one of a task that is
// closing can't be had any more. (A state.View for each read would do without this package, but a second one of the same goroutine would
// wait for ever behind a Close that waits for the first.)
//
// The package knows nothing of stores, of keys, or of who may run what.
package readers
