//go:build !unix

package state

// rowsOutside says that rows and filters are kept outside of the Go heap.
const rowsOutside = false

// takeMemory gives n zeroed bytes.
func takeMemory(n int) []byte { return make([]byte, n) }

// giveMemory gives back what takeMemory gave.
func giveMemory([]byte) {}
