//go:build !unix

package filelimit

// Limit is how many files and connections the process may have open at a time; 0 if that isn't known, or has no bound.
func Limit() int { return 0 }
