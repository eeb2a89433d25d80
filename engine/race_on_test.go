//go:build race

package engine

// raceEnabled is set where the race detector is on, which takes much memory of its own.
const raceEnabled = true
