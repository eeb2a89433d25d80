//go:build unix

package state

import "syscall"

// rowsOutside says that rows and filters are kept outside of the Go heap.
const rowsOutside = true

// takeMemory gives n zeroed bytes outside the Go heap, so that the collector doesn't keep as much again in reserve for them. The caller
// gives them back by giveMemory.
func takeMemory(n int) []byte {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]byte, n)
	}
	return b
}

// giveMemory gives back what takeMemory gave. Nothing may use it any more.
func giveMemory(b []byte) {
	_ = syscall.Munmap(b) // it refuses what it doesn't know, which is the collector's then
}
