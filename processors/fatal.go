package processors

import (
	"fmt"

	"github.com/tributary-io/tributary/serde"
)

// fatalError makes an error that isn't the fault of user code or of the record pass the processing-error handler untouched: a handler
// that skips failed records must not skip what a broken disk or broker refused.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }
func (e *fatalError) Fatal()        {}

func fatal(err error) error {
	if err == nil || IsFatal(err) {
		return err
	}
	return &fatalError{err}
}

func fatalf(format string, args ...any) error { return fatal(fmt.Errorf(format, args...)) }

// codecError wraps an error of a serde. It is the record's, and so goes to the handler, unless the same bytes may do later: then the
// task has to try again, and must not skip the record.
func codecError(err error, format string, args ...any) error {
	wrapped := fmt.Errorf(format+": %w", append(args, err)...)
	if serde.Retriable(err) {
		return fatal(wrapped)
	}
	return wrapped
}
