package storehttp

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/holders"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// Config is what a server needs of its instance. Its functions are called from any goroutine, also before the instance has started.
type Config struct {
	Application string
	Names       []string                         // of the topology's stores, sorted
	Store       func(name string) (Store, error) // finds one
	Renderer    func(store string) (topology.Renderer, bool)
	// Absence is what errors of Store, and of a Store's methods, mean to the one who asks.
	Absence func(error) Absence
	Holders *holders.Book
	// Advertised is where other instances reach this one; empty if they don't.
	Advertised func() string
	Client     *http.Client
}

// Absence is why something can't be read.
type Absence int

// The reasons.
const (
	Other     Absence = iota // it isn't absent: something else is wrong
	Unknown                  // the topology has no such store
	Elsewhere                // another instance has it
	Soon                     // it may be there soon
)

// Store is a store of the application, with all its partitions.
type Store interface {
	Info() Info
	// PartitionOf is the partition that has a key.
	PartitionOf(key []byte) (int32, error)
	// Task is the task that has a partition.
	Task(partition int32) assign.TaskID
	// Here lists the partitions that can be read on this instance now.
	Here() []int32
	// Read calls f with the committed state of a partition that is here, with copies that of a standby too. behind is how many changelog records that one
	// lacked before; NotCopy otherwise.
	Read(partition int32, copies bool, f func(state.Stores) error) (behind int64, err error)
	// Locations tells which instances have the partitions.
	Locations(context.Context) ([]Location, error)
	// Opening is the error for a partition that is on its way to where it can be read.
	Opening(partition int32) error
}

// NotCopy says that what was read isn't a standby.
const NotCopy int64 = -1

// Info is what a store is.
type Info struct {
	Name       string
	Kind       state.Kind
	Global     bool
	Partitions int32
	// WindowSizeMs is the size of its windows; 0 where it isn't known, math.MaxInt64 of windows without an end.
	WindowSizeMs int64
}

// Location is where a partition is.
type Location struct {
	Partition int32  `json:"partition"`
	Member    string `json:"member"`
	Endpoint  string `json:"endpoint"`
	Here      bool   `json:"here"`
}

// server answers. It has no state of its own.
type server struct{ Config }

// Serve adds the paths below /stores.
func Serve(mux *http.ServeMux, cfg Config) {
	s := &server{cfg}
	mux.HandleFunc("GET /stores", s.listStores)
	mux.HandleFunc("GET /stores/{store}", s.showStore)
	for route := range storeRoutes {
		mux.HandleFunc("GET /stores/{store}/"+route, func(w http.ResponseWriter, r *http.Request) { s.answerQuery(w, r, route) })
	}
}

// storeInfo describes a store.
type storeInfo struct {
	Name       string     `json:"name"`
	Kind       string     `json:"kind"`
	Global     bool       `json:"global"`
	Partitions int32      `json:"partitions"`
	Here       []int32    `json:"here"` // partitions that this instance can read now
	Queries    []string   `json:"queries"`
	Locations  []Location `json:"locations,omitempty"`
}

func describe(of Store) storeInfo {
	i := of.Info()
	info := storeInfo{Name: i.Name, Kind: i.Kind.String(), Global: i.Global, Partitions: i.Partitions, Here: of.Here(), Queries: []string{}}
	for _, route := range slices.Sorted(maps.Keys(storeRoutes)) {
		if slices.Contains(storeRoutes[route].kinds, i.Kind) {
			info.Queries = append(info.Queries, route)
		}
	}
	return info
}

func (s *server) listStores(w http.ResponseWriter, _ *http.Request) {
	all := []storeInfo{}
	for _, name := range s.Names {
		of, err := s.Store(name)
		if err != nil {
			s.writeError(w, err)
			return
		}
		all = append(all, describe(of))
	}
	writeJSON(w, http.StatusOK, map[string]any{"application": s.Application, "stores": all})
}

func (s *server) showStore(w http.ResponseWriter, r *http.Request) {
	of, err := s.Store(r.PathValue("store"))
	if err != nil {
		s.writeError(w, err)
		return
	}
	info := describe(of)
	if info.Locations, err = of.Locations(r.Context()); err != nil {
		s.writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, info)
}
