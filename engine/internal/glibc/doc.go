// Package glibc bounds what the C library's allocator keeps for itself. With cgo Pebble takes its cached blocks and memtables from it. By default
// glibc has up to eight arenas a core, and what one thread gave back another can't use: an instance whose stores read much from their databases
// held half as much again as it used (195 MB with one arena, 211 with two, 240 with the default, of which 162 were known).
package glibc
