package filelimit

import (
	"errors"
	"fmt"
	"syscall"
)

// Remedy is how the process may open more.
const Remedy = "raise the limit (ulimit -n, LimitNOFILE= of a systemd unit, ulimits: nofile of a container)"

// Reached reports whether err comes from a file or connection that couldn't be opened since the process, or the machine, has too many.
func Reached(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// Explain adds to such an error what the limit is and how it is raised; any other, and one that was explained before, it returns as it is.
func Explain(err error) error {
	if !Reached(err) || errors.As(err, new(*Error)) {
		return err
	}
	return &Error{Err: err, Limit: Limit()}
}

// Error is an error of too many open files with what can be done.
type Error struct {
	Err   error
	Limit int // as of Limit
}

func (e *Error) Error() string { return e.Err.Error() + ": " + e.Advice() }
func (e *Error) Unwrap() error { return e.Err }

// Advice says what to do.
func (e *Error) Advice() string {
	if errors.Is(e.Err, syscall.ENFILE) {
		return "all processes of the machine together have as many files open as it allows: raise it (sysctl fs.file-max)"
	}
	return fmt.Sprintf("the process may have no more than %d files and connections open: %s", e.Limit, Remedy)
}
