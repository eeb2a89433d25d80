// Package holders knows which member of the application's group has which task, and which keep a copy of it, as the group's coordinator told it last: the
// coordinator knows it, since members tell it their addresses when they join, and the leader their assignments.
//
// A Picture is what was told at a moment. The Book keeps the last one and has the coordinator asked anew when that is too old, by one goroutine for all that
// wait; during a rebalance the coordinator says nothing, and the last picture stays.
//
// The package reads what members and leaders have said (package assign); it makes no requests of its own, and doesn't know which member this instance is.
package holders
