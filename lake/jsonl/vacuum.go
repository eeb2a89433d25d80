package jsonl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

var discard = slog.New(slog.DiscardHandler)

// Vacuum removes the files that no manifest names and that were last written before a time: those of batches that did not land, and of a landing before
// it was emptied. The time
// must lie further back than any commit can take, since the files of one that is under way are not named yet. dryRun only lists them. It
// is safe beside writers, and after a crash of its own.
func Vacuum(ctx context.Context, place string, before time.Time, dryRun bool) (removed []string, err error) {
	l, err := Open(ctx, place)
	if err != nil {
		return nil, err
	}
	return l.vacuum(ctx, before, dryRun)
}

// vacuum lists first and asks what is named afterwards: what lands in between is then known to be named.
func (l *Landing) vacuum(ctx context.Context, before time.Time, dryRun bool) (removed []string, err error) {
	old := map[string]bool{}
	folders := map[string]bool{}
	for info, err := range l.store.List(ctx, dateFolder, "") {
		if err != nil {
			return nil, fmt.Errorf("landing %s: %w", l.place, err)
		}
		folders[path.Dir(info.Name)] = true
		if info.Modified.Before(before) {
			old[info.Name] = true
		}
	}
	for f, err := range l.Files(ctx, Select{}) {
		if err != nil {
			return nil, err
		}
		delete(old, f.Name)
	}
	for name := range old {
		if !dryRun {
			if err := l.store.Delete(ctx, name); err != nil {
				return removed, fmt.Errorf("landing %s: %w", l.place, err)
			}
		}
		removed = append(removed, name)
	}
	if local, ok := l.store.(*object.Local); ok && !dryRun {
		err = sweep(local, folders, before)
	}
	return removed, err
}

// sweep removes what crashes left half written in folders.
func sweep(local *object.Local, folders map[string]bool, before time.Time) error {
	var errs []error
	for f := range folders {
		_, err := local.SweepTemp(f, before)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
