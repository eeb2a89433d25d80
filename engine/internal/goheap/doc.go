// Package goheap divides the Go runtime's memory limit, which a process has one of, between the instances that run in it: each claims a Share, and the limit
// is their sum. Where there is a limit the collector works when that is near, and not at twice what is live. When the last share is released, the runtime is as it
// was before the first.
//
// GOMEMLIMIT and GOGC of the environment go before all that, and so does a percentage that the program has set. What is to be claimed the engine knows
// (MemoryBudget).
package goheap
