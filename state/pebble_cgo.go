//go:build cgo

package state

// pebbleOutside says that Pebble keeps its blocks and memtables outside of the Go heap.
const pebbleOutside = true
