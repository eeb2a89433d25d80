// Package lander collects rows for one table of the lake and commits them, batch by batch, each with the progress of the input
// partitions that it covers.
//
// Tasks append rows while they process; rows that the table has already (it may have come further than another table that the same task
// feeds) are left out. Between two records of all tasks the engine cuts the batch: its rows and the positions of the tasks belong
// together from then on, and are committed by a goroutine of the lander, while rows go into the next batch. There is one commit at a time.
//
// The table decides. A commit that starts from other progress than the table's is refused (fenced): the lander then has nothing that
// could be landed, and waits for the engine to read the table's progress and to feed it from there. A failure that left nothing
// landed is tried again, as long as it takes.
//
// The package knows neither Kafka nor tasks.
package lander
