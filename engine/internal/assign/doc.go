// Package assign decides which instance runs which task, and which keep copies of its state.
//
// Assign is a pure function: the same tasks and members give the same answer on every machine. It aims, in this order, at
//
//   - correctness: a task goes to one member that knows its sub-topology;
//   - warmth: a task goes to a member that can go on with it at once, as long as there is one (KIP-441). Where balance wants it elsewhere,
//     that member gets a warm-up, a copy to catch up with, and says so when it has;
//   - balance: the tasks of each sub-topology, which cost about the same, are spread evenly, and so is the total; the standby copies of each
//     sub-topology, too;
//   - stickiness: a task stays with its owner, a copy where it is; a task that has to move goes where its state is most caught up.
//
// Standby copies are never where the task runs, and differ from it and from one another in the tags that are asked for (KIP-708).
//
// What is where: assign.go places tasks by balance, warm.go leaves them where it is warm, standbys.go places copies. Assign says where tasks
// should be. What members are given now is HandOver of it: a task moves only after its owner gave it up, so tasks that aren't affected by a
// rebalance go on (the incremental cooperative protocol, KIP-429, for tasks instead of partitions).
//
// The formats that members and the leader exchange are in codec.go and docs/format/assignment.md.
//
// The package does no I/O and knows no Kafka client.
package assign
