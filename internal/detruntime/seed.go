//go:build detruntime

package detruntime

import _ "unsafe" // for go:linkname

//go:linkname seed runtime.detSeed
var seed func(uint64)

// Built reports whether this program has the runtime that Seed needs.
const Built = true

// Seed begins the choices of a seed. It is called outside bubbles, before one is entered.
func Seed(s uint64) { seed(s) }
