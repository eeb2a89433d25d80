package land

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake"
)

// TestRunUntilLanded ends when what there was has landed, at once where that is nothing, and by an interrupt before.
func TestRunUntilLanded(t *testing.T) {
	w := newWorld(t, nil, "")
	s, empty := testStream(t, "ods.shop.ending", small), testStream(t, "ods.shop.empty", small)
	w.cfg.Streams = []Stream{s, empty}
	run := func(limit time.Duration) error {
		instance, err := Open(t.Context(), w.cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer instance.Close()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return instance.RunUntilLanded(ctx)
	}
	if err := run(4 * time.Minute); err != nil {
		t.Fatalf("with nothing to land: %v", err)
	}
	id := w.id(t, &s)
	var values [][]byte
	for n := range int64(40) {
		values = append(values, smallValue(id, n))
	}
	w.emit(t, s.Topic, append(values, nil, []byte("bad"))...) // the last one of each partition makes no row
	for range 2 {
		if err := run(4 * time.Minute); err != nil {
			t.Fatal(err)
		}
		if n := len(w.rows(t, &s)); n != 40 {
			t.Errorf("%d rows, want 40", n)
		}
	}
	// What is declared anew is published, also where nothing waits to land.
	for _, doc := range []string{"its id", "its only id", "its name"} {
		w.cfg.Streams[0].Schema = strings.Replace(small, "its number", doc, 1)
		if err := run(4 * time.Minute); err != nil {
			t.Fatal(err)
		}
		info, err := lake.Show(t.Context(), w.cfg.TablePlace(&s), 0)
		if err != nil || info.Columns[0].Comment != doc {
			t.Errorf("the column says %q (%v), want %q", info.Columns[0].Comment, err, doc)
		}
	}
	w.cfg.Batch.Every = time.Hour
	w.emit(t, s.Topic, values...)
	if err := run(time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("interrupted: %v", err)
	}
}
