package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

const (
	// settleGrace is how long an outcome in doubt is pursued after the context has ended: a caller that gives up between the
	// put and its reply would otherwise never learn what it did.
	settleGrace = 5 * time.Second
	maxBackOff  = time.Second
)

// errLost says that another manifest has the name.
var errLost = errors.New("another manifest is there")

// put puts a manifest, and returns only when it is clear whose has the name: ours (nil) or another (errLost). In doubt it reads back; where
// nothing is there, it puts the same bytes again. tries counts the puts.
func (w *writer) put(ctx context.Context, r round, m *pending) (tries int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("landing %s: %w", w.landing.place, err)
	}
	name := r.manifest(m.manifest.Start)
	doubt, grace := false, false
	for tries = 1; ; tries++ {
		err := w.store.PutIfAbsent(ctx, name, m.text)
		switch {
		case err == nil:
			return tries, nil
		case errors.Is(err, object.ErrExists), errors.Is(err, object.ErrUnknown):
			// Even "exists" may be our own earlier request, whose reply got lost inside the client.
			doubt = true
		case !doubt:
			return tries, fmt.Errorf("landing %s: manifest %s, nothing landed: %w", w.landing.place, name, err)
		}
		there, readErr := w.store.Get(ctx, name)
		switch {
		case readErr == nil && bytes.Equal(there, m.text):
			return tries, nil
		case readErr == nil:
			return tries, errLost
		case !errors.Is(readErr, object.ErrNotFound):
			err = readErr
		}
		w.log.Warn("the outcome of a commit is in doubt; trying on", "manifest", name, "try", tries, "error", err)
		if backOff(ctx, tries) == nil {
			continue
		}
		if grace {
			return tries, fmt.Errorf("landing %s: whether manifest %s landed is not known; the next start finds out: %w", w.landing.place, name, err)
		}
		grace = true
		settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleGrace)
		defer cancel()
		ctx = settling
	}
}

// backOff waits a random time that grows with the tries, or until ctx ends.
func backOff(ctx context.Context, tries int) error {
	timer := time.NewTimer(rand.N(min(time.Millisecond<<min(tries, 20), maxBackOff)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
