package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/holders"
	"github.com/tributary-io/tributary/engine/internal/readers"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// queries is what reads of stores from outside need. Everything here may be used from any goroutine: the conductor opens and closes tasks
// in tasks, and the rest is set once the instance has started.
type queries struct {
	tasks   readers.Set
	copies  readers.Set // standbys
	started atomic.Pointer[startedQueries]
	client  http.Client
	holders *holders.Book
}

// startedQueries is what is known after the start, until the topics change.
type startedQueries struct {
	partitions map[int]int32 // tasks by sub-topology
	assigned   func() (map[task.ID]bool, bool)
}

func (e *Engine) startedQueries() *startedQueries {
	s := &startedQueries{partitions: map[int]int32{}, assigned: e.members.target}
	for id := range e.catalog().tasks {
		s.partitions[id.Subtopology] = max(s.partitions[id.Subtopology], id.Partition+1)
	}
	return s
}

// openQueries lets stores be asked for. The catalog and the members are there.
func (e *Engine) openQueries(started *closers) {
	e.queries.client = http.Client{
		Timeout:       10 * time.Second,
		Transport:     &http.Transport{DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.queries.started.Store(e.startedQueries()) // the rest is there from here on
	started.add(func() error {
		e.queries.started.Store(nil)
		e.queries.client.CloseIdleConnections()
		return nil
	})
}

// readable lets the stores of a runner that runs be read.
func (e *Engine) readable(r *runner) error {
	if r.db == nil {
		return nil
	}
	return e.queries.tasks.Open(r.spec.id, r.db)
}

// unreadable ends the reading of runners' stores and waits until nobody reads them any more. It must be called before they are shut.
func (e *Engine) unreadable(runners ...*runner) {
	ids := make([]task.ID, len(runners))
	for i, r := range runners {
		ids[i] = r.spec.id
	}
	e.queries.tasks.Close(ids...)
}

// advertised is where other instances reach this one's HTTP server: as told, else where it listens, by the host's name if that is
// everywhere. Empty without a server.
func (e *Engine) advertised() string {
	if e.cfg.advertise != "" {
		return e.cfg.advertise
	}
	host, port, err := net.SplitHostPort(e.HTTPAddr())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return ""
		}
	}
	return net.JoinHostPort(host, port)
}

// Advertise is the address, host:port or a URL, under which other instances reach this one's HTTP server, to forward queries to it.
// Default: the one that HTTP listens on, by the host's name if it listens on all addresses.
func Advertise(addr string) Option { return func(c *config) { c.advertise = addr } }

// PartitionStore tells which partition of a store has a key (its bytes as they are stored), where that is not the one that Kafka's default
// partitioner chooses: behind a custom partitioner of a repartition, or of those who write the input.
func PartitionStore(store string, f func(key []byte, partitions int32) int32) Option {
	return func(c *config) {
		c.partitioners = maps.Clone(c.partitioners)
		if c.partitioners == nil {
			c.partitioners = map[string]func([]byte, int32) int32{}
		}
		c.partitioners[store] = f
	}
}

// UnknownStoreError says that the topology has no such store.
type UnknownStoreError struct {
	Store string
	Known []string
}

func (e *UnknownStoreError) Error() string {
	return fmt.Sprintf("the topology has no store %q; it has %v. A table has a store of its own where the option Store names it", e.Store, e.Known)
}

// Absence says why a part of a store can't be read here.
type Absence int

// The reasons. NotStarted and Opening pass by themselves.
const (
	NotStarted Absence = iota + 1 // the instance isn't running, or not yet
	Opening                       // the task was given to this instance, and is being brought up to date
	Elsewhere                     // the task was not given to this instance: see Engine.Locate
)

func (a Absence) String() string {
	switch a {
	case NotStarted:
		return "the instance isn't running, or hasn't joined its group yet"
	case Opening:
		return "its task is being brought up to date: try again soon"
	}
	return "another instance has it: Locate says which"
}

// NotHereError says that a partition of a store can't be read on this instance now.
type NotHereError struct {
	Store     string
	Partition int32 // -1 if it isn't known yet
	Reason    Absence
}

func (e *NotHereError) Error() string {
	if e.Partition < 0 {
		return fmt.Sprintf("store %s can't be read here: %s", e.Store, e.Reason)
	}
	return fmt.Sprintf("partition %d of store %s can't be read here: %s", e.Partition, e.Store, e.Reason)
}

// placement is where a store's parts are.
type placement struct {
	store      *plan.Store
	sub        int
	partitions int32 // 1 for global stores
	choose     func(key []byte, partitions int32) int32
}

