// Command bench runs the benchmarks side by side: see the README in bench/.
//
// main.go reads the flags; session.go starts the broker and writes the input; contestant.go, own.go and peers.go are the programs
// that are compared, each run in a process of its own; series.go takes them in turn; report.go prints the ratios. A process that is
// started as "bench child …" is one run (child.go).
package main
