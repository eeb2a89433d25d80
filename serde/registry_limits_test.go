package serde

import (
	"context"
	"errors"
	"testing"
	"time"
)

// limitStore notes how long its callers would wait.
type limitStore struct {
	longest time.Duration
}

var errNothing = errors.New("nothing is here")

func (s *limitStore) note(ctx context.Context) error {
	end, _ := ctx.Deadline()
	s.longest = time.Until(end)
	return errNothing
}

func (s *limitStore) get(ctx context.Context, _ schemaKey) (Schema, error) {
	return Schema{}, s.note(ctx)
}
func (s *limitStore) register(ctx context.Context, _, _ string) (int, error) { return 0, s.note(ctx) }
func (s *limitStore) lookup(ctx context.Context, _, _ string) (int, error)   { return 0, s.note(ctx) }
func (s *limitStore) compatible(ctx context.Context, _, _ string) error      { return s.note(ctx) }
func (s *limitStore) ping(ctx context.Context) error                         { return s.note(ctx) }
func (s *limitStore) close()                                                 {}

// A task asks again for a schema that doesn't come in time; a start that isn't answered in time has failed, so it waits for longer.
func TestStartsWaitLongerThanTasks(t *testing.T) {
	store := &limitStore{}
	ask := func(cfg registryConfig) (task, start time.Duration) {
		r := newRegistry(store, "here", cfg)
		defer r.Close()
		limit := func(err error) time.Duration {
			t.Helper()
			if !errors.Is(err, errNothing) {
				t.Fatal(err)
			}
			return store.longest
		}
		_, err := r.SchemaByID(t.Context(), 1)
		task, start = limit(err), time.Hour
		for _, call := range []func() error{
			func() error { return r.Ping(t.Context()) },
			func() error { return r.CheckCompatible(t.Context(), "s", "x") },
			func() error { _, err := r.Register(t.Context(), "s", "x"); return err },
			func() error { _, err := r.Lookup(t.Context(), "s", "x"); return err },
		} {
			start = min(start, limit(call()))
		}
		return task, start
	}
	if task, start := ask(defaultRegistryConfig()); task > defaultRegistryTimeout || start <= defaultRegistryTimeout {
		t.Errorf("a task waits for %v, a start for %v", task, start)
	}
	cfg := defaultRegistryConfig()
	RegistryTimeout(time.Second)(&cfg)
	if task, start := ask(cfg); task > time.Second || start > time.Second {
		t.Errorf("with a limit of a second a task waits for %v, a start for %v", task, start)
	}
}
