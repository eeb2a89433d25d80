// Package logical holds the graph of operators that the DSL builds, before it becomes a plan.
//
// The DSL adds one [Node] per operator. An operator may become several nodes of the plan: a repartition becomes a filter, a sink
// and a source; a stream-stream join three processors. Between the last operator and the plan, [Graph.Write] rewrites the graph:
// sources of the same topic are merged, the optimizations that were asked for are applied, operators are told whether the tables
// above them are versioned. Then it writes the nodes into a plan.Builder.
//
// Names, the order in which they are numbered, the order of writing and the rewriting are those of Kafka Streams 4.3
// (InternalStreamsBuilder and its graph nodes), so that names of stores and topics are equal to those of the same application
// there: an application can be moved with its state.
//
// The package knows no Go types of keys and values: nodes carry suppliers, and closures that make them.
package logical
