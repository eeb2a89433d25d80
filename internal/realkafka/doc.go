// Package realkafka starts real Apache Kafka clusters for integration tests: KRaft brokers from the jars that Maven serves, on
// free ports of the loopback interface, without a container engine.
//
// A package with such tests hands its TestMain to Main and asks for a cluster with Shared (one for the whole test binary, which
// saves seconds for each test) or Start (one of its own, to kill and restart brokers of). Where java or Maven or the jars
// can't be had, the test is skipped with a line that says why; with TRIBUTARY_REQUIRE_KAFKA set it fails instead, so that a
// check can insist.
//
// TRIBUTARY_KAFKA_VERSION names another release than the usual one.
//
// The brokers are child processes; they are stopped by the process ids that were started here, and end with the test binary
// however it ends (on Linux).
package realkafka
