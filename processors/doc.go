// Package processors holds the operators of a topology: sources and sinks, stateless functions, tables, aggregations, windows, joins,
// suppression, deduplication, and the Processor API for operators that users write.
//
// # What is here
//
// Each operator is a [Supplier] (a source a [SourceSupplier]): a description that a topology builds once and that any number of tasks turn
// into nodes. Operators that make tables are [Table]s: the topology asks them, while it is built, whether they must send old values and how
// their rows are read. In order of what they do, by file:
//
//	source, extract, sink, partition, lake, coordinates       the edges: topics and lake sinks
//	stateless, flatmap, branch, passthrough, dedup            one record at a time
//	processorapi, processorcontext                            users' own operators
//	table*, rows, coder                                       tables, their stores and views
//	aggregat*, windows*, session*, rounds                     aggregations, plain and in windows
//	changeserde, windowedserde, foreignserde, murmur3         wire formats, byte for byte those of Kafka Streams
//	join*, foreign*                                           joins
//	suppress, buffers, rawrecords                             results that wait
//
// The files record, runtime, forward, errors and handlers are the contract with the task that runs the nodes.
//
// # How a record passes through
//
// A task decodes a record into a [Record] (see [Head]) and calls the source's [Next]. A node is a function that takes a pointer to a record
// that its sender owns, and calls its children, in order, before it returns: depth first, without queues. Types are known when a node is
// wired, so nothing is boxed, and the stateless path allocates nothing: four stages take about 40 ns.
//
// Null is a bit beside the value, for the Go types that can't hold it. A null is never given to a function that can't take it (see the
// operators for what they do instead).
//
// Every node that runs user code runs under [Guard]: an error or panic is handed to the processing-error handler, which may leave the record
// out at that node; its siblings go on. Errors of stores and brokers are [Fatal] and no handler sees them.
//
// # Semantics
//
// They are those of Apache Kafka Streams 4.3 unless the operator's comment says otherwise: what happens to nulls, the times and headers of
// results, grace to the millisecond, out-of-order input. docs/semantics has a page for each family, with the differences.
//
// # What this package must not know
//
// No Kafka client, no topology, no names of nodes but those in Runtime, no files and no real time: the clock is the Runtime's. It knows of
// stores what package state shows, and of the lake its sink interface.
package processors
