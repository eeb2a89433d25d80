// Package measure takes what a run costs: CPU and peak memory of the own process, the broker's CPU, what others used of the machine
// meanwhile, allocations and the collector's share. A run prints its figures as one line, "RESULT" and a JSON object, in the form
// that the peers' programs use, too. It knows neither Kafka nor the engine. Linux only: it reads /proc.
package measure
