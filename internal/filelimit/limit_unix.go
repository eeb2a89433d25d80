//go:build unix

package filelimit

import (
	"math"

	"golang.org/x/sys/unix"
)

// Limit is how many files and connections the process may have open at a time; 0 if that isn't known, or has no bound.
func Limit() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > math.MaxInt32 {
		return 0
	}
	return int(l.Cur)
}
