package engine

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// The steps of a lake commit.
const (
	stepLanding step = "landing" // the rows are about to land
	stepLanded  step = "landed"  // they have, and the process doesn't know
)

// simSink is the way of one process to the simulation's table.
type simSink struct {
	*table
	p *process
}

func (s *simSink) Bind(_, _ reflect.Type) error { return nil }
func (s *simSink) Open(context.Context, sink.Env) (sink.Writer, error) {
	return &simWriter{tableWriter{t: s.table}, s.p}, nil
}

type simWriter struct {
	tableWriter
	p *process
}

func (w *simWriter) Commit(ctx context.Context, b sink.Batch, moves []sink.Move) (sink.Commit, error) {
	if w.p.reached(stepLanding) {
		return sink.Commit{}, errTable
	}
	c, err := w.tableWriter.Commit(ctx, b, moves)
	if errors.As(err, new(*sink.FencedError)) {
		w.p.w.counts.add("races in the lake lost")
	}
	if err == nil && w.p.reached(stepLanded) {
		return sink.Commit{}, errTable // nobody hears of it any more
	}
	return c, err
}

// simStore is an object store that fails at times.
type simStore struct {
	*object.Memory
	w *simWorld

	mu    sync.Mutex
	times int // that it fails
}

func (s *simStore) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times <= 0 {
		return nil
	}
	s.times--
	s.w.counts.add("object store failed")
	return errTable
}

func (s *simStore) fail(times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = times
}

func (s *simStore) Put(ctx context.Context, name string, data []byte) error {
	if err := s.fault(); err != nil {
		return err
	}
	return s.Memory.Put(ctx, name, data)
}

func (s *simStore) Get(ctx context.Context, name string) ([]byte, error) {
	if err := s.fault(); err != nil {
		return nil, err
	}
	return s.Memory.Get(ctx, name)
}
