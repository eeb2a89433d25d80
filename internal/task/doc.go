// Package task runs one task: a sub-topology of a plan for one partition (in the harness' driver mode: all sub-topologies as one).
//
// A record's path: Add puts raw records into the input queue of their partition. Process deserializes the head of each queue,
// chooses the one with the lowest event time, moves stream time on, and calls the source node, which calls everything downstream
// before it returns. What nodes write goes to the state DB (buffered until the host commits) and to the Collector. Punctuations
// run between records. The host then asks for Positions and commits them together with the output and the state.
//
// A task is used by one goroutine at a time; counters may be read by any. It starts no goroutines, does no I/O of its own, knows no
// Kafka client and no wall clock but the one that it is given: the engine and the harness run the same code.
package task
