// Package plan holds a topology that is ready to be run, and the builder that makes one.
//
// A [Builder] takes nodes, stores and internal topics in the order in which they are declared, and collects everything that is
// wrong with them. [Builder.Build] splits the nodes into sub-topologies, gives stores their changelog topics, decides where a
// lake sink may read its source's own offsets, and returns an immutable [Plan], or a [*BuildError] with all problems at once.
//
// The rules are those of Kafka Streams 4.3 (InternalTopologyBuilder): nodes that are connected, directly or through a store that
// they share, form one sub-topology; sub-topologies, global ones included, are numbered by their first node; internal topics carry
// the application id. [Plan.Describe] writes the text of its TopologyDescription.
//
// The package does no I/O, never calls a supplier, and knows neither Kafka clients nor the DSL's types.
package plan
