//go:build race

package land

// raceEnabled is set where the race detector is on, which takes much memory of its own.
const raceEnabled = true
