// Package group is an instance's place in the consumer group: which member it is, in which generation, with which tasks.
//
// Classic speaks the classic rebalance protocol itself (JoinGroup, SyncGroup, Heartbeat, LeaveGroup), as a static member
// (KIP-345). It doesn't use kgo's group consumer: that one assigns partitions, decides by itself when to join, and neither says
// when a join begins (the engine must have no commit in flight then) nor lets a static member leave.
//
// What passes through: the Handler gives the member's metadata; when this member leads, the Handler assigns tasks to all; every
// member's assignment comes back to its Handler with the new generation. What is in the bytes is the Handler's business (package
// assign). They travel as user data inside the consumer protocol's own structures, with topics and partitions filled in, so
// that every tool that shows consumer groups shows members, partitions and lag.
//
// Streams speaks the brokers' streams protocol (KIP-1071), where the coordinator assigns the tasks itself. Its TaskHandler is told tasks, and
// tells which of them are held.
//
// Heartbeats go on by themselves, however long processing takes. A member that the coordinator has thrown out (a pause longer than
// the session timeout) loses everything, is told so, and joins again.
package group
