package gokacompat

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// deferrals counts the functions of DeferCommit that are yet to be called. A commit waits for them: the offset of their record, and all that
// its callback has sent, is part of it.
type deferrals struct {
	limit time.Duration

	mu      sync.Mutex
	pending int
	err     error
	called  chan struct{} // closed when nothing is pending any more; nil unless a commit waits
}

// begin returns the function that ends a deferral.
func (d *deferrals) begin() func(error) {
	d.mu.Lock()
	d.pending++
	d.mu.Unlock()
	var once sync.Once
	return func(err error) { once.Do(func() { d.end(err) }) }
}

func (d *deferrals) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending--
	if d.err == nil {
		d.err = err
	}
	if d.pending == 0 && d.called != nil {
		close(d.called)
		d.called = nil
	}
}

// wait waits until nothing is pending. It returns the first error that a deferral ended with.
func (d *deferrals) wait(ctx context.Context) error {
	d.mu.Lock()
	called, n := d.called, d.pending
	if n > 0 && called == nil {
		called = make(chan struct{})
		d.called = called
	}
	err := d.err
	d.mu.Unlock()
	if n > 0 {
		timeout := time.NewTimer(d.limit)
		defer timeout.Stop()
		select {
		case <-called:
		case <-ctx.Done():
			return fmt.Errorf("a commit waits for functions of DeferCommit: %w", context.Cause(ctx))
		case <-timeout.C:
			return fmt.Errorf("a commit has waited %v for %d functions that DeferCommit returned: call each, or raise DeferLimit", d.limit, n)
		}
		d.mu.Lock()
		err = d.err
		d.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("a deferred commit failed: %w", err)
	}
	return nil
}
