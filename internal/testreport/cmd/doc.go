// Command cmd reads `go test -json` from its standard input and reports what came of it; see package testreport. It exits with
// status 1 if anything failed or nothing ran.
package main
