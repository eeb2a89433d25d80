// Command lake measures the Delta sink beside delta-rs (the Python package deltalake), which is what people who write Delta tables
// without Spark use: see "The lake" in bench/README.md.
//
// main.go reads the flags and takes both sides in turn, each run in a process of its own (child.go is one run of ours, peer.py one of
// delta-rs, which peer.go starts). events.go makes the input, the same bytes for both: order events in Avro. land.go lands them,
// longlog.go builds and opens a table with a long log, compact.go compacts one of small files, report.go prints the ratios. No broker is involved: rows come from memory.
package main
