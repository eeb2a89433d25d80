package jsonl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		sinktest.ExitUnless(landSome(dir, 1<<40))
		return
	}
	leaks.Main(m)
}

var ctx = context.Background()

// The topic's partitions, their progress, and refusals, as in the tests of all table formats.
var part, move, wantRefused = sinktest.Part, sinktest.Move, sinktest.WantRefused

// at is 2026-06-01T12:00:00Z and some ms.
func at(ms int64) int64 { return 1780315200000 + ms }

var testClock = func() time.Time { return time.UnixMilli(at(5000)) }

func testEnv() sink.Env {
	return sink.Env{ApplicationID: "app", Name: "raw", Logger: slog.New(slog.DiscardHandler), Now: testClock}
}

// meta is the origin of a row: of partition p, at an offset.
func meta(p int32, offset int64) *sink.Meta {
	return &sink.Meta{Topic: "orders", Partition: p, Offset: offset, Timestamp: at(offset), BrokerTimestamp: at(offset + 123),
		InputTopic: "orders", InputPartition: p, InputOffset: offset}
}

func tryOpen[K, V any](s sink.Sink, env sink.Env) (sink.Writer, error) {
	return sinktest.Open[K, V](ctx, s, env)
}

// openText opens a landing of text keys and JSON values in a store.
func openText(t testing.TB, store object.Store, opts ...Option) sink.Writer {
	t.Helper()
	w, err := tryOpen[string, []byte](Sink(store.String(), append(opts, Store(store))...), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// add appends a row of text; "" is a null.
func add(b sink.Batch, key, value string, m *sink.Meta) error {
	var k, v any
	if key != "" {
		k = &key
	}
	if value != "" {
		text := []byte(value)
		v = &text
	}
	return b.Append(k, v, m)
}

// land commits values at the offsets of partition 0 from one on.
func land(t testing.TB, w sink.Writer, from int64, values ...string) sink.Commit {
	t.Helper()
	b := w.NewBatch()
	defer b.Release()
	for i, v := range values {
		if err := add(b, fmt.Sprint("k", i), v, meta(0, from+int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	c, err := w.Commit(ctx, b, []sink.Move{move(0, from, from+int64(len(values)))})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rows(t testing.TB, store object.Store, what Select) (out []Row) {
	t.Helper()
	for r, err := range OpenStore(store).Rows(ctx, what) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, *r)
	}
	return out
}

// values are the rows' values as text, in the order of reading.
func values(rows []Row) (out []string) {
	for _, r := range rows {
		out = append(out, string(r.Value))
	}
	return out
}

func manifests(t testing.TB, store object.Store, p sink.Partition) (out []*Manifest) {
	t.Helper()
	for m, err := range OpenStore(store).Manifests(ctx, p, 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func progress(t testing.TB, w sink.Writer, p sink.Partition) int64 {
	t.Helper()
	got, err := w.Progress(ctx, []sink.Partition{p})
	if err != nil {
		t.Fatal(err)
	}
	return got[p]
}

func wantFenced(t testing.TB, err error, want, got int64) {
	t.Helper()
	var f *sink.FencedError
	if !errors.As(err, &f) || f.Want != want || f.Got != got {
		t.Fatalf("want a fence from %d to %d, got %v", want, got, err)
	}
}
