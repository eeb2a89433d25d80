// Package workload holds what the benchmarks run, each run in a process of its own: Tributary's topologies a, b, c, d and h on the
// engine and in the test harness, and the loop of the raw client. A record's way is the library's; this package only declares the
// topologies as a user would, waits until the application's offsets are committed at the end of the input, and reports.
package workload
