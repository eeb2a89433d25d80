//go:build unix

package filelimit

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestLimit: a lowered limit is seen.
func TestLimit(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if before.Cur < 300 {
		t.Skip("the limit is too low to lower it: ", before.Cur)
	}
	lower := before
	lower.Cur = 300
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	if got := Limit(); got != 300 {
		t.Errorf("the limit is %d", got)
	}
}
