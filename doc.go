// Package tributary is the root of a stream-processing library and engine: topologies of Kafka topics, state and windows in typed Go,
// tested in-process, run as scaled instances with exactly-once processing, landed in Delta tables that carry their own offsets.
//
// There is no code here. Begin with package topology to declare a topology, package topology/topologytest to test it, package
// engine to run it, and package lake to end its streams in tables.
package tributary
