// Movetask measures how long a task with much state takes to come to another instance: by a checkpoint, by its changelog, and by a standby that
// is there already, each beside the time of copying the same files.
//
// It starts a real Kafka broker, fills one task with rows, and then
//
//   - copies the task's files one after the other, synced, as an operator would who wants the copy to survive, and unsynced, as cp does; before and
//     after the next step;
//   - starts a second instance with a standby and checkpoints: the time from the first request to the standby following;
//   - closes the first instance, and measures how long no results come (probes are sent all the time): the move to the standby;
//   - closes the second, starts a third one without any state, and measures the same: the move by the changelog. Starting an instance takes some
//     tenths of a second of that.
//
// All of it runs -rounds times; the report has each round and the ratios.
package main
