// Package differential holds the engine against the harness: the same random topology is fed the same records in the harness, by an
// engine on the embedded broker, and by an engine on a real Kafka, and each key of each output topic must see the same records.
//
// The scenarios are those of package golden. One goes this way: [Load] gives its topics and its application names of their own, so that many
// can run on one cluster; [InHarness] and [OnCluster] run it; [Difference] compares. OnCluster lets each record go through the whole
// topology before it sends the next, as the harness does: what is compared is the engine, not the order in which it happens to read.
//
// The folder holds as well what compares the harness with the real Kafka Streams: see README.md. The package knows nothing of the engine's inside.
package differential
