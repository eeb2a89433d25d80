package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. Only a leak takes as long.
const patience = time.Minute

// Main runs a package's tests, looks for goroutines that are left if they passed, and ends the process. Call it from TestMain, as its last line.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if code == 0 {
		if err := Find(options...); err != nil {
			fmt.Fprintln(os.Stderr, "the tests passed, but leave goroutines:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Find is nil once there are no goroutines but the caller's, the runtime's, and those that options name. Its error tells of those that haven't ended
// within a minute.
func Find(options ...goleak.Option) error { return find(patience, options) }

func find(within time.Duration, options []goleak.Option) error {
	for end := time.Now().Add(within); ; {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
