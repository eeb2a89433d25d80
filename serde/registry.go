package serde

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Registry is a client of a schema registry with Confluent's HTTP interface. Schemas never change under their id, so each is
// fetched once a process, by one request however many records wait for it.
//
// Its methods are safe for concurrent use. Every request has a time limit; an error is a *RegistryError, which says what was
// asked of whom and, through Retriable, whether it is worth asking again.
type Registry struct {
	store   schemaStore
	where   string // for people: the URL
	timeout time.Duration
	now     func() time.Time

	base   context.Context // ends with Close
	cancel context.CancelFunc
	flight singleflight.Group

	mu      sync.RWMutex
	byID    map[int]string
	unknown map[int]unknownID
	ids     map[subjectSchema]int
}

// subjectSchema is a schema's text under a subject.
type subjectSchema struct{ subject, schema string }

// unknownID remembers that the registry didn't know an id.
type unknownID struct {
	until time.Time
	err   error
}

const (
	// unknownFor is how long an unknown id isn't asked for again: a run of corrupt records must not become a run of requests,
	// and a schema registered a moment too late must be found soon.
	unknownFor = 10 * time.Second
	// maxUnknown bounds the memory for unknown ids, since corrupt records carry any id.
	maxUnknown = 1024
)

// schemaStore is what a Registry caches: a server, or memory.
type schemaStore interface {
	byID(ctx context.Context, id int) (schema string, err error)
	register(ctx context.Context, subject, schema string) (id int, err error)
	lookup(ctx context.Context, subject, schema string) (id int, err error)
	compatible(ctx context.Context, subject, schema string) error
	ping(ctx context.Context) error
	close()
}

func newRegistry(store schemaStore, where string, cfg registryConfig) *Registry {
	base, cancel := context.WithCancel(context.Background())
	return &Registry{
		store: store, where: where, timeout: cfg.timeout, now: cfg.now, base: base, cancel: cancel,
		byID: make(map[int]string), unknown: make(map[int]unknownID), ids: make(map[subjectSchema]int),
	}
}

// Close ends requests that are under way and releases the connections. What is cached stays readable.
func (r *Registry) Close() {
	r.cancel()
	r.store.close()
}

// String names the registry for people.
func (r *Registry) String() string { return r.where }

// Ping asks the registry for anything at all, to tell at start whether it is there.
func (r *Registry) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return r.wrap("ask for its subjects", r.store.ping(ctx))
}

// WriterSchema returns the text of the Avro schema with the id.
func (r *Registry) WriterSchema(ctx context.Context, id int) (string, error) {
	if s, err, ok := r.cached(id); ok {
		return s, err
	}
	// The request belongs to all that wait for it, so it doesn't end with the context of the first of them.
	got := r.flight.DoChan(fmt.Sprint("id ", id), func() (any, error) { return r.fetch(id) })
	select {
	case res := <-got:
		s, _ := res.Val.(string)
		return s, res.Err
	case <-ctx.Done():
		return "", r.wrap(fmt.Sprintf("get schema %d", id), ctx.Err())
	}
}

func (r *Registry) cached(id int) (schema string, err error, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s, ok := r.byID[id]; ok {
		return s, nil, true
	}
	if u, ok := r.unknown[id]; ok && r.now().Before(u.until) {
		return "", u.err, true
	}
	return "", nil, false
}

func (r *Registry) fetch(id int) (string, error) {
	if s, err, ok := r.cached(id); ok { // another flight has just ended
		return s, err
	}
	ctx, cancel := context.WithTimeout(r.base, r.timeout)
	defer cancel()
	s, err := r.store.byID(ctx, id)
	if err != nil {
		err = r.wrap(fmt.Sprintf("get schema %d", id), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.byID[id] = s
		delete(r.unknown, id)
	case !Retriable(err):
		if len(r.unknown) >= maxUnknown {
			clear(r.unknown)
		}
		r.unknown[id] = unknownID{until: r.now().Add(unknownFor), err: err}
	}
	return s, err
}

// Register registers the Avro schema under the subject and returns its id; a schema that is there already keeps its id.
// It is a step of start-up: serdes never register while records flow. See Prepare.
func (r *Registry) Register(ctx context.Context, subject, schema string) (id int, err error) {
	return r.idOf(ctx, "register the schema of", subject, schema, r.store.register)
}

// Lookup returns the id that exactly this schema has under the subject, without registering it.
func (r *Registry) Lookup(ctx context.Context, subject, schema string) (id int, err error) {
	return r.idOf(ctx, "look up the schema of", subject, schema, r.store.lookup)
}

func (r *Registry) idOf(ctx context.Context, what, subject, schema string,
	ask func(ctx context.Context, subject, schema string) (int, error)) (int, error) {
	key := subjectSchema{subject, schema}
	r.mu.RLock()
	id, ok := r.ids[key]
	r.mu.RUnlock()
	if ok {
		return id, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	id, err := ask(ctx, subject, schema)
	if err != nil {
		return 0, r.wrap(what+" subject "+subject, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[key] = id
	if _, ok := r.byID[id]; !ok {
		r.byID[id] = schema
	}
	delete(r.unknown, id)
	return id, nil
}

// CheckCompatible asks whether the schema could be registered under the subject. The error lists what is in the way.
func (r *Registry) CheckCompatible(ctx context.Context, subject, schema string) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return r.wrap("check the schema for subject "+subject, r.store.compatible(ctx, subject, schema))
}
