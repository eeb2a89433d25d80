package engine

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/storehttp"
	"github.com/tributary-io/tributary/state"
)

// Queries puts the stores under /stores of the engine's HTTP server and Handler: read-only, as JSON, without access control of its own.
// Every instance answers for all: what it doesn't have it asks the one that does. Off by default, since it shows the application's data.
func Queries() Option { return func(c *config) { c.serveQueries = true } }

// serveStores adds the paths of queries.
func (e *Engine) serveStores(mux *http.ServeMux) {
	storehttp.Serve(mux, storehttp.Config{
		Application: e.plan.ApplicationID, Names: slices.Sorted(maps.Keys(e.plan.Stores)), Renderer: e.renderer, Absence: absenceOf,
		Holders: e.queries.holders, Advertised: e.advertised, Client: &e.queries.client,
		Store: func(name string) (storehttp.Store, error) {
			p, err := e.place(name)
			return &servedStore{e, p}, err
		},
	})
}

// absenceOf is what an error means to those who ask over HTTP.
func absenceOf(err error) storehttp.Absence {
	var absent *NotHereError
	switch {
	case errors.As(err, new(*UnknownStoreError)):
		return storehttp.Unknown
	case !errors.As(err, &absent):
		return storehttp.Other
	case absent.Reason == Elsewhere:
		return storehttp.Elsewhere
	}
	return storehttp.Soon
}

// servedStore is a store as the HTTP server sees it.
type servedStore struct {
	e *Engine
	p placement
}

var _ storehttp.Store = (*servedStore)(nil)

// Info implements storehttp.Store, as the other methods do.
func (s *servedStore) Info() storehttp.Info {
	spec := s.p.store.Spec
	return storehttp.Info{Name: spec.Name, Kind: spec.Kind, Global: s.p.store.Global, Partitions: s.p.partitions, WindowSizeMs: spec.WindowSizeMs}
}

func (s *servedStore) PartitionOf(key []byte) (int32, error) { return s.p.partitionOf(key) }
func (s *servedStore) Task(partition int32) assign.TaskID    { return assignID(s.p.task(partition)) }
func (s *servedStore) Here() []int32                         { return s.e.here(s.p) }
func (s *servedStore) Opening(partition int32) error {
	return &NotHereError{Store: s.p.store.Spec.Name, Partition: partition, Reason: Opening}
}

func (s *servedStore) Read(partition int32, copies bool, f func(state.Stores) error) (behind int64, err error) {
	if copies {
		return s.e.readAny(s.p, partition, f)
	}
	return storehttp.NotCopy, s.e.read(s.p, partition, f)
}

func (s *servedStore) Locations(ctx context.Context) (all []storehttp.Location, err error) {
	found, err := s.e.Locations(ctx, s.p.store.Spec.Name)
	for _, l := range found {
		all = append(all, storehttp.Location{Partition: l.Partition, Member: l.Member, Endpoint: l.Endpoint, Here: l.Here})
	}
	return all, err
}
