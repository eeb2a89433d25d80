// Package bench only holds this text: the programs are below it, and README.md says what they measured.
//
// `go run ./bench/cmd/bench` starts a real Kafka broker, writes the input once (bench/internal/input), and runs each workload
// (bench/internal/workload) in turn with the raw client's loop and, where they are given, the peers' programs: A B B A, each run in
// a process of its own, so that CPU and memory (bench/internal/measure) are that run's alone. It prints the ratios with their
// spread, and writes a report in Markdown and JSON.
package bench
