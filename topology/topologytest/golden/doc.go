// Package golden runs scenarios whose expected results were produced by the real Kafka Streams TopologyTestDriver, and compares.
//
// A scenario is one JSON file: a topology in a small vocabulary of operators and named functions, steps (pipe a record, advance the
// clock, query a store), and what Kafka Streams did. The way of a scenario:
//
//   - [Load] reads the file, strictly: a word that the package doesn't know makes the scenario unsupported, never passed.
//   - [Run] builds the topology through the public DSL of package topology, drives it through the public harness of package
//     topologytest, one step at a time, and collects what came out in the form of the scenario's expect part.
//   - [Compare] holds each section of the result against the expectation and names the first difference.
//   - [Report] counts, prints and writes JSON.
//
// The package uses nothing of the library but its public API: what it can't build, a user can't build either.
package golden
