package processors

import "errors"

// mapRow computes a row from the parent's.
type mapRow[K, V, V2 any] func(key K, row Row[V]) (Row[V2], error)

// mappedView computes the rows of a table without a store from its parent's rows.
type mappedView[K, V, V2 any] struct {
	parent ViewSupplier[K, V]
	mapper func(rt Runtime) (mapRow[K, V, V2], error)
}

// StoreNames implements ViewSupplier.
func (s mappedView[K, V, V2]) StoreNames() []string { return s.parent.StoreNames() }

// Open implements ViewSupplier.
func (s mappedView[K, V, V2]) Open(rt Runtime) (View[K, V2], error) {
	parent, err := s.parent.Open(rt)
	if err != nil {
		return nil, err
	}
	mapped, err := s.mapper(rt)
	if err != nil {
		return nil, err
	}
	return &openMappedView[K, V, V2]{parent, mapped}, nil
}

type openMappedView[K, V, V2 any] struct {
	parent View[K, V]
	mapped mapRow[K, V, V2]
}

// Get implements View.
func (v *openMappedView[K, V, V2]) Get(key K) (Row[V2], error) {
	row, err := v.parent.Get(key)
	if err != nil {
		return noRow[V2](), err
	}
	return v.compute(key, row)
}

// GetAsOf implements View.
func (v *openMappedView[K, V, V2]) GetAsOf(key K, asOf int64) (Row[V2], error) {
	row, err := v.parent.GetAsOf(key, asOf)
	if err != nil {
		return noRow[V2](), err
	}
	return v.compute(key, row)
}

// compute makes the row. One that is computed to nothing has no time either, as if it weren't there.
func (v *openMappedView[K, V, V2]) compute(key K, row Row[V]) (Row[V2], error) {
	computed, err := v.mapped(key, row)
	if computed.Null {
		computed.Timestamp = NoTimestamp
	}
	return computed, err
}

// Versioned implements View.
func (v *openMappedView[K, V, V2]) Versioned() bool { return v.parent.Versioned() }

// viewScope is the Runtime with which a node opens views. It collects what has to be closed with the node.
type viewScope struct {
	Runtime
	closers []func() error
}

func newViewScope(rt Runtime) *viewScope { return &viewScope{Runtime: rt} }

// closeWith makes f run when the node that opens a view closes.
func closeWith(rt Runtime, f func() error) {
	if s, ok := rt.(*viewScope); ok && f != nil {
		s.closers = append(s.closers, f)
	}
}

func (s *viewScope) close() error {
	var errs []error
	for _, f := range s.closers {
		errs = append(errs, f())
	}
	s.closers = nil
	return errors.Join(errs...)
}
