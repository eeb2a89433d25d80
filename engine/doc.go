// Package engine runs a topology as one instance of a scaled application: it joins the application's group, runs the tasks it is
// given, keeps their state, and commits what they did exactly once.
//
//	plan, err := builder.Build()
//	...
//	e, err := engine.New(plan, engine.Brokers("localhost:9092"), engine.StateDir("/var/lib/orders"))
//	...
//	err = e.Run(ctx) // until ctx ends: drains, commits and leaves
//
// # A record's path
//
// fetch.Inputs reads the partitions of all tasks through one client and puts records into the inbox of their runner. A worker takes the
// runner, moves the inbox into its task, and processes records until a commit is due or nothing is left. What the task sends goes into the
// instance's transaction (package txn); what it writes to stores stays in the write buffer of its state.DB; rows for the lake go to the
// sink's lander. A commit stops the workers between two records, closes the buffers, adds their changelog records and the offsets of what was
// processed to the transaction, ends it, and only then lets the buffers into the databases.
//
// # Who does what
//
//   - The conductor (conductor.go) is one goroutine that owns the tasks: it takes assignments, opens and closes runners, commits, and
//     recovers. Nothing else changes what runs.
//   - Members with other versions of the topology share what both declare equally (package versions), by the classic protocol.
//   - Workers (workers.go) run runners, each by one worker at a time, between commits.
//   - The membership (package group) joins, sends heartbeats, and tells the conductor what it was given or that it lost everything.
//   - Openers (open.go) bring state up to date in the background, so that other tasks go on meanwhile.
//   - Standbys (standby.go) are copies of tasks that run elsewhere: each has a goroutine that opens and restores it, then the follower
//     (follower.go) reads all their changelogs on. The conductor turns a standby into a runner, and back, by handing the database over.
//   - Checkpoints of state go from instance to instance as files (shipping.go).
//   - What can be seen of it from outside is Stats, Members and StoreSizes: metrics.go shows it to Prometheus, package console to people.
//   - Those who ask for state (query.go, and over HTTP package storehttp) read what is committed, from their own goroutines, as long as the task's database is
//     in the set of what can be read (package readers), which closing waits for.
//
// A View (view.go) is apart from all that: a copy of a topic (package topiccopy), without a group and tasks.
//
// # What holds
//
//   - Tasks that a rebalance doesn't touch go on. A task moves only after its owner has committed and closed it.
//   - No commit is in flight while the instance joins (by the classic protocol; by the streams protocol such a commit is refused). After a loss of membership nothing of before is committed.
//   - Whatever is not clearly committed is dropped, and the tasks concerned begin again from the committed offsets with their stores
//     brought to the end of their changelogs (recover.go). The process goes on.
//   - The lake's tables are the authority on how far their input has come; their tasks stand outside the transaction (lake.go), so that one of
//     them, or all that feed a table, can be parked by a fault while the others go on (parking.go).
//
// The package knows topologies only as plans, and no table formats.
package engine
