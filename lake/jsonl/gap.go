package jsonl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// RecordGap leaves offsets out of a landing on purpose: from where it has come to, to the offset before next. It puts a manifest without
// files, with the reason in it, so that readers can tell a gap that somebody has decided on from data that is missing. The sink goes on at
// next; one that is running is fenced and finds that out by itself.
//
// The group's committed offset isn't changed: the sink that goes on commits it.
func RecordGap(ctx context.Context, place string, p sink.Partition, next int64, reason string) (*Manifest, error) {
	store, err := object.Open(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("landing %s: %w", place, err)
	}
	return recordGap(ctx, store, p, next, reason, time.Now())
}

func recordGap(ctx context.Context, store object.Store, p sink.Partition, next int64, reason string, now time.Time) (*Manifest, error) {
	if reason == "" {
		return nil, errors.New("a gap needs a reason: readers will ask for it")
	}
	last, r, err := newest(ctx, store, p)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Format: formatName, Version: formatVersion, ID: uuid.NewString(), Written: now.UTC(),
		Topic: p.Topic, TopicID: uuid.UUID(p.TopicID).String(), Partition: p.Partition, Round: r.number, End: next - 1}
	if last != nil {
		m.Application, m.Sink, m.Start = last.Application, last.Sink, last.Next()
	}
	if m.End < m.Start {
		return nil, fmt.Errorf("landing %s: %s has come to offset %d already: there is nothing to leave out before %d", store, p, m.Start, next)
	}
	m.Gaps = []Gap{{Start: m.Start, End: m.End, Reason: reason}}
	text, err := m.encode()
	if err != nil {
		return nil, err
	}
	w := &writer{landing: &landing{place: store.String()}, store: store, log: discard}
	_, err = w.put(ctx, r, &pending{manifest: m, text: text})
	if errors.Is(err, errLost) {
		return nil, fmt.Errorf("landing %s: the sink has landed more of %s meanwhile; look again at what is to be left out", store, p)
	}
	return m, err
}
