// Package detruntime makes what Go's runtime chooses a matter of a seed, so that a simulation's seed replays exactly: the same goroutines run
// in the same order, each select takes the same case, each map is ranged over in the same order, and simulated time passes the same way.
//
// That needs a runtime that is built for it. The command in overlay writes copies of a few files of the toolchain's own runtime, with a dozen
// lines changed each, and a list that "go build -overlay" takes:
//
//	go run ./internal/detruntime/overlay -dir DIR
//	CGO_ENABLED=0 GOROOT=DIR/goroot GOTOOLCHAIN=local DIR/goroot/bin/go test -tags detruntime -overlay DIR/overlay.json ...
//
// Without the tag Seed does nothing and Built is false. With it a process behaves as ever until Seed is called; from then on goroutines inside
// synctest bubbles draw from the seed. What it takes of the process: GOMAXPROCS=1, no collector while a bubble runs
// (debug.SetGCPercent(-1) and collections in between), runtime.MemProfileRate = 0, and nothing in the bubble that waits for the world
// outside, since no thread is added for a goroutine that is in a system call. crypto/rand is testing/cryptotest's to make deterministic.
//
// Maps with more than eight keys that are pointers are still ranged over in the order of their addresses, but for the children of contexts.
//
// It is for tests, and knows nothing of the project.
package detruntime