// place finds a store.
func (e *Engine) place(store string) (placement, error) {
	s := e.plan.Stores[store]
	if s == nil || len(s.Nodes) == 0 {
		return placement{}, &UnknownStoreError{Store: store, Known: slices.Sorted(maps.Keys(e.plan.Stores))}
	}
	started := e.queries.started.Load()
	if started == nil {
		return placement{}, &NotHereError{Store: store, Partition: -1, Reason: NotStarted}
	}
	p := placement{store: s, sub: e.plan.Nodes[s.Nodes[0]].Subtopology, choose: cmpOr(e.cfg.partitioners[store], processors.PartitionOf)}
	p.partitions = started.partitions[p.sub]
	if s.Global {
		p.sub, p.partitions = -1, 1
	}
	return p, nil
}

func cmpOr(f, otherwise func([]byte, int32) int32) func([]byte, int32) int32 {
	if f != nil {
		return f
	}
	return otherwise
}

// partitionOf is the partition that has a key.
func (p placement) partitionOf(key []byte) (int32, error) {
	if p.store.Global {
		return 0, nil
	}
	at := p.choose(key, p.partitions)
	if at < 0 || at >= p.partitions {
		return 0, fmt.Errorf("store %s: its partitioner chose partition %d of %d", p.store.Spec.Name, at, p.partitions)
	}
	return at, nil
}

func (p placement) task(partition int32) task.ID {
	return task.ID{Subtopology: p.sub, Partition: partition}
}

// read calls f with the committed state of a partition's task. f must not call code of the user, and closes its iterators.
func (e *Engine) read(p placement, partition int32, f func(state.Stores) error) error {
	id := p.task(partition)
	lease, ok := e.queries.tasks.Acquire(id)
	if !ok {
		return &NotHereError{Store: p.store.Spec.Name, Partition: partition, Reason: e.absence(id)}
	}
	defer lease.Release()
	return f(lease.View())
}

func (e *Engine) absence(id task.ID) Absence {
	started := e.queries.started.Load()
	if started == nil {
		return NotStarted
	}
	assigned, ok := started.assigned()
	switch {
	case !ok && id.Subtopology >= 0:
		return NotStarted
	case id.Subtopology < 0 || assigned[id]:
		return Opening
	}
	return Elsewhere
}

// here lists the partitions of a store that can be read on this instance now.
func (e *Engine) here(p placement) []int32 {
	parts := []int32{}
	for i := range p.partitions {
		if e.queries.tasks.Has(p.task(i)) {
			parts = append(parts, i)
		}
	}
	return parts
}

// LocalPartitions lists the partitions of a store that can be read on this instance now, and tells how many there are. A global store has
// one, on every instance.
func (e *Engine) LocalPartitions(store string) (here []int32, all int32, err error) {
	p, err := e.place(store)
	if err != nil {
		return nil, 0, err
	}
	return e.here(p), p.partitions, nil
}

// Location is where a partition of a store is.
type Location struct {
	Store     string
	Partition int32
	// Member is the group member that has it, as the coordinator knows it; Endpoint is its HTTP address, empty if it has none.
	Member, Endpoint string
	// Here says that it can be read on this instance now.
	Here bool
}

// Locate tells which instance has a key, given as it is stored. The answer is at most a few seconds old, and outdated as soon as tasks
// move. Errors: *NotHereError with Opening if no instance has the partition now.
func (e *Engine) Locate(ctx context.Context, store string, key []byte) (Location, error) {
	p, err := e.place(store)
	if err != nil {
		return Location{}, err
	}
	at, err := p.partitionOf(key)
	if err != nil {
		return Location{}, err
	}
	return e.locate(ctx, p, at)
}

func (e *Engine) locate(ctx context.Context, p placement, partition int32) (Location, error) {
	loc := Location{Store: p.store.Spec.Name, Partition: partition}
	id := p.task(partition)
	if loc.Here = e.queries.tasks.Has(id); loc.Here {
		member, _ := e.membership.Member()
		loc.Member, loc.Endpoint = member.ID, e.advertised()
		return loc, nil
	}
	if p.store.Global {
		return loc, &NotHereError{Store: loc.Store, Partition: partition, Reason: Opening}
	}
	seen, err := e.queries.holders.Look(ctx, holders.Lives)
	if err != nil {
		return loc, err
	}
	h, ok := seen.Of(assignID(id))
	if !ok {
		return loc, &NotHereError{Store: loc.Store, Partition: partition, Reason: Opening}
	}
	loc.Member, loc.Endpoint = h.ID, h.Endpoint
	return loc, nil
}

// Locations tells which instances have the partitions of a store. Those that nobody has now are left out.
func (e *Engine) Locations(ctx context.Context, store string) ([]Location, error) {
	p, err := e.place(store)
	if err != nil {
		return nil, err
	}
	var all []Location
	for i := range p.partitions {
		loc, err := e.locate(ctx, p, i)
		if _, absent := err.(*NotHereError); absent {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, loc)
	}
	slices.SortFunc(all, func(a, b Location) int { return cmp.Compare(a.Partition, b.Partition) })
	return all, nil
}
