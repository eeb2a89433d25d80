package sinktest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/sink"
)

// Part names partition n of the topic that tests of a table's own land.
func Part(n int32) sink.Partition {
	return sink.Partition{Topic: "orders", TopicID: [16]byte{1, 2, 3}, Partition: n}
}

// Move is the progress of partition p of that topic.
func Move(p int32, from, to int64) sink.Move {
	return sink.Move{Partition: Part(p), From: from, To: to}
}

// Open binds a sink to its types and opens it.
func Open[K, V any](ctx context.Context, s sink.Sink, env sink.Env) (sink.Writer, error) {
	if err := s.Bind(reflect.TypeFor[K](), reflect.TypeFor[V]()); err != nil {
		return nil, err
	}
	return s.Open(ctx, env)
}

// WantRefused checks that an error is a refusal with advice, which says these words.
func WantRefused(t testing.TB, err error, words ...string) {
	t.Helper()
	var refused *sink.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("want a refusal, got %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the refusal doesn't say %q: %v", w, err)
		}
	}
	if refused.Advice == "" {
		t.Errorf("the refusal gives no advice: %v", err)
	}
}
