// Package land is the ready-made sink: it points at topics and lands each in a Delta table of its own, as its records are. It is what
// `tributary land` runs, for programs that want the same inside themselves:
//
//	streams, err := land.LoadFolder("streams") // <topic>.yaml and <topic>.avsc, as package schemas describes them
//	cfg := land.Config{Brokers: brokers, Registry: url, Lake: "/data/lake", Streams: streams}
//	err = cfg.Environment(os.Getenv)           // what is unset, and the defaults
//	sink, err := land.Open(ctx, cfg)           // makes or checks topics and subjects
//	defer sink.Close()
//	err = sink.Run(ctx)                        // lands until ctx ends
//
// A stream is declared (see Stream), its topic and its subject in the schema registry are made or checked, and then an ordinary
// topology of the library runs in an ordinary engine: for each stream a source of bytes that ends in a Delta table. Such a
// sub-topology keeps no state, so its rows carry the topic's own offsets, and the table itself says how far it has come, in the form of
// the platform (lake.PlatformProgress). A record's bytes become columns without a Go value in between; a record that doesn't fit goes
// to the stream's dead letters with the reason, and the partition goes on.
//
// What is wrong with one stream concerns no other: topic, subject and table of each are made ready when its table is opened (prepare.go), and the
// engine parks the stream while that, or landing, fails; faults.go tells who looks.
//
// Beside it an Observer looks at topics, tables and registry now and then and tells how far each stream has come, and Prove sends
// generated rows through everything and compares what comes back.
//
// Topology gives the same application to the harness. The package knows nothing of transactions, groups and commits: those are the engine's and the table's.
package land
