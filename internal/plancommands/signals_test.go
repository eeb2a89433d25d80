package plancommands

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// A request to close that comes twice, as timeout(1) sends it, is one request. Where it isn't, the second signal ends the test's process.
func TestSignalTwiceAtOnceClosesInGoodOrder(t *testing.T) {
	ctx, stop := untilInterrupted(time.Hour)
	defer stop()
	for range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("the signal didn't end the context")
		}
		time.Sleep(50 * time.Millisecond) // time for the signals to be given back, where that is done too early
	}
}
