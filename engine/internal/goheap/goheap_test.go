package goheap

import (
	"os"
	"runtime/debug"
	"testing"
)

func percentNow() int {
	now := debug.SetGCPercent(-1)
	debug.SetGCPercent(now)
	return now
}

// The runtime's limit is that of all instances of the process, and what it was before when they are gone; so is the percentage.
func TestGoLimitsAddUp(t *testing.T) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		t.Skip("SKIPPED: GOMEMLIMIT and GOGC go before the budget")
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetGCPercent(percentNow())
	for _, was := range []int{100, 50} { // 50: the program has set it
		debug.SetGCPercent(was)
		var first, second Share
		first.Claim(300 << 20)
		second.Claim(400 << 20)
		first.Claim(100 << 20)
		if got := debug.SetMemoryLimit(-1); got != 500<<20 {
			t.Errorf("limit %d with two instances, want %d", got, 500<<20)
		}
		if got := percentNow(); got != percent && was == 100 || got != 50 && was == 50 {
			t.Errorf("percentage %d, it was %d", got, was)
		}
		first.Release()
		first.Release()
		if got := debug.SetMemoryLimit(-1); got != 400<<20 {
			t.Errorf("limit %d with the second instance, want %d", got, 400<<20)
		}
		second.Release()
		if got := debug.SetMemoryLimit(-1); got != before {
			t.Errorf("limit %d afterwards, it was %d", got, before)
		}
		if got := percentNow(); got != was {
			t.Errorf("percentage %d afterwards, it was %d", got, was)
		}
	}
}

// The environment goes before the budget.
func TestEnvironmentGoesBeforeTheBudget(t *testing.T) {
	t.Setenv("GOGC", "100")
	t.Setenv("GOMEMLIMIT", "1GiB")
	limit, was := debug.SetMemoryLimit(-1), percentNow()
	var s Share
	s.Claim(300 << 20)
	defer s.Release()
	if debug.SetMemoryLimit(-1) != limit || percentNow() != was {
		t.Errorf("limit %d and percentage %d, they were %d and %d", debug.SetMemoryLimit(-1), percentNow(), limit, was)
	}
}
