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
	where   string        // for people: the URL
	timeout time.Duration // of requests that records wait for
	atStart time.Duration // of the others
	now     func() time.Time

	base   context.Context // ends with Close
	cancel context.CancelFunc
	flight singleflight.Group

	mu      sync.RWMutex
	known   map[schemaKey]Schema
	unknown map[schemaKey]unknownID
	ids     map[subjectSchema]int
}

// Schema is a schema as a registry holds it.
type Schema struct {
	Type       string // SchemaAvro and its like
	Text       string
	References []SchemaReference // those that it refers to, and theirs, each behind what it refers to itself
}

// The types of schemas.
const (
	SchemaAvro     = "AVRO"
	SchemaJSON     = "JSON"
	SchemaProtobuf = "PROTOBUF"
)

// SchemaReference is a schema that another refers to.
type SchemaReference struct {
	Name    string // by which it is referred to: an Avro type's full name, or the name of an imported file
	Subject string // under which it is registered
	Text    string
}

// schemaKey is an id, or a GUID.
type schemaKey struct {
	id     int
	guid   [16]byte
	byGUID bool
}

func (k schemaKey) String() string {
	if k.byGUID {
		return fmt.Sprintf("schema %x-%x-%x-%x-%x", k.guid[:4], k.guid[4:6], k.guid[6:8], k.guid[8:10], k.guid[10:])
	}
	return fmt.Sprint("schema ", k.id)
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
	get(ctx context.Context, key schemaKey) (Schema, error)
	register(ctx context.Context, subject, schema string) (id int, err error)
	lookup(ctx context.Context, subject, schema string) (id int, err error)
	compatible(ctx context.Context, subject, schema string) error
	ping(ctx context.Context) error
	close()
}

func newRegistry(store schemaStore, where string, cfg registryConfig) *Registry {
	base, cancel := context.WithCancel(context.Background())
	return &Registry{
		store: store, where: where, timeout: cfg.timeout, atStart: cfg.atStart, now: cfg.now, base: base, cancel: cancel,
		known: make(map[schemaKey]Schema), unknown: make(map[schemaKey]unknownID), ids: make(map[subjectSchema]int),
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
	ctx, cancel := context.WithTimeout(ctx, r.atStart)
	defer cancel()
	return r.wrap("ask for its subjects", r.store.ping(ctx))
}

// WriterSchema returns the text of the Avro schema with the id. One of another type, or with references, is an *UnsupportedSchemaError.
func (r *Registry) WriterSchema(ctx context.Context, id int) (string, error) {
	s, err := r.SchemaByID(ctx, id)
	if err != nil {
		return "", err
	}
	var unsupported string
	switch {
	case s.Type != SchemaAvro:
		unsupported = "a schema of type " + s.Type
	case len(s.References) > 0:
		unsupported = "a schema with a reference to " + s.References[len(s.References)-1].Subject
	default:
		return s.Text, nil
	}
	return "", r.wrap(fmt.Sprintf("get schema %d", id), &UnsupportedSchemaError{What: unsupported})
}

// SchemaByID returns the schema with the id, whatever its type, with what it refers to.
func (r *Registry) SchemaByID(ctx context.Context, id int) (Schema, error) {
	return r.schema(ctx, schemaKey{id: id})
}

// SchemaByGUID returns the schema with the GUID, which newer serializers put into headers. Registries that know no GUIDs answer that there is no
// such schema.
func (r *Registry) SchemaByGUID(ctx context.Context, guid [16]byte) (Schema, error) {
	return r.schema(ctx, schemaKey{guid: guid, byGUID: true})
}

func (r *Registry) schema(ctx context.Context, key schemaKey) (Schema, error) {
	if s, err, ok := r.cached(key); ok {
		return s, err
	}
	// The request belongs to all that wait for it, so it doesn't end with the context of the first of them.
	got := r.flight.DoChan(key.String(), func() (any, error) { return r.fetch(key) })
	select {
	case res := <-got:
		s, _ := res.Val.(Schema)
		return s, res.Err
	case <-ctx.Done():
		return Schema{}, r.wrap("get "+key.String(), ctx.Err())
	}
}

func (r *Registry) cached(key schemaKey) (schema Schema, err error, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s, ok := r.known[key]; ok {
		return s, nil, true
	}
	if u, ok := r.unknown[key]; ok && r.now().Before(u.until) {
		return Schema{}, u.err, true
	}
	return Schema{}, nil, false
}

func (r *Registry) fetch(key schemaKey) (Schema, error) {
	if s, err, ok := r.cached(key); ok { // another flight has just ended
		return s, err
	}
	ctx, cancel := context.WithTimeout(r.base, r.timeout)
	defer cancel()
	s, err := r.store.get(ctx, key)
	if err != nil {
		err = r.wrap("get "+key.String(), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.known[key] = s
		delete(r.unknown, key)
	case !Retriable(err):
		if len(r.unknown) >= maxUnknown {
			clear(r.unknown)
		}
		r.unknown[key] = unknownID{until: r.now().Add(unknownFor), err: err}
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
	ctx, cancel := context.WithTimeout(ctx, r.atStart)
	defer cancel()
	id, err := ask(ctx, subject, schema)
	if err != nil {
		return 0, r.wrapLookup(what+" subject "+subject, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[key] = id
	if _, ok := r.known[schemaKey{id: id}]; !ok {
		r.known[schemaKey{id: id}] = Schema{Type: SchemaAvro, Text: schema}
	}
	delete(r.unknown, schemaKey{id: id})
	return id, nil
}

// CheckCompatible asks whether the schema could be registered under the subject. The error lists what is in the way.
func (r *Registry) CheckCompatible(ctx context.Context, subject, schema string) error {
	ctx, cancel := context.WithTimeout(ctx, r.atStart)
	defer cancel()
	return r.wrap("check the schema for subject "+subject, r.store.compatible(ctx, subject, schema))
}
