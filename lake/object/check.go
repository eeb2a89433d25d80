package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/google/uuid"
)

// ErrNotConditional says that a store ignores the condition of put-if-absent, so that writers would overwrite one another.
var ErrNotConditional = errors.New("the store overwrites where it was told to put only if absent, so concurrent writers would lose data; " +
	"use a store with conditional writes (S3 since 2024, Google Cloud Storage, Azure, versitygw, MinIO, local disk)")

// checkRacers is how many writers race for one object in the self-test: a store that only looks before it writes gives several
// winners.
const checkRacers = 4

// CheckPutIfAbsent tries the store's put-if-absent under a fresh hidden name in folder ("_delta_log", or "" for the root) and
// removes what it wrote. It returns an error that wraps ErrNotConditional if a second put succeeds, replaces the first or, in a race, wins
// beside another. It costs a few requests: run it once at start.
func CheckPutIfAbsent(ctx context.Context, s Store, folder string) error {
	name := path.Join(folder, ".check-"+uuid.NewString())
	defer func() { _ = s.Delete(context.WithoutCancel(ctx), name) }() // a left-over of the check harms nobody
	errs := make([]error, checkRacers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = s.PutIfAbsent(ctx, name, fmt.Appendf(nil, "writer %d", i)) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			return fmt.Errorf("check of %s: two of %d racing writers were told that they won: %w", s, checkRacers, ErrNotConditional)
		case err == nil:
			winner = i
		case errors.Is(err, ErrExists), errors.Is(err, ErrUnknown):
		default:
			return fmt.Errorf("check of %s: %w", s, err)
		}
	}
	before, err := s.Get(ctx, name)
	if err != nil {
		return fmt.Errorf("check of %s: %w", s, err)
	}
	if winner >= 0 && !bytes.Equal(before, fmt.Appendf(nil, "writer %d", winner)) {
		return fmt.Errorf("check of %s: the winner of a race was overwritten: %w", s, ErrNotConditional)
	}
	if err := s.PutIfAbsent(ctx, name, []byte("late")); err == nil {
		return fmt.Errorf("check of %s: %w", s, ErrNotConditional)
	} else if !errors.Is(err, ErrExists) && !errors.Is(err, ErrUnknown) {
		return fmt.Errorf("check of %s: %w", s, err)
	}
	after, err := s.Get(ctx, name)
	if err != nil {
		return fmt.Errorf("check of %s: %w", s, err)
	}
	if !bytes.Equal(before, after) {
		return fmt.Errorf("check of %s: %w", s, ErrNotConditional)
	}
	return nil
}
