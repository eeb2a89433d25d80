// Package topologytest runs a topology in the test's own process: no broker, no goroutines, no real clock.
//
// A [Driver] holds simulated topics, a clock that only the test moves, and the very task code that the engine runs. It has two modes:
//
//   - The driver mode, which is the default, has one partition a topic and runs all sub-topologies as one task, with a commit after each
//     record, as the TopologyTestDriver of Kafka Streams does. What a record causes is all there when Pipe returns.
//   - The partitioned mode ([Partitions]) runs a task for each sub-topology and partition, as the engine does. Mistakes that need more
//     than one partition to be seen show here: topics that are joined with differing numbers of partitions, keys that changed without
//     a repartition, state that is expected to span keys.
//
// The way of a record: [Input] (or [Driver.Pipe]) appends it to a simulated topic, which hands it to the task that reads it. The task
// processes it; what it writes is held in an open transaction until the commit, which appends it to its topics, the changelogs
// among them, stores the offsets and lets the state stores apply their writes; the stores' part is done for several records together where
// nobody can tell (gathered.go). What lands in a topic that is read again is processed
// before Pipe returns. [Output] reads topics, [LakeRows] the tables that the topology ends in, and the stores can be looked into.
//
// [Driver.Restart], [Driver.Crash] and [Driver.FailNext] show what survives. Everything is deterministic: the same input gives the same output,
// always.
package topologytest
