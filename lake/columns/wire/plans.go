package wire

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tributary-io/tributary/lake/sink"
)

// ErrUnknownSchema says that a registry has no schema of a key: the record is bad.
var ErrUnknownSchema = errors.New("the registry has no such schema")

// Plans keeps what was made of each schema. It is safe for concurrent use.
type Plans[P any] struct {
	// ask gets a schema and makes a plan of it.
	ask func(Key) (P, error)

	last    atomic.Pointer[entry[P]]
	mu      sync.Mutex
	plans   map[Key]*entry[P]
	unknown map[Key]*unknown
}

type entry[P any] struct {
	key  Key
	plan P
	err  error // a *sink.RowError: the schema can't be used
}

// unknown remembers for some records that the source has no schema of a key: it may be registered later, but a stream of bad
// records must not become a stream of requests.
type unknown struct {
	err  error // a *sink.RowError
	left int   // records that are not asked for again
}

const (
	unknownFor = 1000 // records that are taken as bad before the source is asked again
	maxUnknown = 1000 // keys that are remembered: bytes that aren't a frame at all may hold any id
)

// NewPlans makes an empty cache. ask is called once for each key that it answers: with a plan, or with a *sink.RowError where the schema
// can't be used. ErrUnknownSchema (wrapped) is believed for a while; after any other error it is asked again by the next record.
func NewPlans[P any](ask func(Key) (P, error)) *Plans[P] {
	return &Plans[P]{ask: ask, plans: map[Key]*entry[P]{}, unknown: map[Key]*unknown{}}
}

// Find returns the plan for a key. A *sink.RowError says that records of this key are bad; any other error comes from the source, and the
// same call may succeed later.
func (p *Plans[P]) Find(k Key) (P, error) {
	e := p.last.Load()
	if e == nil || e.key != k {
		var err error
		if e, err = p.find(k); err != nil {
			var none P
			return none, err
		}
		p.last.Store(e)
	}
	return e.plan, e.err
}

func (p *Plans[P]) find(k Key) (*entry[P], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.plans[k]; e != nil {
		return e, nil
	}
	if u := p.unknown[k]; u != nil && u.left > 0 {
		u.left--
		return nil, u.err
	}
	e := &entry[P]{key: k}
	var bad *sink.RowError
	switch plan, err := p.ask(k); {
	case errors.Is(err, ErrUnknownSchema):
		err = &sink.RowError{Err: fmt.Errorf("schema %s: %w", k, err)}
		if len(p.unknown) >= maxUnknown {
			clear(p.unknown)
		}
		p.unknown[k] = &unknown{err, unknownFor}
		return nil, err
	case errors.As(err, &bad):
		e.err = &sink.RowError{Err: fmt.Errorf("schema %s: %w", k, bad.Err)}
	case err != nil:
		return nil, fmt.Errorf("schema %s can't be had from the registry: %w", k, err)
	default:
		e.plan = plan
	}
	p.plans[k] = e
	delete(p.unknown, k)
	return e, nil
}
