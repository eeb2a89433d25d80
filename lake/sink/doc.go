// Package sink is the contract between a topology and a table format of the lake.
//
// A topology's ToLake holds a Sink. At Build the sink is bound to the Go types of the stream; at run time each instance opens
// one Writer per sink, asks it how far the table has come (Progress), reads its input from there, appends rows to a Batch, and
// commits the batch together with the offsets that it covers. The table, not Kafka, is the authority on progress.
//
// The package knows neither Kafka clients nor table formats: it is imported by topology, by the engine and the harness on one
// side and by lake and its formats on the other.
package sink
