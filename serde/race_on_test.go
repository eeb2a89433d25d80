//go:build race

package serde_test

// raceEnabled is set where the race detector makes sync.Pool lose things on purpose, so that allocations can't be counted.
const raceEnabled = true
