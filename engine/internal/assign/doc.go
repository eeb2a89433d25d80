// Package assign decides which instance runs which task.
//
// Assign is a pure function: the same tasks and members give the same answer on every machine. It aims, in this order, at
//
//   - correctness: a task goes to one member that knows its sub-topology;
//   - balance: the tasks of each sub-topology, which cost about the same, are spread evenly, and so is the total;
//   - stickiness: a task stays with its owner; a task that has to move goes where its state is most caught up.
//
// Assign says where tasks should be. What members are given now is HandOver of it: a task moves only after its owner gave it up,
// so tasks that aren't affected by a rebalance go on (the incremental cooperative protocol, KIP-429, for tasks instead of
// partitions).
//
// The formats that members and the leader exchange are in codec.go and docs/format/assignment.md.
//
// The package does no I/O and knows no Kafka client.
package assign
