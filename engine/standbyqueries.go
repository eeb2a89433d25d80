package engine

import (
	"errors"
	"slices"

	"github.com/tributary-io/tributary/engine/internal/storehttp"
	"github.com/tributary-io/tributary/state"
)

// Reading standbys. A copy shows committed state only, as the task's own stores do, but may be behind, and each store of it by its own: two
// stores of a task can show different moments. Nothing here is on by itself.

// Standby gives a variant of the query that reads standbys as well: a partition whose task runs elsewhere is read from the copy that this
// instance keeps, if it does, as far as that has come (Stats tells how far it is behind). Where the task runs here it makes no difference.
func (q *KeyValueQuery[K, V]) Standby() *KeyValueQuery[K, V] {
	return &KeyValueQuery[K, V]{q.q.orStandby()}
}

// Standby is as for key-value stores.
func (q *WindowQuery[K, V]) Standby() *WindowQuery[K, V] {
	return &WindowQuery[K, V]{q.q.orStandby()}
}

// Standby is as for key-value stores.
func (q *SessionQuery[K, V]) Standby() *SessionQuery[K, V] {
	return &SessionQuery[K, V]{q.q.orStandby()}
}

// Standby is as for key-value stores.
func (q *VersionedQuery[K, V]) Standby() *VersionedQuery[K, V] {
	return &VersionedQuery[K, V]{q.q.orStandby()}
}

func (q query[K, V]) orStandby() query[K, V] {
	if s, ok := q.from.(storeSource); ok {
		q.from = standbySource{s}
	}
	return q
}

// standbySource is a store of an engine, its standbys included.
type standbySource struct{ storeSource }

func (s standbySource) parts(key []byte) ([]int32, error) {
	parts, err := s.storeSource.parts(key)
	if err != nil || key != nil {
		return parts, err
	}
	p, err := s.e.place(s.store)
	if err != nil {
		return nil, err
	}
	for i := range p.partitions {
		if s.e.queries.copies.Has(p.task(i)) {
			parts = append(parts, i)
		}
	}
	slices.Sort(parts)
	return slices.Compact(parts), nil // a task that is just changing its role may be in both
}

func (s standbySource) read(partition int32, f func(state.Stores) error) error {
	p, err := s.e.place(s.store)
	if err != nil {
		return err
	}
	_, err = s.e.readAny(p, partition, f)
	return err
}

// readAny calls f with the committed state of a partition's task or else of its standby, and tells how many changelog records that one was
// behind before; storehttp.NotCopy for the task itself.
func (e *Engine) readAny(p placement, partition int32, f func(state.Stores) error) (behind int64, err error) {
	err = e.read(p, partition, f)
	var absent *NotHereError
	if !errors.As(err, &absent) {
		return storehttp.NotCopy, err
	}
	lease, ok := e.queries.copies.Acquire(p.task(partition))
	if !ok {
		return storehttp.NotCopy, err
	}
	defer lease.Release()
	behind = 0
	for _, s := range e.standbysNow() {
		if s.r.spec.id == p.task(partition) {
			behind = s.lag()
		}
	}
	return behind, f(lease.View())
}
