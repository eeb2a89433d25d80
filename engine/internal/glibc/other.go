//go:build !cgo || !linux

package glibc

// OneArena does nothing: there is no glibc.
func OneArena() {}

func arenas() int { return -1 }

func take(int) (give func()) { return func() {} }
