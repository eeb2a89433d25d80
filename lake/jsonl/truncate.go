package jsonl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// maxTruncations bounds the tries of an emptying. Each is lost to a writer's commit, and nobody should land now.
const maxTruncations = 20

// Truncate implements sink.Truncater. It puts a manifest at the end of each partition's chain that says that the landing was emptied: it takes the name that a writer's
// next commit wants, so that one that still goes on is fenced, and those that look find that nothing has landed. Partitions are emptied one by one: after an
// error some may be, and those are as they should be.
func (l *landing) Truncate(ctx context.Context, env sink.Env, inputs []string, execute bool) (out sink.Truncation, err error) {
	store, err := l.storeToTruncate(ctx)
	if err != nil || store == nil {
		return sink.Truncation{Version: -1}, err
	}
	w := &writer{landing: l, env: env, log: env.Logger, store: store}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if w.env.Now == nil {
		w.env.Now = time.Now
	}
	all, err := partitions(ctx, store)
	if err != nil {
		return out, fmt.Errorf("landing %s: %w", l.place, err)
	}
	var own []sink.Partition
	for _, p := range all { // before any is emptied
		mine, err := w.count(ctx, p, inputs, &out)
		if err != nil {
			return out, err
		}
		if mine {
			own = append(own, p)
		}
	}
	if out.Changed = out.Partitions > 0; !out.Changed || !execute {
		return out, nil
	}
	for _, p := range own {
		if err := w.empty(ctx, p); err != nil {
			return out, err
		}
	}
	return out, nil
}

// storeToTruncate opens the landing's store, without making a folder; nil if there is none.
func (l *landing) storeToTruncate(ctx context.Context) (object.Store, error) {
	if l.opts.store != nil {
		return l.opts.store, nil
	}
	if !strings.Contains(l.place, "://") {
		if _, err := os.Stat(l.place); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	store, err := object.Open(ctx, l.place)
	if err != nil {
		return nil, fmt.Errorf("landing %s: %w", l.place, err)
	}
	return store, nil
}

// count adds to a truncation what a partition has landed, if it is this sink's: of a topic that it reads now, or landed by it, since the topics of a pattern
// aren't among inputs, nor are those that it read before.
func (w *writer) count(ctx context.Context, p sink.Partition, inputs []string, out *sink.Truncation) (mine bool, err error) {
	m, _, err := newest(ctx, w.store, p)
	if err != nil {
		return false, fmt.Errorf("landing %s: %w", w.landing.place, err)
	}
	if m == nil || !slices.Contains(inputs, p.Topic) && !w.landed(m) {
		return false, nil
	}
	if err := w.mayFollow(m, p); err != nil {
		return false, err
	}
	var c Coverage
	for m, err := range chain(ctx, w.store, p, 0) {
		switch {
		case errors.As(err, new(*BrokenChainError)): // it is emptied for that, perhaps
			w.log.Warn("manifests are missing; what is there is counted", "error", err)
		case err != nil:
			return false, fmt.Errorf("landing %s: %w", w.landing.place, err)
		}
		c.add(m)
	}
	out.Partitions++
	out.Rows, out.Files, out.Bytes = out.Rows+c.Rows, out.Files+int(c.Files), out.Bytes+c.Bytes
	out.Version += c.Manifests
	return true, nil
}

// empty ends a partition's round, if anything is in it.
func (w *writer) empty(ctx context.Context, p sink.Partition) error {
	for range maxTruncations {
		last, r, err := newest(ctx, w.store, p)
		if err != nil || last == nil {
			return err
		}
		m := &Manifest{Format: formatName, Version: closingVersion, ID: uuid.NewString(), Written: w.env.Now().UTC(), Application: last.Application, Sink: last.Sink,
			Topic: p.Topic, TopicID: uuid.UUID(p.TopicID).String(), Partition: p.Partition, Round: r.number, Emptied: true, Start: last.Next(), End: last.Next()}
		text, err := m.encode()
		if err != nil {
			return err
		}
		if _, err := w.put(ctx, r, &pending{manifest: m, text: text}); !errors.Is(err, errLost) {
			return err
		}
	}
	return &sink.RefusedError{Table: w.landing.place, Reason: fmt.Sprintf("others land %s all the time: %d tries to empty it were overtaken", p, maxTruncations),
		Advice: "stop what lands there, and do it again"}
}
