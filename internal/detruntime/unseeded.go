//go:build !detruntime

package detruntime

// Built reports whether this program has the runtime that Seed needs.
const Built = false

// Seed begins the choices of a seed. It is called outside bubbles, before one is entered.
func Seed(uint64) {}
