//go:build !race

package land

const raceEnabled = false
