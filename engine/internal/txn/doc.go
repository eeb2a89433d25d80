// Package txn is the instance's transactional producer: one producer without a consumer group, whose transactions carry output
// records, changelog records and the offsets of what was processed.
//
// A transaction begins with its first record. Commit flushes, sends the offsets with the member's generation, member id and
// instance id (so that a member that lost its tasks can't commit), and ends the transaction. It answers with one of three outcomes:
//
//   - Committed: all of it is durable.
//   - Aborted: nothing of it will ever be seen. Decided by a refusal before the end was asked for.
//   - Unknown: the end was asked for and no clear answer came. Even a clear refusal counts as unknown then, since the client may
//     have repeated a request whose first copy did the work.
//
// After anything but Committed the caller calls Reset, which starts the producer anew: the coordinator first ends what was open,
// so that committed offsets read afterwards tell the outcome.
//
// kgo's own producer does the records. The offsets are sent by raw requests, since kgo commits only what its own group consumer has
// polled. A transaction of offsets alone can't be ended through kgo (it ends nothing where nothing was produced): where no record
// was produced, the offsets go by a plain commit, package offsets.
package txn
