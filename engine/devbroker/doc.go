// Package devbroker starts a Kafka broker inside the process, so that a program can be tried, shown and tested on a machine where nothing is
// installed: the program that is given brokers uses them, and starts one of its own otherwise.
//
//	broker, err := devbroker.Start(devbroker.Config{Dir: "data/broker"})
//	...
//	defer broker.Close()
//	e, err := engine.New(plan, engine.Brokers(broker.Addrs()...))
//
// StartRegistry does the same for programs that need a schema registry. The broker speaks Kafka's protocol over TCP, with transactions, groups, compaction and retention; other programs can connect to it, too. It is one
// process, without replication and without security: no place for data that matters.
//
// The package knows nothing of topologies and engines.
package devbroker
