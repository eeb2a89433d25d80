//go:build !race

package serde_test

const raceEnabled = false
