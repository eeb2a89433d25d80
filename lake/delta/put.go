package delta

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

// outcome is how a put of a version ended.
type outcome struct {
	winner    []byte // what another writer put there; nil: ours landed
	recovered bool   // only reading back told
}

const (
	// settleGrace is how long an outcome in doubt is pursued after the context has ended: a caller that gives up between the
	// put and its reply would otherwise never learn what it did.
	settleGrace = 5 * time.Second
	maxBackOff  = time.Second
)

// put writes a version, and returns only when it is clear who did: this writer (recognized by txnID) or another. In doubt it
// reads back; where nothing is there, it puts the same bytes again. A *UndecidedError says that ctx, and the grace after it,
// ended before that.
func (t *Table) put(ctx context.Context, version int64, entry []byte, txnID string) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, t.wrap(err)
	}
	name := commitName(version)
	doubt := false
	for try := 1; ; try++ {
		err := t.store.PutIfAbsent(ctx, name, entry)
		switch {
		case err == nil:
			return outcome{recovered: doubt}, nil
		case errors.Is(err, object.ErrExists), errors.Is(err, object.ErrUnknown):
			// Even "exists" may be our own earlier request, whose reply got lost inside the client.
			doubt = true
		case !doubt:
			return outcome{}, t.wrap(fmt.Errorf("commit of version %d, nothing landed: %w", version, err))
		}
		out, clear, readErr := t.readBack(ctx, name, txnID)
		if clear {
			return out, readErr
		}
		if readErr != nil {
			err = readErr
		}
		t.opts.Logger.Warn("the outcome of a commit is in doubt; trying on", "table", t.store.String(), "version", version, "try", try, "error", err)
		if waitErr := t.backOff(ctx, try); waitErr != nil {
			if _, last := ctx.Value(settling{}).(bool); last {
				return outcome{}, &UndecidedError{t.store.String(), version, txnID, err}
			}
			grace, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), settling{}, true), settleGrace)
			defer cancel()
			ctx = grace
		}
	}
}

// settling marks the context of the grace time.
type settling struct{}

// readBack looks at who wrote a version. clear says that the question is answered.
func (t *Table) readBack(ctx context.Context, name, txnID string) (out outcome, clear bool, err error) {
	data, err := t.store.Get(ctx, name)
	if errors.Is(err, object.ErrNotFound) {
		return outcome{}, false, nil
	}
	if err != nil {
		return outcome{}, false, err
	}
	facts, err := readFacts(data, func(action) {})
	if err != nil {
		return outcome{}, true, t.wrap(fmt.Errorf("log entry %s of another writer is damaged: %w", name, err))
	}
	if facts.txnID() == txnID {
		return outcome{recovered: true}, true, nil
	}
	return outcome{winner: data}, true, nil
}

// readWinners brings the head to the newest version, from the entry that won against us. A winner that moved one of our
// application ids fences us, even where it only refreshed it.
func (a *attempt) readWinners(ctx context.Context, entry []byte) error {
	t := a.table
	for range refreshSteps {
		before := t.head
		facts, err := t.advance(entry)
		if err != nil {
			return err
		}
		for _, m := range a.commit.Moves {
			if _, moved := facts.txns[m.AppID]; moved {
				return &FencedError{t.head.table, m.AppID, t.head.Version, before.progress(m.AppID), t.head.progress(m.AppID)}
			}
		}
		entry, err = t.store.Get(ctx, commitName(t.head.Version+1))
		if errors.Is(err, object.ErrNotFound) {
			t.opts.Logger.Debug("lost a race", "table", t.store.String(), "newest", t.head.Version)
			return nil
		}
		if err != nil {
			return t.wrap(err)
		}
	}
	// So many winners that a listing is cheaper; the moves are compared with what it finds.
	_, err := t.reload(ctx)
	return err
}

// catchUp reads what others have committed during a wait: whoever waits and then tries at the version after the one that it knew would lose again
// and again to writers that don't.
func (a *attempt) catchUp(ctx context.Context) error {
	if a.lost <= 1 {
		return nil // there was no wait
	}
	t := a.table
	entry, err := t.store.Get(ctx, commitName(t.head.Version+1))
	if errors.Is(err, object.ErrNotFound) {
		return nil
	}
	if err != nil {
		return t.wrap(err)
	}
	return a.readWinners(ctx, entry)
}

// backOff waits before the next try: not at all after the first lost race, then a random time that grows.
func (t *Table) backOff(ctx context.Context, lost int) error {
	if lost <= 1 {
		return ctx.Err()
	}
	limit := min(time.Millisecond<<min(lost, 20), maxBackOff)
	return t.sleep(ctx, rand.N(limit))
}

// wait sleeps until the time is over or ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
