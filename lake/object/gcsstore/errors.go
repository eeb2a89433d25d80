package gcsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/googleapi"

	"github.com/tributary-io/tributary/lake/object"
)

const (
	// repeats is how often a request that may be repeated is, after an error that passes.
	repeats = 4
	// uploadRepeats is the same for all parts of one upload together.
	uploadRepeats = 12
	firstPause    = 200 * time.Millisecond
	longestPause  = 10 * time.Second
)

// status is the HTTP status of an answer; 0 if there was none.
func status(err error) int {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

// passes tells whether an error may be gone soon: no answer, an overloaded service, a broken one. See
// https://cloud.google.com/storage/docs/retry-strategy.
func passes(err error) bool {
	switch code := status(err); code {
	case 0:
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return code >= 500
	}
}

// again does what may be repeated, until it succeeds or fails for good.
func (s *Store) again(ctx context.Context, do func() error) error {
	pause := gax.Backoff{Initial: s.pause, Max: longestPause, Multiplier: 2}
	for n := 0; ; n++ {
		err := do()
		if err == nil || n == repeats || ctx.Err() != nil || !passes(err) {
			return err
		}
		if gax.Sleep(ctx, pause.Pause()) != nil {
			return err
		}
	}
}

// limited is what passes, up to a number of times.
func limited(n int) func(error) bool {
	return func(err error) bool {
		n--
		return n >= 0 && err != nil && passes(err)
	}
}

// putError sorts the errors of a conditional put. Only an answer that refuses it makes clear that nothing was stored.
func putError(err error) error {
	switch code := status(err); {
	case code == http.StatusPreconditionFailed:
		return object.ErrExists
	case code >= 400 && code < 500 && code != http.StatusRequestTimeout:
		return err
	}
	return fmt.Errorf("%w: %w", object.ErrUnknown, err)
}

// bucketMissing tells whether it is the bucket that wasn't found.
func bucketMissing(err error) bool {
	var answer *googleapi.Error
	return errors.As(err, &answer) && strings.Contains(answer.Message, "bucket does not exist")
}

// fail wraps err with what was tried, and with the error that callers test for. A nil err stays nil.
func (s *Store) fail(op, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case status(err) == http.StatusNotFound && !bucketMissing(err) && op != "list":
		err = object.ErrNotFound
	case status(err) == http.StatusForbidden:
		err = fmt.Errorf("%w: %w", fs.ErrPermission, err)
	}
	return &object.Error{Op: op, Store: s.place, Name: name, Err: err}
}
