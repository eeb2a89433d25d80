// Package chaos runs an application in bad weather and closes its books afterwards.
//
// A run (Run) starts a Kafka cluster of three brokers and three instances of an application as child processes, and feeds them for a while.
// The application (topology.go) has what can go wrong: deduplication, a join with a table, a join of two streams, windows that are emitted
// once, a table of totals, repartitioning in between, and two lake tables. Meanwhile the weather (weather.go) kills instances and brokers,
// stops them for longer than their sessions and lets them go on, restarts them, and adds and removes instances, all chosen by a seed.
//
// Then it calms down, what was read from the input topics goes through a single-threaded model (model.go), and what the application says
// must equal it (books.go): output topics read_committed, changelogs, stores asked over HTTP, and lake tables. The application's results
// are the same for every order in which partitions may be read: its windows wait longer for late records than a run lasts.
//
// The instances are this program once more (package child), so its main or TestMain must offer them the role Instance.
package chaos
