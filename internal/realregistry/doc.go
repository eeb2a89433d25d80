// Package realregistry starts a real schema registry with Confluent's HTTP interface for integration tests: Apicurio Registry, from
// the distribution that Maven serves, on a free port of the loopback interface, without a container engine.
//
// Start gives a test a registry of its own. Where Java 21 or later, Maven, tar or the distribution can't be had, the test is
// skipped with a line that says why; with TRIBUTARY_REQUIRE_REGISTRY set it fails instead, so that a check can insist.
//
// The registry is a child process with its data in memory; it is stopped by the process id that was started here, and ends with
// the test binary however it ends (on Linux).
package realregistry
