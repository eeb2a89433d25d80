// Package input makes the benchmarks' input: order events as JSON of about 127 bytes, the same bytes for the same seed, one in ten
// a repeat of a recent one. The generator gives, record for record, what the generator of the peers' programs gives, so that
// everybody reads the same topics. It knows Kafka's client for writing them, and nothing of the engine.
package input
